//! The keys of congestion controls. Defaults depend on the profile.

use super::bbr::bbr;
use super::bbr3::bbr3;
use super::bic::bic;
use super::hstcp::high_speed;
use super::htcp::htcp;
use super::hybla::hybla;
use super::lola::lola;
use super::prague::prague;
use super::scalable::scalable;
use super::shared::{COUNTING, ONLY_IF_LIMITED, ROUND, RTT, SEGMENTS};
use super::veno::veno;
use super::westwood::westwood;
use super::yeah::yeah;
use super::{FACTOR, SHARE, TIME, optional};
use crate::keys::{Choice, KeyVisitor, choice, fields};
use crate::profile::Profile;
use crate::value::names;
use queuescope_tcp::congestion::{
    Counting, CubicParams, DctcpParams, Growth, HyStartParams, HyStartPlusPlusParams, IllinoisParams, NewRenoParams,
    OnLoss, Reduced, RoundEnd, RttSource, SlowStart, VegasParams, Waiting,
};
use queuescope_tcp::{Algorithm, AlgorithmParams, CongestionControl, Controller};
use queuescope_wire::Nanos;

/// A congestion control whose defaults are those of a profile.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Control {
    profile: Profile,
    pub params: AlgorithmParams,
}

impl Control {
    /// A congestion control with its current parameters, or with the defaults of `profile` if that differs from
    /// `before`.
    pub fn new(profile: Profile, before: Profile, params: AlgorithmParams) -> Self {
        let params = if profile == before { params } else { params.algorithm().params(profile.of_algorithm()) };
        Self { profile, params }
    }
}

fields!(tables:; choices: Control);

impl Choice for Control {
    const WHAT: &'static str = "congestion control";

    fn fresh() -> Self {
        Self { profile: Profile::Linux, params: Algorithm::Cubic.params(Profile::Linux.of_algorithm()) }
    }

    fn options(&self) -> Vec<Self> {
        let with =
            |algorithm: &Algorithm| Self { params: algorithm.params(self.profile.of_algorithm()), ..self.clone() };
        Algorithm::ALL.iter().map(with).collect()
    }

    fn name(&self) -> &'static str {
        self.params.algorithm().name()
    }

    fn about(&self) -> &'static str {
        self.params.algorithm().about()
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        match &mut self.params {
            AlgorithmParams::NewReno(params) => new_reno(params, keys),
            AlgorithmParams::Cubic(params) => cubic(params, keys),
            AlgorithmParams::Bbr(params) => bbr(params, keys),
            AlgorithmParams::Vegas(params) => vegas(params, keys),
            AlgorithmParams::Illinois(params) => illinois(params, keys),
            AlgorithmParams::Dctcp(params) => dctcp(params, keys),
            AlgorithmParams::HighSpeed(params) => high_speed(params, keys),
            AlgorithmParams::Scalable(params) => scalable(params, keys),
            AlgorithmParams::Htcp(params) => htcp(params, keys),
            AlgorithmParams::Bic(params) => bic(params, keys),
            AlgorithmParams::Hybla(params) => hybla(params, keys),
            AlgorithmParams::Yeah(params) => yeah(params, keys),
            AlgorithmParams::Veno(params) => veno(params, keys),
            AlgorithmParams::Westwood(params) => westwood(params, keys),
            AlgorithmParams::Lola(params) => lola(params, keys),
            AlgorithmParams::Bbr3(params) => bbr3(params, keys),
            AlgorithmParams::Prague(params) => prague(params, keys),
        }
    }
}

/// Whether the congestion control requires ECN.
pub(crate) fn counts_marks(params: &AlgorithmParams) -> bool {
    Controller::new(params, 1, 1, 0).ecn().counts()
}

fn new_reno<K: KeyVisitor>(params: &mut NewRenoParams, keys: &mut K) {
    keys.key("counting", &mut params.counting, COUNTING);
    keys.key("reduced", &mut params.reduced, "The quantity that is halved on congestion.");
    keys.key("only-if-limited", &mut params.only_if_limited, ONLY_IF_LIMITED);
}

fn cubic<K: KeyVisitor>(params: &mut CubicParams, keys: &mut K) {
    keys.within("c", &mut params.c, 1e-6..=1e6, "C, in segments per second cubed.");
    keys.within("beta", &mut params.beta, 0.01..=0.99, "The factor of the window after a reduction.");
    keys.key("fast-convergence", &mut params.fast_convergence, "Whether a flow whose window shrinks twice makes room.");
    keys.key("reno-friendly", &mut params.reno_friendly, "Whether the window is at least what Reno's would be.");
    keys.key("growth", &mut params.growth, "How the window grows: in fractions of a segment or in whole segments.");
    keys.key("slow-start", &mut params.slow_start, "How slow start may end before a loss.");
    optional(
        keys,
        "slow-start-limit",
        &mut params.slow_start_limit,
        &(1..=1_000_000),
        "The most segments that an ACK adds in slow start.",
    );
    keys.within(
        "settling",
        &mut params.settling,
        TIME,
        "The time at the start of congestion avoidance during which no round-trip time counts as the smallest.",
    );
    keys.key("rtt", &mut params.rtt, RTT);
    keys.key("only-if-limited", &mut params.only_if_limited, ONLY_IF_LIMITED);
    keys.key("skips-idle", &mut params.skips_idle, "Whether time with nothing in flight does not count.");
}

choice! {
    Growth, "growth of CUBIC", keys;
    "continuous", "In fractions of a segment, as in the RFC.", Self::Continuous, Self::Continuous => {};
    "counted", "In whole segments, as in Linux and ns-3.",
        Self::Counted { most: 20, refresh: Nanos(31_250_000), one_an_ack: false, stops_at_threshold: true },
        Self::Counted { most, refresh, one_an_ack, stops_at_threshold } => {
            keys.within("most", most, 1..=1_000_000, "Before the first congestion, the window grows by a segment for at most this many acknowledged segments.");
            keys.within("refresh", refresh, TIME, "How long the target stays the same if the window does.");
            keys.key("one-an-ack", one_an_ack, "Whether an ACK adds at most one segment.");
            keys.key("stops-at-threshold", stops_at_threshold, "Whether slow start stops at the threshold.");
        };
}

choice! {
    SlowStart, "end of slow start", keys;
    "until-loss", "Only by a loss (RFC 5681).", Self::UntilLoss, Self::UntilLoss => {};
    "hystart", "By HyStart.",
        Self::HyStart(HyStartParams::default()), Self::HyStart(params) => hystart(params, keys);
    "hystart-plus-plus", "By HyStart++ (RFC 9406), in the first slow start.",
        Self::HyStartPlusPlus(HyStartPlusPlusParams::default()),
        Self::HyStartPlusPlus(params) => hystart_plus_plus(params, keys);
}

fn hystart<K: KeyVisitor>(params: &mut HyStartParams, keys: &mut K) {
    keys.key("train", &mut params.train, "Whether the length of a train of ACKs can end slow start.");
    keys.key("delay", &mut params.delay, "Whether an increase of the delay can end slow start.");
    keys.within(
        "low-window",
        &mut params.low_window,
        SEGMENTS,
        "The smallest window at which slow start can end, in segments.",
    );
    keys.within("train-spacing", &mut params.train_spacing, TIME, "The longest gap between ACKs of a train.");
    keys.within(
        "train-divisor",
        &mut params.train_divisor,
        1..=1000,
        "The smallest round-trip time divided by this is the train length at which slow start ends.",
    );
    keys.within(
        "samples",
        &mut params.samples,
        1..=1_000_000,
        "The number of round-trip times before the delay is judged.",
    );
    keys.key("later-samples", &mut params.later_samples, "Whether later round-trip times also count for the minimum.");
    keys.within(
        "delay-divisor",
        &mut params.delay_divisor,
        1..=1000,
        "The smallest round-trip time divided by this is the increase at which slow start ends.",
    );
    keys.within("least-rise", &mut params.least_rise, TIME, "The lower bound of that increase.");
    keys.within("largest-rise", &mut params.largest_rise, TIME, "The upper bound of that increase.");
    keys.ensure("largest-rise", params.largest_rise >= params.least_rise, || {
        ("the largest rise is below the least rise".to_owned(), format!("`least-rise` is {}", params.least_rise))
    });
    keys.key(
        "judges-before-round",
        &mut params.judges_before_round,
        "Whether the ACK that ends a round trip belongs to that round trip.",
    );
    keys.key(
        "judges-reductions",
        &mut params.judges_reductions,
        "Whether ACKs are also judged in recovery, if HyStart has not ended slow start before.",
    );
}

fn hystart_plus_plus<K: KeyVisitor>(params: &mut HyStartPlusPlusParams, keys: &mut K) {
    keys.within(
        "least-rise",
        &mut params.least_rise,
        TIME,
        "The lower bound of the increase of the round-trip time that ends slow start (MIN_RTT_THRESH).",
    );
    keys.within("largest-rise", &mut params.largest_rise, TIME, "The upper bound of that increase (MAX_RTT_THRESH).");
    keys.ensure("largest-rise", params.largest_rise >= params.least_rise, || {
        ("the largest rise is below the least rise".to_owned(), format!("`least-rise` is {}", params.least_rise))
    });
    keys.within(
        "delay-divisor",
        &mut params.delay_divisor,
        1..=1000,
        "The round-trip time divided by this is that increase (MIN_RTT_DIVISOR).",
    );
    keys.within(
        "samples",
        &mut params.samples,
        1..=1_000_000,
        "The number of round-trip times in a round trip before it is judged (N_RTT_SAMPLE).",
    );
    keys.within(
        "growth-divisor",
        &mut params.growth_divisor,
        1..=1000,
        "The divisor of growth in conservative slow start (CSS_GROWTH_DIVISOR).",
    );
    keys.within(
        "rounds",
        &mut params.rounds,
        1..=1_000_000,
        "The number of round trips of conservative slow start (CSS_ROUNDS).",
    );
}

fn vegas<K: KeyVisitor>(params: &mut VegasParams, keys: &mut K) {
    keys.within("alpha", &mut params.alpha, FACTOR, "The window grows while fewer packets than this are queued.");
    keys.within("beta", &mut params.beta, FACTOR, "The window shrinks while more packets than this are queued.");
    keys.ensure("beta", params.beta >= params.alpha, || {
        ("beta is below alpha".to_owned(), format!("`alpha` is {}", params.alpha))
    });
    keys.within("gamma", &mut params.gamma, FACTOR, "Slow start ends when more packets than this are queued.");
    keys.key("waiting", &mut params.waiting, "How queued packets are counted.");
    keys.key("on-loss", &mut params.on_loss, "The window after a loss.");
    keys.key("counting", &mut params.counting, COUNTING);
    keys.key("round", &mut params.round, ROUND);
    keys.key("rtt", &mut params.rtt, RTT);
    keys.key(
        "forgets-when-idle",
        &mut params.forgets_when_idle,
        "Whether the smallest round-trip time is forgotten when the flow is idle.",
    );
}

fn illinois<K: KeyVisitor>(params: &mut IllinoisParams, keys: &mut K) {
    keys.within("least-alpha", &mut params.least_alpha, FACTOR, "The smallest increase per round trip, in segments.");
    keys.within(
        "largest-alpha",
        &mut params.largest_alpha,
        FACTOR,
        "The largest increase per round trip, in segments.",
    );
    keys.within("base-alpha", &mut params.base_alpha, FACTOR, "The increase with small windows and after a timeout.");
    keys.within(
        "least-beta",
        &mut params.least_beta,
        0.0..=0.99,
        "The smallest fraction of the window by which a loss reduces it.",
    );
    keys.within("largest-beta", &mut params.largest_beta, 0.0..=0.99, "The largest such fraction.");
    keys.within("base-beta", &mut params.base_beta, 0.0..=0.99, "The fraction with small windows and after a timeout.");
    for (key, holds) in [
        ("largest-alpha", params.largest_alpha >= params.least_alpha),
        ("largest-beta", params.largest_beta >= params.least_beta),
    ] {
        keys.ensure(key, holds, || ("the largest is below the smallest".to_owned(), "swap them".to_owned()));
    }
    keys.within(
        "window-threshold",
        &mut params.window_threshold,
        SEGMENTS,
        "The smallest window at which alpha and beta follow the delay.",
    );
    keys.within(
        "theta",
        &mut params.theta,
        0..=1_000_000,
        "The number of round trips with low delay after which alpha is the largest.",
    );
    keys.key("reduced", &mut params.reduced, "The quantity that beta is a fraction of.");
    keys.key("counting", &mut params.counting, COUNTING);
    keys.within("delay-unit", &mut params.delay_unit, Nanos(1)..=*TIME.end(), "The unit to which delays are rounded.");
    keys.key("whole-steps", &mut params.whole_steps, "Whether increases are counted in whole numbers (ns-3).");
    keys.key(
        "always-counts-low",
        &mut params.always_counts_low,
        "Whether low delay also counts if there was no high delay before.",
    );
    keys.key("round", &mut params.round, ROUND);
    keys.key("rtt", &mut params.rtt, RTT);
    keys.key("only-if-limited", &mut params.only_if_limited, ONLY_IF_LIMITED);
}

fn dctcp<K: KeyVisitor>(params: &mut DctcpParams, keys: &mut K) {
    keys.within("gain", &mut params.gain, 1e-6..=1.0, "The weight of a window of data in the average: g.");
    keys.within("initial-alpha", &mut params.initial_alpha, SHARE, "The average before the first window.");
    keys.within("least-alpha", &mut params.least_alpha, SHARE, "Without marks, an average below this becomes zero.");
    keys.key("round", &mut params.round, ROUND);
    keys.key("loss-halves", &mut params.loss_halves, "Whether a loss halves the window and does not count as a mark.");
    keys.within("floor", &mut params.floor, 0..=1_000_000, "The smallest window after a reduction, in segments.");
    keys.key("counting", &mut params.counting, COUNTING);
    keys.key("only-if-limited", &mut params.only_if_limited, ONLY_IF_LIMITED);
}

choice! {
    Counting, "count of growth", keys;
    "bytes", "Acknowledged bytes (RFC 3465).", Self::Bytes { limit: Some(1) }, Self::Bytes { limit } => {
        optional(keys, "limit", limit, &(1..=1_000_000), "The most segments that an ACK adds in slow start: L.");
    };
    "segments", "Whole segments (Linux, and ns-3's `TcpLinuxReno`).",
        Self::Segments { carries: true }, Self::Segments { carries } => {
            keys.key("carries", carries, "Whether segments that slow start leaves over at the threshold count, as in Linux.");
        };
    "acks", "ACKs (RFC 5681).", Self::Acks, Self::Acks => {};
}

names! {
    Reduced, "a base of reductions":
        "in-flight" = Reduced::InFlight, "pipe" = Reduced::Pipe, "window" = Reduced::Window;
    RoundEnd, "an end of round trips":
        "reached" = RoundEnd::Reached, "passed" = RoundEnd::Passed, "last-reached" = RoundEnd::LastReached;
    RttSource, "a source of round-trip times": "measured" = RttSource::Measured, "smoothed" = RttSource::Smoothed;
    Waiting, "a count of packets that wait":
        "exact" = Waiting::Exact, "whole" = Waiting::Whole, "over-base" = Waiting::OverBase;
    OnLoss, "a reduction of Vegas": "half" = OnLoss::Half, "one-segment" = OnLoss::OneSegment;
}
