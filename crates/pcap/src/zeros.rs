//! Zeros where a packet should begin. A crash leaves them where the length of the file was written and the data was not, a copy
//! where it could not read the disk.

use std::io;

use crate::buffer::Buffer;
use crate::error::{Behind, Damage};

/// The longest packet or block that is looked for behind zeros, bytes: over any that a link or segmentation offload makes.
pub(crate) const LONGEST: u32 = 1 << 20;
/// Bytes of a header that can be zeros though a packet begins there. They are looked at once more behind the zeros.
const MARGIN: usize = 24;
/// What is looked through at once, bytes.
const STRETCH: usize = 4096;

/// Consumes zeros, and what stands behind them up to where a packet begins, as `begins` says of what is available next.
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

/// How many zeros stand at the beginning.
fn leading(bytes: &[u8]) -> usize {
    // Without an early end in a stretch, so that it is done by many bytes at once.
    let is_zeros = |bytes: &&[u8]| bytes.iter().fold(0, |all, byte| all | byte) == 0;
    let whole: usize = bytes.chunks(STRETCH).take_while(is_zeros).map(<[u8]>::len).sum();
    whole + bytes[whole..].iter().take_while(|byte| **byte == 0).count()
}
