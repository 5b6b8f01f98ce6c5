//! The exact bytes that left while a packet waited: every reported packet is kept.

use std::collections::BTreeMap;

/// A packet as the probe reported it.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub enqueued: u64,
    pub dequeued: u64,
    pub digest: u64,
    pub bytes: u32,
    /// The kernel's estimates of the bytes that left meanwhile, of its flow and of all flows.
    pub flow: u64,
    pub all: u64,
}

/// How well the sketch identified the packets of contributing flows.
#[derive(Debug, Clone, Default)]
pub struct Verdicts {
    pub right: u64,
    pub wrong: u64,
    pub passed_over: u64,
    /// For each wrong verdict, the distance of the flow's share from alpha.
    apart: Vec<f64>,
}

impl Verdicts {
    pub fn precision(&self) -> f64 {
        self.right as f64 / (self.right + self.wrong) as f64
    }

    pub fn recall(&self) -> f64 {
        self.right as f64 / (self.right + self.passed_over) as f64
    }

    /// The distance from alpha that this share of the wrong verdicts does not exceed.
    pub fn apart(&mut self, share: f64) -> f64 {
        self.apart.sort_unstable_by(f64::total_cmp);
        let place = (self.apart.len() as f64 * share) as usize;
        self.apart.get(place.min(self.apart.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    }
}

/// Bytes that had left by a time, as pairs in the order of time.
#[derive(Default)]
struct Sums(Vec<(u64, u64)>);

impl Sums {
    fn add(&mut self, at: u64, bytes: u32) {
        let before = self.0.last().map_or(0, |(_, sum)| *sum);
        self.0.push((at, before + u64::from(bytes)));
    }

    fn before(&self, at: u64) -> u64 {
        let place = self.0.partition_point(|(time, _)| *time < at);
        place.checked_sub(1).map_or(0, |place| self.0[place].1)
    }

    fn within(&self, event: &Event) -> u64 {
        self.before(event.dequeued) - self.before(event.enqueued)
    }
}

/// The verdicts for each alpha, over the packets that waited for longer than tau.
pub fn judge(events: &mut [Event], tau: u64, alphas: &[f64]) -> Vec<Verdicts> {
    events.sort_by_key(|event| event.dequeued);
    let (mut all, mut flows) = (Sums::default(), BTreeMap::<u64, Sums>::new());
    for event in &*events {
        all.add(event.dequeued, event.bytes);
        flows.entry(event.digest).or_default().add(event.dequeued, event.bytes);
    }
    let mut verdicts = vec![Verdicts::default(); alphas.len()];
    for event in events.iter().filter(|event| event.dequeued - event.enqueued > tau) {
        let (own, total) = (flows[&event.digest].within(event), all.within(event));
        for (alpha, verdict) in alphas.iter().zip(&mut verdicts) {
            let is = own as f64 > alpha * total as f64;
            let is_estimated = event.flow as f64 > alpha * event.all as f64;
            verdict.right += u64::from(is && is_estimated);
            verdict.wrong += u64::from(!is && is_estimated);
            verdict.passed_over += u64::from(is && !is_estimated);
            if is != is_estimated {
                verdict.apart.push((own as f64 / total as f64 - alpha).abs());
            }
        }
    }
    verdicts
}
