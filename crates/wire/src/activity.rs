//! The header that carries an activity of ABC on Ethernet frames (Menth et al., Future Internet 2019, section 3).
//!
//! The paper leaves the header open, and its prototype has none. Here, it is behind the addresses of the frame: the EtherType
//! 0x88b5 (for local experiments, IEEE 802), 16 bits of activity, and the EtherType of what follows. A frame is 4 bytes longer
//! with it. The P4 programs `abc-edge`, `abc-core` and `abc-strip` have the same header.

use crate::parse::VLAN_TAGS;
use std::ops::Range;

/// The header of ABC: the activity of a packet's aggregate.
///
/// ```
/// use queuescope_wire::{ActivityHeader, MalformedActivity};
///
/// let frame = [[2; 6], [4; 6]].concat();
/// let frame = [&frame[..], &[0x08, 0x00, 0x45]].concat();
/// let mut within_the_domain = ActivityHeader(256).pushed(&frame);
/// assert_eq!(within_the_domain.len(), frame.len() + ActivityHeader::LENGTH);
/// let (header, carried) = ActivityHeader::take(&mut within_the_domain)?;
/// assert_eq!(header, Some(ActivityHeader(256)));
/// assert_eq!(carried, frame);
/// # Ok::<(), MalformedActivity>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivityHeader(
    /// log2 of the measured over the reference rate, in units of 1/256.
    pub i16,
);

/// Why the activity header of a frame cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedActivity {
    /// The frame ends within the header.
    #[error("the activity header is cut short")]
    CutShort,
    /// Another activity header follows.
    #[error("an activity header follows another one")]
    Doubled,
    /// The header is behind a VLAN tag, and not behind the addresses.
    #[error("the activity header is behind a VLAN tag")]
    BehindTag,
}

/// The two addresses of a frame.
const ADDRESSES: usize = 12;
/// The bytes of a VLAN tag.
const TAG: usize = 4;

impl ActivityHeader {
    /// The EtherType of the header.
    pub const ETHERTYPE: u16 = 0x88b5;

    /// The bytes by which a frame grows.
    pub const LENGTH: usize = 4;

    /// Reads the header of an Ethernet frame, if it has one.
    ///
    /// # Errors
    /// Fails if the header is cut short, followed by another one, or behind a VLAN tag.
    pub fn read(frame: &[u8]) -> Result<Option<Self>, MalformedActivity> {
        if word(frame, ADDRESSES) != Some(Self::ETHERTYPE) {
            return if is_tagged(frame, ADDRESSES) { Err(MalformedActivity::BehindTag) } else { Ok(None) };
        }
        let next = ADDRESSES + Self::LENGTH;
        let activity = word(frame, ADDRESSES + 2).zip(word(frame, next));
        let (activity, carried) = activity.ok_or(MalformedActivity::CutShort)?;
        if carried == Self::ETHERTYPE {
            Err(MalformedActivity::Doubled)
        } else if is_tagged(frame, next) {
            Err(MalformedActivity::BehindTag)
        } else {
            Ok(Some(Self(activity.cast_signed())))
        }
    }

    /// Reads the header of an Ethernet frame, and removes it. Returns the frame as it came into the domain, which is within
    /// the memory of the given one.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn take(frame: &mut [u8]) -> Result<(Option<Self>, &mut [u8]), MalformedActivity> {
        let header = Self::read(frame)?;
        if header.is_none() {
            return Ok((None, frame));
        }
        frame.copy_within(..ADDRESSES, Self::LENGTH);
        Ok((header, &mut frame[Self::LENGTH..]))
    }

    /// The frame with this header, in three parts: its addresses, the header, and the rest. A frame without an EtherType has no
    /// place for a header.
    pub fn push(self, frame: &[u8]) -> Option<(&[u8], [u8; Self::LENGTH], &[u8])> {
        word(frame, ADDRESSES)?;
        let (addresses, rest) = frame.split_at(ADDRESSES);
        let ([a, b], [c, d]) = (Self::ETHERTYPE.to_be_bytes(), self.0.to_be_bytes());
        Some((addresses, [a, b, c, d], rest))
    }

    /// The frame with this header, in memory of its own. A frame without an EtherType stays as it is.
    pub fn pushed(self, frame: &[u8]) -> Vec<u8> {
        match self.push(frame) {
            Some((addresses, header, rest)) => [addresses, &header, rest].concat(),
            None => frame.to_vec(),
        }
    }
}

/// Whether there are VLAN tags at `at`, and an activity header behind them.
fn is_tagged(frame: &[u8], at: usize) -> bool {
    let is_tag = |at: &usize| word(frame, *at).is_some_and(|kind| VLAN_TAGS.contains(&kind));
    let behind = (at..).step_by(TAG).find(|at| !is_tag(at));
    behind.is_some_and(|behind| behind > at && word(frame, behind) == Some(ActivityHeader::ETHERTYPE))
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    let bytes: Range<usize> = at..at + 2;
    frame.get(bytes).and_then(|bytes| bytes.try_into().ok()).map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame whose bytes from the EtherType on are these.
    fn frame(behind: &[u8]) -> Vec<u8> {
        [&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12][..], behind].concat()
    }

    #[test]
    fn headers_by_hand() {
        use MalformedActivity::{BehindTag, CutShort, Doubled};
        let (ip, tag, old_tag) = ([0x08, 0x00, 0x45], [0x81, 0x00, 0x20, 0x07], [0x91, 0x00, 0, 0]);
        let (own, tagged) = ([0x88, 0xb5, 0xff, 0x00], [0x88, 0xa8, 0, 1, 0x81, 0, 0, 2]);
        for (parts, read) in [
            (vec![&ip[..]], Ok(None)),
            (vec![&tag, &ip], Ok(None)),
            (vec![], Ok(None)),
            (vec![&own, &ip], Ok(Some(ActivityHeader(-256)))),
            (vec![&own, &tag, &ip], Ok(Some(ActivityHeader(-256)))),
            // An EtherType, and nothing behind it.
            (vec![&own, &ip[..2]], Ok(Some(ActivityHeader(-256)))),
            (vec![&own, &ip[..1]], Err(CutShort)),
            (vec![&own], Err(CutShort)),
            (vec![&own[..3]], Err(CutShort)),
            (vec![&own[..2]], Err(CutShort)),
            // Half an EtherType is none.
            (vec![&own[..1]], Ok(None)),
            (vec![&own, &own, &ip], Err(Doubled)),
            (vec![&own, &own[..2]], Err(Doubled)),
            (vec![&tag, &own, &ip], Err(BehindTag)),
            (vec![&old_tag, &own, &ip], Err(BehindTag)),
            (vec![&tagged, &own], Err(BehindTag)),
            (vec![&own, &tag, &own], Err(BehindTag)),
            (vec![&tagged, &own[..1]], Ok(None)),
        ] {
            let mut frame = frame(&parts.concat());
            assert_eq!(ActivityHeader::read(&frame), read, "{frame:02x?}");
            let whole = frame.clone();
            let taken = ActivityHeader::take(&mut frame).map(|(header, frame)| (header, frame.to_vec()));
            let left = |header: Option<_>| match header {
                Some(_) => [&whole[..12], &whole[16..]].concat(),
                None => whole.clone(),
            };
            assert_eq!(taken, read.map(|header| (header, left(header))));
        }
        assert_eq!(ActivityHeader(1).pushed(&[7; 13]), [7; 13]);
        assert_eq!(ActivityHeader(0x0102).pushed(&frame(&ip)), frame(&[0x88, 0xb5, 1, 2, 0x08, 0x00, 0x45]));
    }

    proptest! {
        /// What an exit sends is what came into the edge, whatever is in the frame; and an edge never lets in what an exit or a core would refuse.
        #[test]
        fn what_leaves_a_domain_is_what_came_into_it(
            activity: i16, behind in prop::collection::vec(prop_oneof![Just(0x88), Just(0xb5), Just(0x81), Just(0x00), any::<u8>()], 2..80)
        ) {
            let plain = frame(&behind);
            let header = ActivityHeader(activity);
            let mut pushed = header.pushed(&plain);
            prop_assert_eq!(pushed.len(), plain.len() + ActivityHeader::LENGTH);
            match ActivityHeader::read(&plain) {
                Ok(None) => prop_assert_eq!(ActivityHeader::take(&mut pushed).map(|(header, frame)| (header, frame.to_vec())), Ok((Some(header), plain))),
                // The edge refuses these.
                Ok(Some(_)) | Err(_) => prop_assert!(ActivityHeader::take(&mut pushed).is_err()),
            }
        }

        #[test]
        fn any_bytes_are_read(mut bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let length = bytes.len();
            if let Ok((header, frame)) = ActivityHeader::take(&mut bytes) {
                prop_assert_eq!(frame.len() + header.map_or(0, |_| ActivityHeader::LENGTH), length);
            }
        }
    }
}
