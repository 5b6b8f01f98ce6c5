//! P4air's fingerprint: which kind of congestion control a flow has, from what a switch sees of it (Turkovic and
//! Kuipers, ICNP 2020, section III-A).
//!
//! A flow is judged once in each of its round-trip times, by three things:
//!
//! - how many packets it sent, before the queue ([`SendingRate`]);
//! - the deepest queue that its packets found, behind the queue ([`QueueGrowth`]);
//! - how often its rate pulsed, as BBR's does when it probes for bandwidth.
//!
//! Everything here is an integer, and each register is read and written once for each packet, as a switch must do. A
//! switch program keeps the two halves on the two sides of its queue. [`Fingerprint`] is both halves in one value, for a
//! meter that sees departures.
//!
//! The paper leaves these points open. The choice is the default; a parameter measures its effect:
//!
//! | open in the paper | here |
//! | --- | --- |
//! | one percent of what | of the largest depth of the previous round trip, and at least one packet ([`Rise`]) |
//! | what a reduction of the rate is | an eighth less than in the previous round trip ([`FingerprintParams::reduction_shift`]); one packet less is noise, because a round trip does not hold a whole number of packets |
//! | whether the count starts again with a new group | yes ([`FingerprintParams::restarts`]): the paper's figure 6(d) has NewReno become loss-based at `m_PL` = 6 some 120 round trips after it became loss-delay at `m_LD` = 4, and not two |
//! | what BwEst counts | pulses: an eighth more after a settled rate, then an eighth less within [`FingerprintParams::pulse`] round trips ([`RatePattern`]); slow start and the recovery from a loss have increases, too |
//! | noise in the rate | a change by fewer than four packets does not count ([`FingerprintParams::least_change`]) |
//! | when the count ends | never; but a pulse counts only if another came within [`FingerprintParams::period`] round trips |
//! | packets or bytes | what the caller counts: P4air counts packets |
//! | a flow whose handshake was not seen | has [`FingerprintParams::default_rtt`] |
//! | a repeated SYN | the last one counts ([`FingerprintParams::repeated_syn_restarts`]); the paper subtracts the time of the first SYN from that of the next packet, which is then the repeated SYN |

use queuescope_wire::Nanos;

/// The kind of a flow (section III-A): short-lived, or one of four kinds of congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowGroup {
    /// A few packets now and then, such as DNS, and packets without data.
    Ant,
    /// A TCP flow in slow start.
    Mouse,
    /// It backs off when the queue grows: Vegas. Every long-lived flow begins here.
    DelayBased,
    /// It backs off when packets are lost, and slows down when the queue grows: Illinois.
    LossDelay,
    /// It backs off only when packets are lost: CUBIC.
    LossBased,
    /// It sends at a rate that it has measured: BBR.
    ModelBased,
    /// Another switch shapes it already, as a mark on its packets says (section V). No fingerprint finds this group.
    Shaped,
    /// It backs off in proportion to its CE marks: Prague, as ECT(1) on its packets says (RFC 9331). No fingerprint finds this
    /// group.
    Scalable,
}

impl FlowGroup {
    /// All groups.
    pub const ALL: [Self; 8] = [
        Self::Ant,
        Self::Mouse,
        Self::DelayBased,
        Self::LossDelay,
        Self::LossBased,
        Self::ModelBased,
        Self::Shaped,
        Self::Scalable,
    ];

    /// The groups of long-lived flows that a fingerprint finds, in the order in which a switch lays out their queues.
    pub const LONG_LIVED: [Self; 4] = [Self::DelayBased, Self::LossDelay, Self::LossBased, Self::ModelBased];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ant => "ant",
            Self::Mouse => "mouse",
            Self::DelayBased => "delay-based",
            Self::LossDelay => "loss-delay",
            Self::LossBased => "loss-based",
            Self::ModelBased => "model-based",
            Self::Shaped => "shaped",
            Self::Scalable => "scalable",
        }
    }

    /// Its place in [`Self::LONG_LIVED`], behind which those of shaped and of scalable flows are; `None` for a short-lived flow.
    #[inline]
    pub fn long_lived(self) -> Option<usize> {
        match self {
            Self::Ant | Self::Mouse => None,
            Self::DelayBased => Some(0),
            Self::LossDelay => Some(1),
            Self::LossBased => Some(2),
            Self::ModelBased => Some(3),
            Self::Shaped => Some(4),
            Self::Scalable => Some(5),
        }
    }
}

/// The parameters of a fingerprint. Defaults are the paper's (section IV-B), except where a field says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FingerprintParams {
    /// Round trips of a growing queue after which a delay-based flow becomes loss-delay: `m_LD`, 4.
    pub loss_delay_after: u8,
    /// Round trips of a growing queue after which a loss-delay flow becomes loss-based: `m_PL`, 12.
    pub loss_based_after: u8,
    /// Pulses of the rate after which a flow becomes model-based: `m_M`, 4.
    pub model_based_after: u8,
    /// Whether a flow's count of round trips starts again when it changes its group: true.
    pub restarts: bool,
    /// By how much the deepest queue of a round trip must exceed that of the previous one.
    pub rise: Rise,
    /// A round trip with fewer packets than the previous one less `previous >> reduction_shift` is a reduction: 3, an
    /// eighth.
    pub reduction_shift: u8,
    /// What counts towards `model_based_after`.
    pub pattern: RatePattern,
    /// The fewest packets by which the rate must change for what `pattern` counts: 4. An eighth of a slow flow's rate is
    /// less, and no more than noise: ACKs come for two packets, and a round trip does not hold a whole number of them.
    pub least_change: u32,
    /// The most round trips from the increase of a pulse to its decrease: 2.
    pub pulse: u8,
    /// The fewest round trips without a decrease before the increase of a pulse: 3. The rebound after a loss is not a pulse.
    pub settled: u8,
    /// The most round trips between two pulses that count together; 0 for any number. 32, which is four of BBR's cycles.
    pub period: u8,
    /// Whether the round-trip time is measured from the last SYN: true. From the first one, a lost SYN adds its timeout of
    /// a second or more, and the flow's share is as much too large.
    pub repeated_syn_restarts: bool,
    /// The round-trip time of a flow whose handshake was not seen: 100 ms.
    pub default_rtt: Nanos,
}

impl Default for FingerprintParams {
    fn default() -> Self {
        Self {
            loss_delay_after: 4,
            loss_based_after: 12,
            model_based_after: 4,
            restarts: true,
            rise: Rise::OfPrevious { shift: 7 },
            reduction_shift: 3,
            pattern: RatePattern::Pulses,
            least_change: 4,
            pulse: 2,
            settled: 3,
            period: 32,
            repeated_syn_restarts: true,
            default_rtt: Nanos(100_000_000),
        }
    }
}

/// When a queue grows from one round trip to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rise {
    /// By more than `previous >> shift`. A shift of 7 is 0.8 %, the power of two that is nearest to one percent.
    OfPrevious {
        /// How far the previous depth is shifted right.
        shift: u8,
    },
    /// By at least this many packets, such as one percent of the queue's limit.
    Packets(u32),
}

impl Rise {
    #[inline]
    fn is_over(self, depth: u32, before: u32) -> bool {
        match self {
            Self::OfPrevious { shift } => depth > before.saturating_add(shifted(before, shift)),
            Self::Packets(count) => depth >= before.saturating_add(count.max(1)),
        }
    }
}

/// What BwEst counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatePattern {
    /// Each round trip with at least an eighth more packets than the previous one: the paper's words.
    Increases,
    /// An increase and then a decrease, each of at least an eighth.
    Pulses,
}

/// Time in units of 1024 ns in 32 bits, as a register holds it. It wraps after 73 minutes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticks(pub u32);

impl Ticks {
    /// The unit.
    pub const UNIT: Nanos = Nanos(1 << 10);

    /// The time of a packet.
    #[inline]
    pub fn new(now: Nanos) -> Self {
        Self((now.0 >> 10) as u32)
    }

    /// The time from `earlier` to this one, in ticks.
    #[inline]
    pub fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}

/// What a switch keeps of a flow before the queue: its round-trip time, and what it sent in a round trip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SendingRate {
    /// In ticks; 0 until it is known. Until then `began` is the time of the SYN.
    rtt: u32,
    /// When the round trip began.
    began: Ticks,
    /// Packets in this round trip and in the previous one.
    sent: u32,
    before: u32,
    /// Pulses so far (BwEst).
    pulses: u8,
    /// Round trips since the last pulse.
    since_pulse: u8,
    /// Round trips since an increase that no decrease has followed yet; 0 if there is none.
    since_increase: u8,
    /// Round trips since the last decrease.
    since_decrease: u8,
}

/// A round trip of a flow that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// Packets that the flow sent in it.
    pub sent: u32,
    /// Packets that it sent in the one before.
    pub before: u32,
    /// Whether that is a reduction of the rate.
    pub is_reduced: bool,
    /// Pulses of the rate so far (BwEst).
    pub pulses: u8,
}

impl SendingRate {
    /// A flow that begins with a SYN. The next packet that is not a SYN gives its round-trip time.
    pub fn with_syn(now: Nanos) -> Self {
        Self { began: Ticks::new(now), ..Self::default() }
    }

    /// Another SYN of the flow, which repeats the first one.
    pub fn on_repeated_syn(&mut self, now: Nanos, params: &FingerprintParams) {
        if params.repeated_syn_restarts && self.rtt == 0 {
            self.began = Ticks::new(now);
        }
    }

    /// A flow whose handshake was not seen.
    pub fn without_handshake(now: Nanos, params: &FingerprintParams) -> Self {
        Self { rtt: ticks(params.default_rtt), began: Ticks::new(now), ..Self::default() }
    }

    /// The round-trip time, once it is known; to a tick.
    #[inline]
    pub fn rtt(&self) -> Option<Nanos> {
        (self.rtt > 0).then_some(Nanos(u64::from(self.rtt) << 10))
    }

    /// Packets in this round trip so far.
    #[inline]
    pub fn sent(&self) -> u32 {
        self.sent
    }

    /// Packets in the previous round trip.
    #[inline]
    pub fn before(&self) -> u32 {
        self.before
    }

    /// A packet of the flow, other than a SYN. `count` is what it adds: 1, or its bytes. Returns the round trip that it
    /// ends, if any; the packet belongs to the next one.
    #[inline]
    pub fn on_packet(&mut self, count: u32, now: Nanos, params: &FingerprintParams) -> Option<RoundTrip> {
        let now = Ticks::new(now);
        let age = now.since(self.began);
        if self.rtt == 0 {
            // The handshake is over.
            (self.rtt, self.began, self.sent) = (age.max(1), now, count);
            return None;
        }
        if age < self.rtt {
            self.sent = self.sent.saturating_add(count);
            return None;
        }
        let ended = self.judge(params);
        (self.began, self.before, self.sent) = (now, self.sent, count);
        Some(ended)
    }

    /// Replaces the round-trip time by another estimate, such as one from TCP timestamps. It stays at least a tick.
    pub fn set_rtt(&mut self, rtt: Nanos) {
        self.rtt = ticks(rtt);
    }

    /// Forgets the pulses: tracking starts when a flow becomes long-lived.
    pub fn forget_pulses(&mut self) {
        (self.pulses, self.since_pulse, self.since_increase, self.since_decrease) = (0, 0, 0, 0);
    }

    fn judge(&mut self, params: &FingerprintParams) -> RoundTrip {
        let (sent, before) = (self.sent, self.before);
        let change = (before >> 3).max(params.least_change).max(1);
        let increased = before > 0 && sent >= before.saturating_add(change);
        let decreased = before.saturating_sub(sent) >= change;
        self.since_pulse = self.since_pulse.saturating_add(1);
        let pulsed = match params.pattern {
            RatePattern::Increases => increased,
            RatePattern::Pulses => self.is_pulse(increased, decreased, params),
        };
        if pulsed {
            let apart = params.period > 0 && self.since_pulse > params.period;
            self.pulses = if apart { 1 } else { self.pulses.saturating_add(1) };
            self.since_pulse = 0;
        }
        let is_reduced = sent < before.saturating_sub(shifted(before, params.reduction_shift));
        RoundTrip { sent, before, is_reduced, pulses: self.pulses }
    }

    fn is_pulse(&mut self, increased: bool, decreased: bool, params: &FingerprintParams) -> bool {
        self.since_decrease = if decreased { 0 } else { self.since_decrease.saturating_add(1) };
        // The increase itself counts as a round trip without a decrease.
        if increased && self.since_decrease > params.settled {
            self.since_increase = 1;
            return false;
        }
        let pulsed = decreased && self.since_increase > 0;
        self.since_increase = match self.since_increase {
            0 => 0,
            _ if pulsed => 0,
            since if since >= params.pulse => 0,
            since => since + 1,
        };
        pulsed
    }
}

/// What a switch keeps of a flow behind the queue: the deepest queue that its packets found in a round trip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueGrowth {
    /// Packets, in this round trip and in the previous one.
    depth: u32,
    before: u32,
    aggressiveness: u8,
}

impl QueueGrowth {
    /// How many round trips in a row the queue has grown.
    #[inline]
    pub fn aggressiveness(&self) -> u8 {
        self.aggressiveness
    }

    /// A packet of the flow that found `depth` packets in its queue. With `ended`, the packet ended a round trip at
    /// ingress, and belongs to the next one. Returns the group that the flow moves to, if any.
    #[inline]
    pub fn on_packet(
        &mut self,
        depth: u32,
        group: FlowGroup,
        ended: Option<&RoundTrip>,
        params: &FingerprintParams,
    ) -> Option<FlowGroup> {
        let Some(ended) = ended else {
            self.depth = self.depth.max(depth);
            return None;
        };
        let grown = params.rise.is_over(self.depth, self.before);
        // A delay-based flow slows down when the queue grows, so its growth counts only while the flow does not.
        let backs_off = group == FlowGroup::DelayBased && ended.is_reduced;
        self.aggressiveness = if grown && !backs_off { self.aggressiveness.saturating_add(1) } else { 0 };
        (self.before, self.depth) = (self.depth, depth);
        let to = params.group_after(group, self.aggressiveness, ended.pulses);
        if to.is_some() && params.restarts {
            self.aggressiveness = 0;
        }
        to
    }
}

impl FingerprintParams {
    /// The group that a flow moves to, given what was found at the end of a round trip.
    fn group_after(&self, group: FlowGroup, aggressiveness: u8, pulses: u8) -> Option<FlowGroup> {
        let may_move = matches!(group, FlowGroup::DelayBased | FlowGroup::LossDelay | FlowGroup::LossBased);
        if may_move && pulses >= self.model_based_after.max(1) {
            return Some(FlowGroup::ModelBased);
        }
        match group {
            FlowGroup::DelayBased if aggressiveness >= self.loss_delay_after.max(1) => Some(FlowGroup::LossDelay),
            FlowGroup::LossDelay if aggressiveness >= self.loss_based_after.max(1) => Some(FlowGroup::LossBased),
            _ => None,
        }
    }

    /// How a mouse's slow start ends, at a packet that has been counted: `ended` is the round trip that the packet ended,
    /// and `fair` is how many packets fill the flow's share of the link in a round trip. `None` while it goes on.
    #[inline]
    pub fn end_of_slow_start(&self, rate: &SendingRate, ended: Option<&RoundTrip>, fair: u32) -> Option<SlowStartEnd> {
        if ended.is_some_and(|ended| ended.sent < ended.before) {
            Some(SlowStartEnd::SentLess)
        } else if rate.sent() >= fair {
            Some(SlowStartEnd::FairShare)
        } else {
            None
        }
    }
}

/// How slow start ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowStartEnd {
    /// The flow sent fewer packets in a round trip than in the one before.
    SentLess,
    /// It filled its share of the link. The switch drops one packet, so that the sender leaves slow start.
    FairShare,
}

/// A whole fingerprint of one flow, for a meter that sees a flow's packets enter and leave one queue.
///
/// ```
/// use queuescope_sketch::{Fingerprint, FingerprintParams, FlowGroup};
/// use queuescope_wire::Nanos;
///
/// let params = FingerprintParams::default();
/// let mut flow = Fingerprint::with_syn(Nanos(0));
/// // 100 packets in each round trip of 100 ms, while the queue grows by two packets in each.
/// for n in 0..2_000u64 {
///     let now = Nanos(100_000_000 + n * 1_000_000);
///     flow.on_packet((n / 50) as u32, 100, now, &params);
/// }
/// assert_eq!(flow.rtt(), Some(Nanos(97_656 << 10)));
/// assert_eq!(flow.group(), FlowGroup::LossBased);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    group: FlowGroup,
    rate: SendingRate,
    growth: QueueGrowth,
}

impl Fingerprint {
    /// A flow that begins with a SYN.
    pub fn with_syn(now: Nanos) -> Self {
        Self::new(SendingRate::with_syn(now))
    }

    /// A flow whose handshake was not seen.
    pub fn without_handshake(now: Nanos, params: &FingerprintParams) -> Self {
        Self::new(SendingRate::without_handshake(now, params))
    }

    fn new(rate: SendingRate) -> Self {
        Self { group: FlowGroup::Mouse, rate, growth: QueueGrowth::default() }
    }

    /// The group that the flow is in.
    pub fn group(&self) -> FlowGroup {
        self.group
    }

    /// Its round-trip time, once it is known; to a tick.
    pub fn rtt(&self) -> Option<Nanos> {
        self.rate.rtt()
    }

    /// A packet of the flow that entered the queue at `now` and found `depth` packets in it. `fair` is how many packets
    /// fill the flow's share of the link in a round trip. Returns whether the group changed.
    pub fn on_packet(&mut self, depth: u32, fair: u32, now: Nanos, params: &FingerprintParams) -> bool {
        let ended = self.rate.on_packet(1, now, params);
        if self.group.long_lived().is_none() {
            let over = params.end_of_slow_start(&self.rate, ended.as_ref(), fair).is_some();
            if over {
                self.group = FlowGroup::DelayBased;
                self.rate.forget_pulses();
            }
            return over;
        }
        let moved = self.growth.on_packet(depth, self.group, ended.as_ref(), params);
        self.group = moved.unwrap_or(self.group);
        moved.is_some()
    }
}

#[inline]
fn shifted(value: u32, by: u8) -> u32 {
    value.checked_shr(by.into()).unwrap_or(0)
}

fn ticks(time: Nanos) -> u32 {
    u32::try_from(time.0 >> 10).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: u64 = 100 << 20;

    /// A rate with a known round-trip time of `RTT`, whose first round trip begins at `RTT`.
    fn established() -> SendingRate {
        let mut rate = SendingRate::with_syn(Nanos(0));
        assert_eq!(rate.rtt(), None);
        assert_eq!(rate.on_packet(1, Nanos(RTT), &FingerprintParams::default()), None);
        assert_eq!(rate.rtt(), Some(Nanos(RTT)));
        rate
    }

    /// Sends `counts[n]` packets at the start of round trip `n`; returns the round trips that ended.
    fn send(rate: &mut SendingRate, counts: &[u32], params: &FingerprintParams) -> Vec<RoundTrip> {
        let mut ended = Vec::new();
        for (round, &count) in counts.iter().enumerate() {
            for packet in 0..count {
                let now = Nanos(RTT * (round as u64 + 2) + u64::from(packet) * 1024);
                ended.extend(rate.on_packet(1, now, params));
            }
        }
        ended
    }

    #[test]
    fn a_round_trip_counts_what_was_sent_in_it() {
        let ended = send(&mut established(), &[10, 20, 19, 17], &FingerprintParams::default());
        let counts: Vec<_> = ended.iter().map(|round| (round.sent, round.before, round.is_reduced)).collect();
        assert_eq!(counts, [(1, 0, false), (10, 1, false), (20, 10, false), (19, 20, false)]);
    }

    #[test]
    fn an_eighth_less_is_a_reduction() {
        let params = FingerprintParams::default();
        for (sent, reduced) in [(80, false), (70, false), (69, true), (0, true)] {
            let mut rate = established();
            // The last round trip ends with the packet after it.
            let ended = send(&mut rate, &[80, sent.max(1), 1], &params);
            assert_eq!(ended.last().map(|round| round.is_reduced), Some(reduced), "{sent}");
        }
    }

    /// BBR's cycle: 1.25, 0.75, then six at 1.
    #[test]
    fn a_cycle_of_bbr_is_one_pulse_and_two_increases() {
        let cycle = [125, 75, 100, 100, 100, 100, 100, 100];
        let counts: Vec<u32> = [100; 5].into_iter().chain(cycle.into_iter().cycle().take(8 * 5)).chain([1]).collect();
        for (pattern, expected) in [(RatePattern::Pulses, 5), (RatePattern::Increases, 1 + 10)] {
            let params = FingerprintParams { pattern, ..FingerprintParams::default() };
            let ended = send(&mut established(), &counts, &params);
            assert_eq!(ended.last().map(|round| round.pulses), Some(expected), "{pattern:?}");
        }
    }

    #[test]
    fn pulses_far_apart_do_not_add_up() {
        let mut counts = vec![100; 5];
        for _ in 0..4 {
            counts.extend([130, 80]);
            counts.extend([100; 40]);
        }
        let pulses = |period| {
            let params = FingerprintParams { period, ..FingerprintParams::default() };
            send(&mut established(), &counts, &params).last().map(|round| round.pulses)
        };
        assert_eq!(pulses(32), Some(1));
        assert_eq!(pulses(0), Some(4));
    }

    /// CUBIC's recoveries, as a simulation gave them.
    #[test]
    fn the_rebound_after_a_loss_is_not_a_pulse() {
        let recovery = [104, 72, 75, 101, 75, 107, 105, 105, 99, 71, 84, 101, 74, 107, 104, 104];
        let counts: Vec<u32> = recovery.into_iter().cycle().take(160).chain([1]).collect();
        let ended = send(&mut established(), &counts, &FingerprintParams::default());
        assert_eq!(ended.last().map(|round| round.pulses), Some(0));
        let any = FingerprintParams { settled: 0, ..FingerprintParams::default() };
        assert!(send(&mut established(), &counts, &any).last().is_some_and(|round| round.pulses >= 10));
    }

    /// CUBIC at a few packets in a round trip, as a simulation gave it.
    #[test]
    fn a_change_by_a_few_packets_is_noise() {
        let slow = [3, 3, 4, 4, 2, 3, 3, 4, 2, 2, 3, 3, 4, 3, 10, 11, 12, 11, 10];
        let counts: Vec<u32> = slow.into_iter().cycle().take(190).chain([1]).collect();
        let pulses = |least_change| {
            let params = FingerprintParams { least_change, ..FingerprintParams::default() };
            send(&mut established(), &counts, &params).last().map(|round| round.pulses)
        };
        assert_eq!(pulses(FingerprintParams::default().least_change), Some(0));
        assert!(pulses(1) >= Some(4), "{:?}", pulses(1));
    }

    #[test]
    fn a_round_trip_time_is_that_of_the_last_syn() {
        for (repeated_syn_restarts, rtt) in [(true, RTT), (false, 11 * RTT)] {
            let params = FingerprintParams { repeated_syn_restarts, ..FingerprintParams::default() };
            let mut rate = SendingRate::with_syn(Nanos(0));
            rate.on_repeated_syn(Nanos(10 * RTT), &params);
            rate.on_packet(1, Nanos(11 * RTT), &params);
            assert_eq!(rate.rtt(), Some(Nanos(rtt)));
            // Once it is known, it stays.
            rate.on_repeated_syn(Nanos(20 * RTT), &params);
            assert!(rate.on_packet(1, Nanos(22 * RTT), &params).is_some());
        }
    }

    #[test]
    fn an_increase_that_no_decrease_follows_is_no_pulse() {
        let counts: Vec<u32> = (0..20).map(|n| 10 << n.min(10)).chain([1]).collect();
        let ended = send(&mut established(), &counts, &FingerprintParams::default());
        assert!(ended.iter().all(|round| round.pulses == 0));
    }

    /// Feeds the deepest queue of each round trip; returns the groups that a flow of `group` moves to, and after how many
    /// round trips.
    fn depths(group: FlowGroup, depths: &[u32], reduced: bool) -> Vec<(usize, FlowGroup)> {
        let params = FingerprintParams::default();
        let (mut growth, mut group, mut moves) = (QueueGrowth::default(), group, Vec::new());
        let round = RoundTrip { sent: 10, before: 10, is_reduced: reduced, pulses: 0 };
        for (number, &depth) in depths.iter().enumerate() {
            assert_eq!(growth.on_packet(depth, group, None, &params), None);
            if let Some(to) = growth.on_packet(0, group, Some(&round), &params) {
                moves.push((number + 1, to));
                group = to;
            }
        }
        moves
    }

    #[test]
    fn a_queue_that_grows_for_long_makes_a_flow_loss_delay_and_then_loss_based() {
        let growing: Vec<u32> = (1..40).collect();
        let moves = depths(FlowGroup::DelayBased, &growing, false);
        assert_eq!(moves, [(4, FlowGroup::LossDelay), (16, FlowGroup::LossBased)]);
    }

    #[test]
    fn one_round_trip_without_growth_starts_the_count_again() {
        let almost = [1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9];
        assert_eq!(depths(FlowGroup::DelayBased, &almost, false), []);
        // From 200 packets on, one more is less than a 128th.
        let slow: Vec<u32> = (200..240).collect();
        assert_eq!(depths(FlowGroup::LossDelay, &slow, false), []);
        let fast: Vec<u32> = (200..240).step_by(3).collect();
        assert_eq!(depths(FlowGroup::LossDelay, &fast, false), [(12, FlowGroup::LossBased)]);
    }

    #[test]
    fn a_flow_that_backs_off_stays_delay_based_but_a_loss_delay_one_does_not_stay() {
        let growing: Vec<u32> = (1..40).collect();
        assert_eq!(depths(FlowGroup::DelayBased, &growing, true), []);
        assert_eq!(depths(FlowGroup::LossDelay, &growing, true), [(12, FlowGroup::LossBased)]);
    }

    #[test]
    fn no_flow_leaves_the_model_based_group_and_only_long_lived_ones_enter_it() {
        let params = FingerprintParams::default();
        for group in FlowGroup::ALL {
            let to = params.group_after(group, u8::MAX, u8::MAX);
            let expected = matches!(group, FlowGroup::DelayBased | FlowGroup::LossDelay | FlowGroup::LossBased)
                .then_some(FlowGroup::ModelBased);
            assert_eq!(to, expected, "{group:?}");
        }
    }

    #[test]
    fn slow_start_ends_with_the_share_or_with_less() {
        let params = FingerprintParams::default();
        let mut rate = established();
        send(&mut rate, &[10, 20], &params);
        assert_eq!(params.end_of_slow_start(&rate, None, 21), None);
        assert_eq!(params.end_of_slow_start(&rate, None, 20), Some(SlowStartEnd::FairShare));
        let round = RoundTrip { sent: 19, before: 20, is_reduced: false, pulses: 0 };
        assert_eq!(params.end_of_slow_start(&rate, Some(&round), 21), Some(SlowStartEnd::SentLess));
    }

    #[test]
    fn the_clock_may_wrap() {
        let params = FingerprintParams::default();
        let start = (u64::from(u32::MAX) << 10) - RTT / 2;
        let mut rate = SendingRate::with_syn(Nanos(start));
        rate.on_packet(1, Nanos(start + RTT), &params);
        assert_eq!(rate.rtt(), Some(Nanos(RTT)));
        assert_eq!(rate.on_packet(1, Nanos(start + 2 * RTT - 1024), &params), None);
        assert!(rate.on_packet(1, Nanos(start + 2 * RTT), &params).is_some());
    }
}
