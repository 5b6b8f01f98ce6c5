//! One thing for each block or chunk, made once, by whoever comes first.

use super::CHUNKS;
use std::sync::OnceLock;

/// One thing for each block. Room is made when it is needed: a log may be made for many more records than come.
#[derive(Debug)]
pub(crate) struct PerBlock<T> {
    blocks: usize,
    parts: Cells<Cells<T>>,
}

/// Things that are each made once.
type Cells<T> = Box<[OnceLock<T>]>;

/// Blocks for which room is made at once.
const PART: usize = 1024;

impl<T> PerBlock<T> {
    /// For so many blocks.
    pub fn new(blocks: usize) -> Self {
        Self { blocks, parts: cells(blocks.div_ceil(PART)) }
    }

    /// A block's, if it is made.
    #[inline]
    pub fn get(&self, block: usize) -> Option<&T> {
        self.parts.get(block / PART)?.get()?.get(block % PART)?.get()
    }

    /// A block's, made now if it is not.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn get_or_make(&self, block: usize, make: impl FnOnce() -> T) -> &T {
        let part = self.parts[block / PART].get_or_init(|| cells(PART.min(self.blocks - block / PART * PART)));
        part[block % PART].get_or_init(make)
    }

    /// Bytes that all take, of which each takes what `of` says beside its own.
    pub fn heap(&self, of: impl Fn(&T) -> usize) -> usize {
        let parts = self.parts.iter().filter_map(OnceLock::get);
        let of_part =
            |part: &Cells<T>| size_of_val(&**part) + part.iter().filter_map(OnceLock::get).map(&of).sum::<usize>();
        size_of_val(&*self.parts) + parts.map(of_part).sum::<usize>()
    }
}

/// One thing for each chunk. Room for a block's chunks is made with the first of them.
#[derive(Debug)]
pub(crate) struct PerChunk<T> {
    blocks: PerBlock<Cells<T>>,
}

impl<T> PerChunk<T> {
    /// For so many blocks' chunks.
    pub fn new(blocks: usize) -> Self {
        Self { blocks: PerBlock::new(blocks) }
    }

    /// A chunk's, if it is made.
    #[inline]
    pub fn get(&self, chunk: usize) -> Option<&T> {
        self.blocks.get(chunk / CHUNKS)?.get(chunk % CHUNKS)?.get()
    }

    /// Says what a chunk's is, if nobody did.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn set(&self, chunk: usize, value: T) {
        let block = self.blocks.get_or_make(chunk / CHUNKS, || cells(CHUNKS));
        // Who was first said the same.
        let _ = block[chunk % CHUNKS].set(value);
    }

    /// Bytes that all take, of which each takes what `of` says beside its own.
    pub fn heap(&self, of: impl Fn(&T) -> usize) -> usize {
        self.blocks.heap(|block| size_of_val(&**block) + block.iter().filter_map(OnceLock::get).map(&of).sum::<usize>())
    }
}

fn cells<T>(count: usize) -> Cells<T> {
    (0..count).map(|_| OnceLock::new()).collect()
}
