//! The parameters of ConQuest beside a router. It only measures, so scenarios do not have it.

use super::set::replace_all;
use anyhow::Result;
use queuescope_p4::algorithms::ConQuestLegacyParams;
use queuescope_scenario::Parameter;
use queuescope_sketch::{Expiry, Passes};
use queuescope_wire::{ByteCount, Nanos, UnitError};
use std::str::FromStr;

/// The defaults with some parameters replaced: `KEY=VALUE`.
///
/// # Errors
/// Names the first text that is not a parameter with a value of its kind.
pub(super) fn with(set: &[String]) -> Result<ConQuestLegacyParams> {
    let mut params = ConQuestLegacyParams::default();
    let known: Vec<_> = parameters(&params).into_iter().map(|it| it.key).collect();
    replace_all("conquest-legacy", set, &known, |key, value| replace(&mut params, key, value))?;
    Ok(params)
}

/// The parameters with their values and ranges.
pub(super) fn parameters(params: &ConQuestLegacyParams) -> Vec<Parameter> {
    let of = |key: &str, value: String, range: &str, about| Parameter {
        key: key.to_owned(),
        value,
        range: range.to_owned(),
        about,
    };
    let (tapped, sketch) = (&params.tapped, &params.tapped.sketch);
    let time = |time: Nanos| format!("{}ns", time.0);
    let ingress: Vec<_> = params.ingress.iter().map(u16::to_string).collect();
    vec![
        of("window", time(sketch.window), "65536ns to 67108864ns, a power of two", "The time window of a snapshot (T)"),
        of("snapshots", sketch.snapshots.to_string(), "4, 8 or 16", "The number of snapshots (h)"),
        of("rows", sketch.rows.to_string(), "1 or 2", "The rows of each snapshot (R)"),
        of("columns", sketch.columns.to_string(), "2 to 65536, a power of two", "The columns of each row (C)"),
        of(
            "expiry",
            sketch.expiry.to_string(),
            "clean or clean-plain",
            "Whether generated packets clean an idle link's snapshots, or packets alone",
        ),
        of(
            "estimator",
            tapped.estimator.to_string(),
            "inner or outer",
            "Whether windows count that a packet waited in part of",
        ),
        of("slots", tapped.slots.to_string(), "2 to 65536, a power of two", "The packets that can be in the router"),
        of("max-delay", time(tapped.max_delay), "1ns to 2.08s", "The longest time that a packet can be in the router"),
        of("tau", time(tapped.tau), "up to 2.08s", "Packets that waited no longer are not reported"),
        of(
            "threshold",
            format!("{}B", tapped.threshold),
            "below 2^32",
            "The least bytes of a flow in the queue with which it is reported",
        ),
        of("ingress", ingress.join("+"), "0 to 511, joined by +", "The ports with taps of links into the router"),
        of("egress", params.egress.to_string(), "0 to 511", "The port with a tap of the link out of it"),
        of("collector", params.collector.to_string(), "0 to 511", "The port to which reports go"),
    ]
}

/// Replaces one of the parameters.
fn replace(params: &mut ConQuestLegacyParams, key: &str, value: &str) -> Result<(), String> {
    let tapped = &mut params.tapped;
    let sketch = &mut tapped.sketch;
    match key {
        "window" => sketch.window = time(value)?,
        "snapshots" => sketch.snapshots = number(value)?,
        "rows" => sketch.rows = number(value)?,
        "columns" => sketch.columns = number(value)?,
        "expiry" => {
            let all = [Passes::Generated, Passes::None].map(|passes| Expiry::Clean { passes });
            let named = all.into_iter().find(|it| it.to_string() == value);
            sketch.expiry = named.ok_or("must be clean or clean-plain")?;
        }
        "estimator" => tapped.estimator = value.parse().map_err(|_| "must be inner or outer")?,
        "slots" => tapped.slots = number(value)?,
        "max-delay" => tapped.max_delay = time(value)?,
        "tau" => tapped.tau = time(value)?,
        "threshold" => {
            let bytes: ByteCount = value.parse().map_err(|why| without(value, &why))?;
            tapped.threshold = u32::try_from(bytes.0).map_err(|_| "must be below 4294967296 bytes")?;
        }
        "ingress" => params.ingress = value.split('+').map(number).collect::<Result<_, _>>()?,
        "egress" => params.egress = number(value)?,
        _ => params.collector = number(value)?,
    }
    Ok(())
}

fn number<T: FromStr>(value: &str) -> Result<T, String> {
    value.trim().parse().map_err(|_| "must be a whole number, and not too large".to_owned())
}

fn time(value: &str) -> Result<Nanos, String> {
    value.parse().map_err(|why| without(value, &why))
}

/// What a unit's error says of a value, which the message already names.
fn without(value: &str, why: &UnitError) -> String {
    why.to_string().trim_start_matches(&format!("'{value}' ")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_p4::algorithms::conquest_legacy_with;

    fn set(text: &str) -> Result<ConQuestLegacyParams> {
        with(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn each_parameter_can_be_set() {
        let usual = ConQuestLegacyParams::default();
        for (key, value, shown) in [
            ("window", "131072ns", "131072ns"),
            ("snapshots", "8", "8"),
            ("rows", "1", "1"),
            ("columns", "128", "128"),
            ("expiry", "clean-plain", "clean-plain"),
            ("estimator", "inner", "inner"),
            ("slots", "1024", "1024"),
            ("max-delay", "20ms", "20000000ns"),
            ("tau", "2ms", "2000000ns"),
            ("threshold", "10kB", "10000B"),
            ("ingress", "7+9", "7+9"),
            ("egress", "11", "11"),
            ("collector", "12", "12"),
        ] {
            let params = set(&format!("{key}={value}")).expect("it is valid");
            let pairs = parameters(&usual).into_iter().zip(parameters(&params));
            let changed: Vec<_> = pairs.filter(|(one, other)| one != other).map(|(_, other)| other).collect();
            assert_eq!(changed.len(), 1, "{key}");
            assert_eq!((&*changed[0].key, &*changed[0].value), (key, shown));
            assert_eq!(set(&format!("{key}={shown}")).expect("it is valid"), params, "what is shown can be written");
            conquest_legacy_with(&params).expect("it fits");
        }
        assert_eq!(parameters(&usual).len(), 13, "all are above");
    }

    #[test]
    fn errors_name_the_parameter() {
        let error = |text: &str| {
            let program = set(text).and_then(|params| Ok(conquest_legacy_with(&params)?));
            program.expect_err("it is not valid").to_string()
        };
        assert_eq!(
            error("taps=1"),
            "--set taps=1: unknown parameter: use one of window, snapshots, rows, columns, expiry, estimator, slots, max-delay, tau, threshold, ingress, egress, collector"
        );
        assert_eq!(error("ingress=1+x"), "--set ingress=1+x: '1+x' must be a whole number, and not too large");
        assert!(
            error("tau=soon").starts_with("--set tau=soon: 'soon' is not a time: the unit"),
            "{}",
            error("tau=soon")
        );
        let of_program = "the program conquest-legacy: the parameter";
        for (text, key) in [
            ("slots=1000", "slots: 1000 packets cannot wait: use a power of two from 2 to 65536"),
            ("max-delay=3s", "max-delay: the longest delay cannot be 3"),
            ("estimator=overlap", "estimator: must be inner or outer"),
            ("tau=3s", "tau: must be at most"),
            ("rows=3", "rows: must be 1 or 2"),
            ("window=1ms", "window: must be a power of two"),
            ("ingress=4", "ingress: must be at least one"),
            ("egress=512", "egress: must be 0 to 511"),
            ("ingress=1+512", "ingress: must be 0 to 511"),
        ] {
            assert!(error(text).starts_with(&format!("{of_program} {key}")), "{}", error(text));
        }
    }
}
