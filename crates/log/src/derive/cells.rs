//! One thing for each block or chunk, made once, by whoever comes first.

use super::CHUNKS;
use std::sync::OnceLock;

/// One thing for each block.
#[derive(Debug)]
pub(crate) struct PerBlock<T> {
    cells: Box<[OnceLock<T>]>,
}

impl<T> PerBlock<T> {
    /// For so many blocks.
    pub fn new(blocks: usize) -> Self {
        Self { cells: (0..blocks).map(|_| OnceLock::new()).collect() }
    }

    /// A block's, if it is made.
    #[inline]
    pub fn get(&self, block: usize) -> Option<&T> {
        self.cells.get(block)?.get()
    }

    /// A block's, made now if it is not.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn get_or_make(&self, block: usize, make: impl FnOnce() -> T) -> &T {
        self.cells[block].get_or_init(make)
    }

    /// Bytes that all take, of which each takes what `of` says beside its own.
    pub fn heap(&self, of: impl Fn(&T) -> usize) -> usize {
        size_of_val(&*self.cells) + self.cells.iter().filter_map(OnceLock::get).map(of).sum::<usize>()
    }
}

/// One thing for each chunk. Room for a block's chunks is made with the first of them.
#[derive(Debug)]
pub(crate) struct PerChunk<T> {
    blocks: PerBlock<Box<[OnceLock<T>]>>,
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
        let block = self.blocks.get_or_make(chunk / CHUNKS, || (0..CHUNKS).map(|_| OnceLock::new()).collect());
        // Who was first said the same.
        let _ = block[chunk % CHUNKS].set(value);
    }

    /// Bytes that all take, of which each takes what `of` says beside its own.
    pub fn heap(&self, of: impl Fn(&T) -> usize) -> usize {
        self.blocks.heap(|block| size_of_val(&**block) + block.iter().filter_map(OnceLock::get).map(&of).sum::<usize>())
    }
}
