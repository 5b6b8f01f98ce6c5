//! The line of a view that shows acting on flows.

use crate::acts::{ActingStatus, Mode};
use queuescope_live::Acted;
use queuescope_report::format;
use queuescope_wire::Nanos;
use std::collections::VecDeque;

/// The state of acting, and its counts over the last second.
#[derive(Debug, Default)]
pub struct ActingNow {
    doing: Option<ActingStatus>,
    /// Counts and their times, over a second.
    recent: VecDeque<(Nanos, Acted)>,
}

/// The state at one moment.
#[derive(Debug, Clone)]
pub struct ActingShot {
    pub doing: ActingStatus,
    /// The outcomes that occurred, with their rates per second.
    outcomes: Vec<(&'static str, u64)>,
}

const SECOND: Nanos = Nanos(1_000_000_000);

impl ActingNow {
    pub fn update(&mut self, doing: Option<ActingStatus>, now: Nanos) {
        if let Some(doing) = &doing {
            self.recent.push_back((now, doing.acted));
        }
        // The newest count that is at least a second old stays, as the base of the rates.
        while self.recent.get(1).is_some_and(|(at, _)| at.saturating_add(SECOND) <= now) {
            self.recent.pop_front();
        }
        self.doing = doing;
    }

    /// Whether packets are changed; none if no action was requested.
    pub fn mode(&self) -> Option<Mode> {
        self.doing.as_ref().map(|doing| doing.mode)
    }

    pub fn shot(&self) -> Option<ActingShot> {
        let doing = self.doing.clone()?;
        let (before, last) = self.recent.front().zip(self.recent.back())?;
        let time = last.0.saturating_sub(before.0).0;
        let each = outcomes(&last.1).into_iter().zip(outcomes(&before.1)).filter(|((_, count), _)| *count > 0);
        let rate = |count: u64| (u128::from(count) * u128::from(SECOND.0)).checked_div(time.into()).unwrap_or(0) as u64;
        let outcomes = each.map(|((name, count), (_, before))| (name, rate(count.saturating_sub(before))));
        Some(ActingShot { doing, outcomes: outcomes.collect() })
    }
}

impl ActingShot {
    /// The mode, such as `for real`, and its details.
    pub fn words(&self) -> (&'static str, String) {
        let mode = match self.doing.mode {
            Mode::Dry => "dry run",
            Mode::Real => "for real",
            Mode::Paused => "paused",
            Mode::Stopped => return ("not acting", self.doing.policy.clone()),
        };
        let flows = self.doing.chosen.len() as u64;
        let flows = format!("{} flow{}", format::count(flows), if flows == 1 { "" } else { "s" });
        let outcomes = self.outcomes.iter().map(|(name, rate)| format!("{}/s {name}", format::count(*rate)));
        // The policy comes last: it may be long, and the user may know it.
        (mode, outcomes.chain([flows, self.doing.policy.clone()]).collect::<Vec<_>>().join("  "))
    }
}

/// The outcomes, under their names in the report.
fn outcomes(acted: &Acted) -> [(&'static str, u64); 10] {
    [
        ("marked", acted.marked),
        ("would mark", acted.would_mark),
        ("dropped", acted.dropped),
        ("would drop", acted.would_drop),
        ("limited", acted.limited),
        ("would limit", acted.would_limit),
        ("spared", acted.spared),
        ("unmarkable", acted.unmarkable),
        ("marked before", acted.marked_before),
        ("exempt", acted.exempt),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_cover_the_last_second() {
        let mut now = ActingNow::default();
        assert!(now.shot().is_none() && now.mode().is_none());
        for step in 0..=12u64 {
            // Four updates a second; 100 marks each at first, then 10.
            let marked = if step <= 8 { step * 100 } else { 800 + (step - 8) * 10 };
            let acted = Acted { marked, spared: 7, ..Acted::default() };
            let doing = ActingStatus { policy: "mark".to_owned(), mode: Mode::Real, acted, chosen: vec![(1, 0.5)] };
            now.update(Some(doing), Nanos(step * 250_000_000));
            let rate = now.shot().unwrap().outcomes[0];
            let expected = match step {
                0 => ("spared", 0),
                8 => ("marked", 400),
                12 => ("marked", 40),
                _ => rate,
            };
            assert_eq!(rate, expected, "{step}");
        }
        let (mode, words) = now.shot().unwrap().words();
        assert_eq!((mode, &words[..]), ("for real", "40/s marked  0/s spared  1 flow  mark"));
        let policy = "the policy file does not exist".to_owned();
        let stopped = ActingStatus { policy, mode: Mode::Stopped, acted: Acted::default(), chosen: Vec::new() };
        now.update(Some(stopped), Nanos(3_500_000_000));
        let (mode, words) = now.shot().unwrap().words();
        assert_eq!((mode, &words[..]), ("not acting", "the policy file does not exist"));
        now.update(None, Nanos(4_000_000_000));
        assert!(now.shot().is_none());
    }
}
