//! Zeros where a packet should begin. A crash leaves them if the length of the file was written and the data was not; a
//! copy leaves them where it could not read the disk.

use std::io;

use crate::buffer::Buffer;
use crate::error::{Behind, Damage};

/// The longest packet or block that is searched for behind zeros, bytes: more than any link or segmentation offload
/// makes.
pub(crate) const LONGEST: u32 = 1 << 20;
/// Bytes of a header that can be zeros though a packet begins there. The search behind the zeros includes them.
const MARGIN: usize = 24;
/// Bytes that are searched at once.
const STRETCH: usize = 4096;

/// Consumes zeros and what follows them, up to where a packet begins. `begins` decides that for the available bytes.
#[cold]
pub(crate) fn skip(buffer: &mut Buffer, begins: impl Fn(&mut Buffer) -> io::Result<bool>) -> Damage {
    look(buffer, begins).unwrap_or_else(Damage::Io)
}

fn look(buffer: &mut Buffer, begins: impl Fn(&mut Buffer) -> io::Result<bool>) -> io::Result<Damage> {
    let from = buffer.offset();
    let bytes = loop {
        let (found, zeros) = (buffer.available().len(), leading(buffer.available()));
        let kept = zeros.min(MARGIN);
        buffer.take(zeros - kept, 0, 0);
        let bytes = buffer.offset() - from + kept as u64;
        if zeros < found {
            break bytes;
        }
        if !buffer.need(kept + 1)? {
            buffer.take(kept, 0, 0);
            return Ok(Damage::Zeros { bytes, skipped: bytes, behind: Behind::End });
        }
    };
    let mut behind = Behind::Packets;
    while !begins(buffer)? {
        if !buffer.need(1)? {
            behind = Behind::Nothing;
            break;
        }
        buffer.take(1, 0, 0);
    }
    let skipped = buffer.offset() - from;
    Ok(Damage::Zeros { bytes: bytes.min(skipped), skipped, behind })
}

/// The number of leading zeros.
fn leading(bytes: &[u8]) -> usize {
    // Without an early exit within a stretch, so that the compiler can process many bytes at once.
    let is_zeros = |bytes: &&[u8]| bytes.iter().fold(0, |all, byte| all | byte) == 0;
    let whole: usize = bytes.chunks(STRETCH).take_while(is_zeros).map(<[u8]>::len).sum();
    whole + bytes[whole..].iter().take_while(|byte| **byte == 0).count()
}
