//! The ring of blocks that the kernel shares with this process. Each block belongs to one of them at a time.

use crate::option;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fd::{AsFd, AsRawFd};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// The ring, and the index of the next block that the kernel will hand over.
#[derive(Debug)]
pub(super) struct Ring {
    map: MmapRaw,
    blocks: usize,
    next: usize,
}

/// Bytes of a block.
pub(super) const BLOCK: usize = 1 << 20;
/// The offset of the field that states a block's owner (`block_status` of `struct tpacket_block_desc`).
const STATUS: usize = 8;

impl Ring {
    /// Allocates a ring of about `bytes` bytes for a packet socket. The kernel hands over a block that is not full after `retire` milliseconds.
    pub fn new(socket: &impl AsFd, bytes: u64, retire: u32) -> io::Result<Self> {
        /// This only determines the number of blocks; with `TPACKET_V3`, packets have any length.
        const FRAME: usize = 2048;
        let version = libc::tpacket_versions::TPACKET_V3 as libc::c_int;
        option::set(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let blocks = usize::try_from(bytes / BLOCK as u64).unwrap_or(usize::MAX).clamp(2, 1 << 14);
        let wanted = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: (BLOCK / FRAME * blocks) as u32,
            tp_retire_blk_tov: retire,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        option::set(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &wanted)?;
        let map = MmapOptions::new().len(BLOCK * blocks).map_raw(socket.as_fd().as_raw_fd())?;
        Ok(Self { map, blocks, next: 0 })
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// The next block, if the kernel has handed it over.
    pub fn block(&self) -> Option<&[u8]> {
        // Acquires what the kernel wrote before it handed over the block.
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the block is within the map, which lives as long as `self`. The kernel has handed it over, so it does not write to it
        // until `give_back`, whose `&mut self` ends this borrow.
        #[allow(unsafe_code, reason = "the kernel shares this memory")]
        let block = unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(self.next * BLOCK), BLOCK) };
        Some(block)
    }

    /// Returns the block to the kernel.
    pub fn give_back(&mut self) {
        // Release: all reads of the block happen before.
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: the word is within the map, which lives as long as `self`, and is aligned because blocks are; the kernel accesses it as one
        // word. Otherwise it is only read here as part of a block that the kernel has handed over, when no side writes to it.
        #[allow(unsafe_code, reason = "the kernel shares this memory")]
        unsafe {
            AtomicU32::from_ptr(self.map.as_mut_ptr().add(self.next * BLOCK + STATUS).cast())
        }
    }
}
