//! What is done to flows, in a line.

use crate::acts::{Doing, Mode};
use queuescope_live::Acted;
use queuescope_report::format;
use queuescope_wire::Nanos;
use std::collections::VecDeque;

/// What is done now, and what came of it in the last second.
#[derive(Debug, Default)]
pub struct ActingNow {
    doing: Option<Doing>,
    /// What was counted when, for a second.
    lately: VecDeque<(Nanos, Acted)>,
}

/// The same at one time.
#[derive(Debug, Clone)]
pub struct ActingShot {
    pub doing: Doing,
    /// What became of packets that were met, and how many a second; those only that there were.
    outcomes: Vec<(&'static str, u64)>,
}

const SECOND: Nanos = Nanos(1_000_000_000);

impl ActingNow {
    pub fn told(&mut self, doing: Option<Doing>, now: Nanos) {
        if let Some(doing) = &doing {
            self.lately.push_back((now, doing.acted));
        }
        // One that is a second old or older is what the others are compared with.
        while self.lately.get(1).is_some_and(|(at, _)| at.saturating_add(SECOND) <= now) {
            self.lately.pop_front();
        }
        self.doing = doing;
    }

    /// Whether packets are changed, if anything is asked for.
    pub fn mode(&self) -> Option<Mode> {
        self.doing.as_ref().map(|doing| doing.mode)
    }

    pub fn shot(&self) -> Option<ActingShot> {
        let doing = self.doing.clone()?;
        let (before, last) = self.lately.front().zip(self.lately.back())?;
        let time = last.0.saturating_sub(before.0).0;
        let each = outcomes(&last.1).into_iter().zip(outcomes(&before.1)).filter(|((_, count), _)| *count > 0);
        let rate = |count: u64| (u128::from(count) * u128::from(SECOND.0)).checked_div(time.into()).unwrap_or(0) as u64;
        let outcomes = each.map(|((name, count), (_, before))| (name, rate(count.saturating_sub(before))));
        Some(ActingShot { doing, outcomes: outcomes.collect() })
    }
}

impl ActingShot {
    /// `for real`, and what that is.
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
        // The policy last: who looks on may know it, and it may be long.
        (mode, outcomes.chain([flows, self.doing.policy.clone()]).collect::<Vec<_>>().join("  "))
    }
}

/// By their names in the report.
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
    fn rates_are_of_the_last_second() {
        let mut now = ActingNow::default();
        assert!(now.shot().is_none() && now.mode().is_none());
        for step in 0..=12u64 {
            // Four times a second; 100 each time at first, then 10.
            let marked = if step <= 8 { step * 100 } else { 800 + (step - 8) * 10 };
            let acted = Acted { marked, spared: 7, ..Acted::default() };
            let doing = Doing { policy: "mark".to_owned(), mode: Mode::Real, acted, chosen: vec![(1, 0.5)] };
            now.told(Some(doing), Nanos(step * 250_000_000));
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
        let policy = "the policy file is not there".to_owned();
        let stopped = Doing { policy, mode: Mode::Stopped, acted: Acted::default(), chosen: Vec::new() };
        now.told(Some(stopped), Nanos(3_500_000_000));
        let (mode, words) = now.shot().unwrap().words();
        assert_eq!((mode, &words[..]), ("not acting", "the policy file is not there"));
        now.told(None, Nanos(4_000_000_000));
        assert!(now.shot().is_none());
    }
}
