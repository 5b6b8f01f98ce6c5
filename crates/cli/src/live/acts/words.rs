//! What is asked for, in words and numbers that a person reads.

use queuescope_live::{Acting, Action, Victim, Weigh};
use queuescope_queue::{Curve, Response};
use queuescope_report::format;

/// With which probability a packet of a flow is chosen, or one beyond its limit is dropped.
pub fn probability(acting: &Acting, victim: &Victim) -> f64 {
    let weight = match acting.weigh {
        Weigh::Bytes | Weigh::Queue => victim.weight as f64,
        Weigh::Share => victim.share as f64 / 65_536.0,
    };
    acting.curve.probability(weight, acting.threshold)
}

/// `mark linear:20.0 kB from 30.0 kB`.
pub fn words(acting: &Acting) -> String {
    let action = match acting.action {
        Action::Respond(Response::MarkOnly) => "mark".to_owned(),
        Action::Respond(Response::MarkOrDrop) => "mark or drop".to_owned(),
        Action::Respond(Response::Drop) => "drop".to_owned(),
        Action::Limit { rate, .. } => format!("limit to {}", format::rate(rate.bits_per_second() as f64)),
    };
    let curve = match &acting.curve {
        Curve::Threshold => String::new(),
        Curve::Linear { full } => format!(" linear:{}", format::bytes(*full as u64)),
        Curve::Squared { full } => format!(" squared:{}", format::bytes(*full as u64)),
        // The command line has one step at most.
        Curve::Steps(steps) => format!(" {}", format::percent(steps.probability(f64::MAX))),
    };
    let of = if acting.weigh == Weigh::Queue { " any flow" } else { "" };
    let from = match acting.threshold as u64 {
        0 => String::new(),
        threshold => format!(" from {}", format::bytes(threshold)),
    };
    action + &curve + of + &from
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Written;
    use queuescope_wire::Nanos;

    #[test]
    fn what_is_asked_for_is_told_in_words() {
        let told = |text: &str| words(&Written::read(text).unwrap().policy.acting().unwrap());
        assert_eq!(told("--mark=linear:20kB --threshold 30kB"), "mark linear:20.0 kB from 30.0 kB");
        assert_eq!(told("--mark=1/16 --drop"), "mark or drop 6.2 %");
        assert_eq!(told("--drop=queue --threshold 1MB"), "drop any flow from 1.00 MB");
        assert_eq!(told("--limit 10Mbit/s"), "limit to 10.0 Mb/s");
    }

    #[test]
    fn a_flow_is_chosen_by_its_weight() {
        let chosen = |text: &str, weight| {
            let victim = Victim { digest: 1, until: Nanos(0), weight, share: 32_768, exempt: false };
            probability(&Written::read(text).unwrap().policy.acting().unwrap(), &victim)
        };
        assert_eq!([chosen("--mark --threshold 5kB", 4_999), chosen("--mark --threshold 5kB", 5_000)], [0.0, 1.0]);
        assert_eq!(chosen("--mark=linear:20kB --threshold 5kB", 10_000), 0.25);
        let share = Acting { weigh: Weigh::Share, threshold: 0.5, ..Acting::default() };
        assert_eq!(
            probability(&share, &Victim { digest: 1, until: Nanos(0), weight: 0, share: 32_768, exempt: false }),
            1.0
        );
    }
}
