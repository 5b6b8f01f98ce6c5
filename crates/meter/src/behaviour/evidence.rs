//! The evidence on a flow: numbers made of its round trips.

use super::FlowRounds;
use super::series::Series;
use queuescope_wire::Nanos;

/// What is known of a flow's behaviour. Rounds are round-trip times without queueing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Evidence {
    /// The round-trip time without queueing, by the handshake; `None` if that was not seen.
    pub rtt: Option<Nanos>,
    /// Rounds that were watched, without slow start.
    pub rounds: u32,
    /// The flow's share of all bytes that left the queue meanwhile.
    pub share: f64,
    /// Its median window: packets in flight, with those in the queue.
    pub window: f64,
    /// How much its rate varies: the standard deviation of the packets that it offers in a round, over their mean.
    pub rate_variation: f64,
    /// Packets that were dropped, and rounds with drops.
    pub drops: u64,
    /// Rounds with drops.
    pub drop_rounds: u32,
    /// How it answered losses.
    pub losses: Response,
    /// Its own median backlog in rounds with losses, in packets, and the delay there.
    pub loss_backlog: f64,
    /// The median of the longest delays of rounds with losses.
    pub loss_delay: Nanos,
    /// Pairs of losses at least 18 rounds apart, and the median share of the window's growth between them that is in the last 6.
    pub surges: u32,
    /// That share.
    pub surge: f64,
    /// The share of its packets that could be marked, the share with ECT(1), and the share of rounds with marks.
    pub capable: f64,
    /// The share of its packets with ECT(1).
    pub l4s: f64,
    /// The share of rounds with marks.
    pub marked_rounds: f64,
    /// How it answered marks.
    pub marks: Response,
    /// Reductions of the window by a tenth or more without a loss or mark before.
    pub uncaused: u32,
    /// The longest time without a loss or mark, in rounds.
    pub quiet_rounds: u32,
    /// By how much its window grew and shrank in this time, each summed up, over its mean.
    pub quiet_rise: f64,
    /// By how much it shrank.
    pub quiet_fall: f64,
    /// Its own median backlog in the queue, in packets. This and the next three are of the last 100 rounds of this time.
    pub backlog: f64,
    /// Nine tenths of the rounds have at most this backlog of its own, in packets.
    pub high_backlog: f64,
    /// The sojourn time that nine tenths of the rounds stay below.
    pub high_sojourn: Nanos,
    /// The share of rounds in which the queue was never empty when its packets came.
    pub busy: f64,
    /// Pulses of its rate: an increase and then a decrease of about a tenth or more, from and to a steady rate.
    pub pulses: u32,
    /// The median distance of two pulses, in rounds, and the share of distances within a quarter of it.
    pub pulse_period: f64,
    /// The share of distances of pulses within a quarter of their median.
    pub pulse_regularity: f64,
    /// How similar its rate is to that of a period before, at the period of 5 to 24 rounds where that is most: from -1 to 1.
    pub periodicity: f64,
    /// That period.
    pub period: f64,
    /// Times when the window fell by nearly half or more for some 200 ms, without a loss, and then returned at once: BBR measures the
    /// round-trip time so.
    pub floors: u32,
    /// The median time between them.
    pub floor_period: Nanos,
    /// The share of times between two that are BBR's: 5 or 10 s, and the time of the probe.
    pub floor_regularity: f64,
}

/// How a flow answered losses or marks: the window of about three rounds after it had time to, over that before.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Response {
    /// Episodes that could be compared: groups of losses that are at least two round trips, with queueing, from others.
    pub episodes: u32,
    /// The geometric mean of the ratios.
    pub ratio: f64,
    /// The share of episodes with a window of at most 93 % of that before.
    pub reduced: f64,
    /// The lowest window of two rounds after an episode, over that before: the median.
    pub dip: f64,
    /// The share of episodes with a dip to at most 93 %.
    pub dipped: f64,
    /// By how much the window grew from each reduction to the next loss or mark: the geometric mean.
    pub growth: f64,
}

impl Evidence {
    /// The evidence of a flow's rounds.
    pub(super) fn of(flow: &FlowRounds) -> Self {
        let series = Series::new(flow);
        let [packets, capable, l4s] = flow.ecn();
        let part = |count: u64| count as f64 / packets.max(1) as f64;
        let mut evidence = Self {
            rtt: flow.rtt(),
            rounds: series.len() as u32,
            capable: part(capable),
            l4s: part(l4s),
            ..Self::default()
        };
        if series.len() >= 10 {
            evidence.add(&series);
        }
        evidence
    }

    fn add(&mut self, series: &Series) {
        self.share = series.share();
        self.window = series.median_window();
        self.rate_variation = series.rate_variation();
        (self.drops, self.drop_rounds) = series.drops();
        self.losses = series.response(false);
        let (backlog, delay) = series.at_losses();
        (self.loss_backlog, self.loss_delay) = (backlog, Nanos(delay as u64));
        (self.surges, self.surge) = series.surge();
        self.marked_rounds = series.marked_rounds();
        self.marks = series.response(true);
        self.uncaused = series.uncaused();
        let quiet = series.quiet();
        (self.quiet_rounds, self.busy) = (quiet.rounds, quiet.busy);
        (self.quiet_rise, self.quiet_fall) = (quiet.rise, quiet.fall);
        (self.backlog, self.high_backlog, self.high_sojourn) = (quiet.backlog, quiet.high_backlog, quiet.high_sojourn);
        let pulses = series.pulses();
        (self.pulses, self.pulse_period, self.pulse_regularity) = (pulses.count, pulses.period, pulses.regularity);
        (self.periodicity, self.period) = series.periodicity();
        let (floors, period, regularity) = series.floors();
        (self.floors, self.floor_period, self.floor_regularity) = (floors, Nanos((period * 1e9) as u64), regularity);
    }
}
