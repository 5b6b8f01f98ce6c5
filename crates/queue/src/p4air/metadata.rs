//! What P4air hands on with a packet, in the 64 bits of [`Headers::metadata`](crate::Headers::metadata).

use queuescope_sketch::{FlowGroup, RoundTrip};

/// What ingress hands to egress with a packet, and egress to ingress with a copy: the flow's entry, its group, and the
/// round trip that the packet ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Metadata {
    pub entry: u32,
    pub group: FlowGroup,
    pub ended: Option<RoundTrip>,
    /// In a copy: the flow's packet waited longer than the target, and its group stays.
    pub is_late: bool,
}

impl Metadata {
    const TRACKED: u64 = 1 << 63;
    const ENDED: u64 = 1 << 62;
    const REDUCED: u64 = 1 << 61;
    const LATE: u64 = 1 << 39;

    /// A packet of no tracked flow has no metadata, which is 0.
    #[inline]
    pub fn pack(self) -> u64 {
        let ended = self.ended.map_or(0, |ended| {
            Self::ENDED | (u64::from(ended.is_reduced) * Self::REDUCED) | u64::from(ended.pulses) << 40
        });
        let late = u64::from(self.is_late) * Self::LATE;
        Self::TRACKED | ended | late | (self.group as u64) << 32 | u64::from(self.entry)
    }

    #[inline]
    pub fn unpack(bits: u64) -> Option<Self> {
        if bits & Self::TRACKED == 0 {
            return None;
        }
        let ended = (bits & Self::ENDED != 0).then_some(RoundTrip {
            sent: 0,
            before: 0,
            is_reduced: bits & Self::REDUCED != 0,
            pulses: (bits >> 40) as u8,
        });
        let group = *FlowGroup::ALL.get((bits >> 32) as usize & 0b111)?;
        Some(Self { entry: bits as u32, group, ended, is_late: bits & Self::LATE != 0 })
    }
}

/// The mark of a packet that ingress delays. Its metadata counts the passes.
pub(super) const DELAYED: u64 = 1 << 60;
/// A pass of such a packet, and the bits that count passes.
pub(super) const PASS: u64 = 1 << 48;
pub(super) const PASSES: u64 = 0xfff * PASS;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn metadata_comes_back_as_it_was(
            entry in any::<u32>(), group in 0..FlowGroup::ALL.len(), ended in any::<Option<(bool, u8)>>(), is_late in any::<bool>(),
        ) {
            let ended = ended.map(|(is_reduced, pulses)| RoundTrip { sent: 0, before: 0, is_reduced, pulses });
            let metadata = Metadata { entry, group: FlowGroup::ALL[group], ended, is_late };
            prop_assert_eq!(Metadata::unpack(metadata.pack()), Some(metadata));
            prop_assert_eq!(metadata.pack() & (DELAYED | PASSES), 0, "passes have their own bits");
            prop_assert_eq!(Metadata::unpack(0), None);
        }
    }
}
