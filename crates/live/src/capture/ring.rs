//! The memory that the kernel and we share: a ring of blocks, each of which is one side's at a time.

use crate::option;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fd::{AsFd, AsRawFd};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// Blocks, of which the next that becomes ours is known.
#[derive(Debug)]
pub(super) struct Ring {
    map: MmapRaw,
    blocks: usize,
    next: usize,
}

/// Bytes of a block.
pub(super) const BLOCK: usize = 1 << 20;
/// Where a block says whose it is (`block_status` of `struct tpacket_block_desc`).
const STATUS: usize = 8;

impl Ring {
    /// A ring of so many bytes for a packet socket. A block that is not full is ours after `retire` milliseconds.
    pub fn of(socket: &impl AsFd, bytes: u64, retire: u32) -> io::Result<Self> {
        /// It says only how many blocks there are; packets are as long as they are.
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

    /// How many there are.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// The next block, if it is ours.
    pub fn block(&self) -> Option<&[u8]> {
        // Acquires what the kernel wrote before it gave us the block.
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the block lies within the map, which lasts as long as `self`; it is ours, so that the kernel does not write to it
        // until `give_back`, which needs that nobody has it any more.
        #[allow(unsafe_code, reason = "the kernel shares this memory")]
        let block = unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(self.next * BLOCK), BLOCK) };
        Some(block)
    }

    /// It is the kernel's again.
    pub fn give_back(&mut self) {
        // Releases: what was read of it was read before.
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: it lies within the map, which lasts as long as `self`, and is aligned as a block is; the kernel reads and writes it
        // as one word, and this is the only way to it here but for reading a block that is ours, when nobody writes it.
        #[allow(unsafe_code, reason = "the kernel shares this memory")]
        unsafe {
            AtomicU32::from_ptr(self.map.as_mut_ptr().add(self.next * BLOCK + STATUS).cast())
        }
    }
}
