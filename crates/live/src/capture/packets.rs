//! The packets of a block: a `struct tpacket_block_desc`, then packets, each with a `struct tpacket3_hdr` (linux/if_packet.h).

use super::CaptureError;
use queuescope_wire::Nanos;
use std::ops::ControlFlow;

/// A captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured<'a> {
    /// When it passed, by the kernel's clock, since the Unix epoch.
    pub at: Nanos,
    /// Its length in bytes, with its VLAN tag. For a super-packet of segmentation offload, the length of the whole super-packet.
    pub original_len: u32,
    /// The copied part of it.
    pub data: &'a [u8],
    /// Whether it went out.
    pub is_outgoing: bool,
    /// Whether it is a super-packet of TCP segments.
    pub is_super: bool,
    /// Whether its checksum is left to the network card, so that the captured checksum is not the one on the wire.
    pub is_unsummed: bool,
}

/// Calls `each` with the packets of a block, until it breaks.
pub(super) fn packets(
    block: &[u8],
    snaplen: u32,
    dlt: u32,
    tagged: &mut Vec<u8>,
    each: &mut impl FnMut(&Captured<'_>) -> ControlFlow<()>,
) -> Result<(), CaptureError> {
    const BEYOND: CaptureError = CaptureError::Block { what: "a packet extends past its end" };
    let word = |at: usize| Some(u32::from_ne_bytes(block.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let half = |at: usize| Some(u16::from_ne_bytes(block.get(at..at.checked_add(2)?)?.try_into().ok()?));
    let (Some(count), Some(first)) = (word(12), word(16)) else { return Err(BEYOND) };
    let mut at = first as usize;
    for left in (0..count).rev() {
        let header = || {
            let times = [word(at + 4)?, word(at + 8)?];
            Some((word(at)?, times, [word(at + 12)?, word(at + 16)?, word(at + 20)?], half(at + 24)?))
        };
        let tag = || Some((word(at + 32)?, half(at + 36)?));
        let data = |start: u16, length: u32| {
            let start = at + usize::from(start);
            block.get(start..start.checked_add(length as usize)?)
        };
        let (next, [seconds, nanos], [length, original_len, status], start) = header().ok_or(BEYOND)?;
        let (data, (tag, protocol)) = (data(start, length).ok_or(BEYOND)?, tag().ok_or(BEYOND)?);
        // `sll_pkttype` of the `struct sockaddr_ll` behind the header.
        let kind = *block.get(at + 48 + 10).ok_or(BEYOND)?;
        let has = |flag| status & flag != 0;
        let mut captured = Captured {
            at: Nanos(u64::from(seconds) * 1_000_000_000 + u64::from(nanos)),
            original_len,
            data,
            is_outgoing: kind == libc::PACKET_OUTGOING,
            is_super: has(SUPER),
            is_unsummed: has(libc::TP_STATUS_CSUMNOTREADY),
        };
        if has(libc::TP_STATUS_VLAN_VALID) && dlt == 1 && data.len() >= ADDRESSES {
            let protocol = if has(libc::TP_STATUS_VLAN_TPID_VALID) { protocol } else { 0x8100 };
            tagged.clear();
            tagged.extend_from_slice(&data[..ADDRESSES]);
            tagged.extend_from_slice(&protocol.to_be_bytes());
            tagged.extend_from_slice(&(tag as u16).to_be_bytes());
            tagged.extend_from_slice(&data[ADDRESSES..]);
            tagged.truncate(snaplen as usize);
            captured = Captured { original_len: original_len.saturating_add(4), data: tagged, ..captured };
        }
        if each(&captured).is_break() {
            return Ok(());
        }
        // Otherwise a block could hand over the same packet four thousand million times.
        if left > 0 && next < HEADER {
            return Err(CaptureError::Block { what: "a packet overlaps the one before it" });
        }
        at = at.checked_add(next as usize).ok_or(BEYOND)?;
    }
    Ok(())
}

/// The header of a packet, bytes.
const HEADER: u32 = 48;

/// The addresses of Ethernet, which a VLAN tag follows, bytes.
const ADDRESSES: usize = 12;
/// `TP_STATUS_GSO_TCP`; kernels before 6.4 do not set it.
const SUPER: u32 = 1 << 8;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count(block: &[u8]) -> Result<usize, CaptureError> {
        let (mut tagged, mut counted) = (Vec::new(), 0);
        packets(block, 100, 1, &mut tagged, &mut |captured| {
            assert!(captured.data.len() <= block.len());
            counted += 1;
            ControlFlow::Continue(())
        })?;
        Ok(counted)
    }

    /// A block with `packets` packets of `length` bytes each.
    fn block(packets: u32, length: u32, status: u32) -> Vec<u8> {
        let mut block = vec![0; 4096];
        let mut word = |at: usize, value: u32| block[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        word(12, packets);
        word(16, 48);
        for n in 0..packets as usize {
            let at = 48 + n * 192;
            // The offset of the next packet, the time, the captured and the original length, the status, the offset of the data, the tag.
            let half = u32::from_ne_bytes([82u16.to_ne_bytes(), 96u16.to_ne_bytes()].concat().try_into().unwrap());
            let words = [192, 1, 2, length, 1500, status, half, 0, 7, 0x88a8];
            words.iter().enumerate().for_each(|(index, value)| word(at + 4 * index, *value));
        }
        block
    }

    #[test]
    fn packets_are_handed_over_until_the_callback_breaks() {
        let mut received = Vec::new();
        let flags = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID | libc::TP_STATUS_CSUMNOTREADY;
        packets(&block(5, 60, flags), 62, 1, &mut Vec::new(), &mut |it| {
            let (at, tag) = (it.at, it.data[12..16].to_vec());
            received.push((at, it.original_len, it.data.len(), tag, it.is_unsummed, it.is_super));
            if received.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .unwrap();
        let expected = (Nanos(1_000_000_002), 1504, 62, vec![0x88, 0xa8, 0, 7], true, false);
        assert_eq!(received, [expected.clone(), expected.clone(), expected]);
    }

    #[test]
    fn packets_that_extend_past_the_end_are_refused() {
        assert_eq!(count(&block(20, 100, 0)).unwrap(), 20);
        assert!(count(&block(20, 4096, 0)).is_err());
        let mut turning = block(2, 100, 0);
        turning[48..52].fill(0);
        assert!(count(&turning).is_err());
        assert!(count(&[]).is_err() && count(&block(1, 1, 0)[..100]).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_bytes_make_the_parser_read_past_the_block(noise in prop::collection::vec((0..2048usize, any::<u8>()), 0..64), packets in 0..20u32) {
            let mut block = block(packets, 100, 0xffff_fffe);
            noise.iter().for_each(|(at, byte)| block[*at] = *byte);
            // Any result is right, as long as it does not panic.
            let _ = count(&block);
        }
    }
}
