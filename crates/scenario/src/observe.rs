//! Meters and recorded outputs.

use crate::keys::{KeyVisitor, Table, fields};
use queuescope_wire::{Granularity, Nanos};

/// A meter of a link's queue, which finds bursts and the flows that fill the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Meter {
    /// The name of the link.
    pub link: String,
    /// Whether it observes the queue of the reverse direction.
    pub reverse: bool,
    /// The lowest delay at which the queue is congested (tau). `None`: it follows from the longest delay so far.
    pub tau: Option<Nanos>,
    /// The smallest share of the queue at which a flow is a culprit (alpha).
    pub alpha: f64,
    /// The granularity of flows.
    pub by: Granularity,
}

/// Outputs in addition to the summary.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The step of time series; `None`: there are none.
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

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.key("link", &mut self.link, "The name of the link.");
        keys.key("reverse", &mut self.reverse, "Whether to observe the queue of the reverse direction.");
        keys.key(
            "tau",
            &mut self.tau,
            "The lowest delay at which the queue is congested; none: an eighth of the longest delay so far, at least the time \
             of 10 full packets.",
        );
        keys.within(
            "alpha",
            &mut self.alpha,
            1e-9..=1.0,
            "The smallest share of the queue at which a flow is a culprit.",
        );
        keys.key("by", &mut self.by, "The granularity of flows.");
    }
}

impl Table for Record {
    fn fresh() -> Self {
        Self { interval: None }
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.key("interval", &mut self.interval, "The step of time series; none: there are none.");
        keys.ensure("interval", self.interval.is_none_or(|interval| interval >= Nanos(1_000)), || {
            ("the step is too short".to_owned(), "write 1us or more, for example \"100ms\"".to_owned())
        });
    }
}
