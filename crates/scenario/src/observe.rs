//! What is watched and what is recorded.

use crate::keys::{Keys, Table, fields};
use queuescope_wire::{Granularity, Nanos};

/// Who watches a link for bursts and the flows that fill its queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Meter {
    /// The link.
    pub link: String,
    /// Whether it watches the way back.
    pub reverse: bool,
    /// The delay from which on the queue is congested (tau); by the longest delay so far, if not said.
    pub tau: Option<Nanos>,
    /// The share of the queue from which on a flow is a culprit (alpha).
    pub alpha: f64,
    /// What a flow is.
    pub by: Granularity,
}

/// What is recorded beside the summary.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The step of time series, if there are any.
    pub interval: Option<Nanos>,
}

fields!(tables: Meter, Record; choices:);

impl Meter {
    pub(crate) fn on(link: &str) -> Self {
        Self { link: link.to_owned(), reverse: false, tau: None, alpha: 0.01, by: Granularity::FiveTuple }
    }
}

impl Table for Meter {
    fn fresh() -> Self {
        Self::on("bottleneck")
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        keys.key("link", &mut self.link, "The link by its name.");
        keys.key("reverse", &mut self.reverse, "Whether the queue of the way back is meant.");
        keys.key(
            "tau",
            &mut self.tau,
            "The delay from which on the queue is congested; none: an eighth of the longest delay so far, at least the time \
             of 10 full packets.",
        );
        keys.within("alpha", &mut self.alpha, 1e-9..=1.0, "The share of the queue from which on a flow is a culprit.");
        keys.key("by", &mut self.by, "What a flow is.");
    }
}

impl Table for Record {
    fn fresh() -> Self {
        Self { interval: None }
    }

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        keys.key("interval", &mut self.interval, "The step of time series; none: there are none.");
        keys.ensure("interval", self.interval.is_none_or(|interval| interval >= Nanos(1_000)), || {
            ("the step is too small".to_owned(), "write 1us or more, such as \"100ms\"".to_owned())
        });
    }
}
