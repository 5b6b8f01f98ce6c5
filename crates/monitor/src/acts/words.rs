//! The policy in words, for people.

use queuescope_live::{Acting, Action, Victim, Weigh};
use queuescope_queue::{Curve, Response};
use queuescope_report::format;

/// The probability that a packet of a flow is chosen, or that a packet above its limit is dropped.
pub fn probability(acting: &Acting, victim: &Victim) -> f64 {
    let weight = match acting.weigh {
        Weigh::Bytes | Weigh::Queue => victim.weight as f64,
        Weigh::Share => victim.share as f64 / 65_536.0,
    };
    acting.curve.probability(weight, acting.threshold)
}

/// The policy in words, such as `mark linear:20.0 kB from 30.0 kB`.
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
        // The command line accepts one step at most.
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
    use queuescope_queue::{Step, Steps};
    use queuescope_wire::{ByteCount, Nanos, Rate};

    fn respond(response: Response, curve: Curve, threshold: f64) -> Acting {
        Acting { action: Action::Respond(response), curve, threshold, ..Acting::default() }
    }

    fn sixteenth() -> Curve {
        Curve::Steps(Steps::new([Step { from: 0.0, probability: 1.0 / 16.0 }]).expect("it is a probability"))
    }

    #[test]
    fn policies_are_put_in_words() {
        let linear = respond(Response::MarkOnly, Curve::Linear { full: 20_000.0 }, 30_000.0);
        assert_eq!(words(&linear), "mark linear:20.0 kB from 30.0 kB");
        assert_eq!(words(&respond(Response::MarkOrDrop, sixteenth(), 0.0)), "mark or drop 6.2 %");
        let whole = Acting { weigh: Weigh::Queue, ..respond(Response::Drop, Curve::Threshold, 1e6) };
        assert_eq!(words(&whole), "drop any flow from 1.00 MB");
        let (rate, burst) = (Rate::from_bits_per_second(10_000_000).expect("it is one"), ByteCount(15_000));
        assert_eq!(
            words(&Acting { action: Action::Limit { rate, burst }, ..respond(Response::Drop, Curve::Threshold, 0.0) }),
            "limit to 10.0 Mb/s"
        );
    }

    #[test]
    fn the_weight_of_a_flow_decides_its_probability() {
        let chosen = |curve, weight| {
            let victim = Victim { digest: 1, until: Nanos(0), weight, share: 32_768, exempt: false };
            probability(&respond(Response::MarkOnly, curve, 5_000.0), &victim)
        };
        assert_eq!([chosen(Curve::Threshold, 4_999), chosen(Curve::Threshold, 5_000)], [0.0, 1.0]);
        assert_eq!(chosen(Curve::Linear { full: 20_000.0 }, 10_000), 0.25);
        let share = Acting { weigh: Weigh::Share, threshold: 0.5, ..Acting::default() };
        assert_eq!(
            probability(&share, &Victim { digest: 1, until: Nanos(0), weight: 0, share: 32_768, exempt: false }),
            1.0
        );
    }
}
