//! The border of an ABC domain: which interface of a link is within it, and what happens to activity headers there.
//!
//! Within the domain, frames carry their activity in a header ([`ActivityHeader`]). A link takes it off when it reads a frame, so that its queues and
//! its program see the frame as it came into the domain, and puts it back when the frame goes to an interface of the domain. So a frame that leaves
//! the domain is the one that came into it. Only the domain writes activities (Menth et al., Future Internet 2019, section 3.4): a frame that
//! brings one from outside is refused.

use queuescope_queue::{Activity, PipelineParams};
use queuescope_wire::{ActivityHeader, MalformedActivity};

/// On which side of the border an interface is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Within the domain: frames may have an activity header.
    Inside,
    /// Outside: no frame has one.
    Outside,
}

/// The border at the two interfaces of a link.
#[derive(Debug, Clone, Copy)]
pub struct Border {
    sides: [Side; 2],
    counts: BorderCounts,
}

/// What the border did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BorderCounts {
    /// Frames refused because they brought a header from outside.
    pub forged: u64,
    /// Frames refused because they end within the header.
    pub cut_short: u64,
    /// Frames refused because another header follows theirs.
    pub doubled: u64,
    /// Frames refused because the header is behind a VLAN tag.
    pub behind_tag: u64,
}

impl BorderCounts {
    /// All refused frames.
    pub fn refused(&self) -> u64 {
        let Self { forged, cut_short, doubled, behind_tag } = self;
        forged + cut_short + doubled + behind_tag
    }
}

impl Border {
    /// The border of a link with this program, from its first interface to its second; none if the program is not ABC. Where packets come from outside
    /// the domain, the program meters; where they leave it, the program strips.
    pub fn of(program: Option<&PipelineParams>) -> Option<Self> {
        let Some(PipelineParams::Abc(params)) = program else { return None };
        let role = params.ports.first().copied().unwrap_or_default();
        let side = |is_outside| if is_outside { Side::Outside } else { Side::Inside };
        Some(Self { sides: [side(role.meters), side(role.strips)], counts: BorderCounts::default() })
    }

    /// The side of each interface.
    pub fn sides(&self) -> [Side; 2] {
        self.sides
    }

    /// What it did so far.
    pub fn counts(&self) -> BorderCounts {
        self.counts
    }

    /// A frame comes from an interface. Returns its activity and the frame without the header; none if it is refused.
    #[inline]
    pub(crate) fn enter<'a>(&mut self, from: usize, frame: &'a mut [u8]) -> Option<(Option<Activity>, &'a mut [u8])> {
        match ActivityHeader::take(frame) {
            Ok((None, frame)) => Some((None, frame)),
            Ok((Some(_), _)) if self.sides[from] == Side::Outside => {
                self.counts.forged += 1;
                None
            }
            Ok((Some(header), frame)) => Some((Some(Activity(header.0)), frame)),
            Err(why) => {
                let count = match why {
                    MalformedActivity::CutShort => &mut self.counts.cut_short,
                    MalformedActivity::Doubled => &mut self.counts.doubled,
                    MalformedActivity::BehindTag => &mut self.counts.behind_tag,
                };
                *count += 1;
                None
            }
        }
    }

    /// The header of a frame with this activity that goes to an interface.
    #[inline]
    pub(crate) fn leave(&self, to: usize, activity: Option<Activity>) -> Option<ActivityHeader> {
        activity.filter(|_| self.sides[to] == Side::Inside).map(|activity| ActivityHeader(activity.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use queuescope_queue::{AbcParams, ActivityAqmParams, PortRole};

    fn border(role: PortRole) -> Border {
        let params = AbcParams { ports: vec![role], ..AbcParams::default() };
        Border::of(Some(&PipelineParams::Abc(params))).expect("it is ABC")
    }

    #[test]
    fn roles_have_sides() {
        use Side::{Inside, Outside};
        let aqm = ActivityAqmParams::default();
        for (role, sides) in [
            (PortRole::edge(aqm), [Outside, Inside]),
            (PortRole::core(aqm), [Inside, Inside]),
            (PortRole::exit(), [Inside, Outside]),
            (PortRole::single(aqm), [Outside, Outside]),
        ] {
            assert_eq!(border(role).sides(), sides);
        }
        assert!(Border::of(None).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// From an edge over a core to an exit. Whatever the edge takes, no node behind it refuses.
        #[test]
        fn a_frame_leaves_a_domain_as_it_came_into_it(
            activity: i16, behind in prop::collection::vec(prop_oneof![Just(0x88), Just(0xb5), Just(0x81), Just(0), any::<u8>()], 2..60)
        ) {
            let aqm = ActivityAqmParams::default();
            let frame = [&[3; 12][..], &behind].concat();
            let mut edge = border(PortRole::edge(aqm));
            let mut on_cable = frame.clone();
            let Some((None, entered)) = edge.enter(0, &mut on_cable) else {
                prop_assert_eq!(edge.counts().refused(), 1);
                return Ok(());
            };
            prop_assert_eq!(&*entered, &frame);
            let mut carried = Some(Activity(activity));
            let mut plain = entered.to_vec();
            let mut header = edge.leave(1, carried);
            for mut node in [border(PortRole::core(aqm)), border(PortRole::exit())] {
                let mut on_cable = header.expect("the cable is within the domain").pushed(&plain);
                let entered = node.enter(0, &mut on_cable).map(|(activity, frame)| (activity, frame.to_vec()));
                (carried, plain) = entered.expect("it is valid");
                header = node.leave(1, carried);
            }
            prop_assert_eq!((carried, header, plain), (Some(Activity(activity)), None, frame));
        }
    }

    #[test]
    fn only_the_domain_writes_activities() {
        let aqm = ActivityAqmParams::default();
        let plain = [&[3; 12][..], &[0x08, 0x00, 0x45, 0x00]].concat();
        let with_header = ActivityHeader(-7).pushed(&plain);
        let mut edge = border(PortRole::edge(aqm));
        let mut enter = |from, frame: &[u8]| {
            let mut frame = frame.to_vec();
            edge.enter(from, &mut frame).map(|(activity, frame)| (activity, frame.to_vec()))
        };
        assert_eq!(enter(0, &plain), Some((None, plain.clone())));
        assert_eq!(enter(0, &with_header), None);
        assert_eq!(enter(1, &plain), Some((None, plain.clone())));
        assert_eq!(enter(1, &with_header), Some((Some(Activity(-7)), plain.clone())));
        // From both sides.
        for from in [0, 1] {
            assert_eq!(enter(from, &with_header[..15]), None);
            assert_eq!(enter(from, &ActivityHeader(1).pushed(&with_header)), None);
            assert_eq!(enter(from, &[&[3; 12][..], &[0x81, 0, 0, 1, 0x88, 0xb5, 0, 0, 8, 0]].concat()), None);
        }
        let counts = edge.counts();
        assert_eq!(counts, BorderCounts { forged: 1, cut_short: 2, doubled: 2, behind_tag: 2 });
        assert_eq!(counts.refused(), 7);
        assert_eq!((edge.leave(0, Some(Activity(5))), edge.leave(1, None)), (None, None));
        assert_eq!(edge.leave(1, Some(Activity(5))), Some(ActivityHeader(5)));
    }
}
