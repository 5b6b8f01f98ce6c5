//! Which parameters of scenarios a program has, and their ranges where a switch has narrower ones.

use super::Parameters;
use super::set::instead;
use anyhow::{Result, bail};
use queuescope_scenario::Parameter;
use queuescope_text::nearest;

/// The parameters that a program has, with its ranges.
pub(super) fn of_program(name: &str, all: Vec<Parameter>) -> Vec<Parameter> {
    let own = all.into_iter().filter(|it| has(name, &it.key));
    own.map(|it| match range(name, &it.key) {
        Some(range) => Parameter { range: range.to_owned(), ..it },
        None => it,
    })
    .collect()
}

/// # Errors
/// Names the first parameter that was set and has no part in the program. `texts` are those of `--set`.
pub(super) fn check_unused(name: &str, texts: &[String], set: &Parameters, defaults: &Parameters) -> Result<()> {
    let usual = defaults.list();
    let all = set.list();
    let is_named =
        |it: &&Parameter| texts.iter().any(|text| text.split('=').next().is_some_and(|key| key.trim() == it.key));
    let is_changed = |it: &&Parameter| usual.iter().all(|other| other.key != it.key || other.value != it.value);
    if let Some(unused) = all.iter().filter(|it| !has(name, &it.key)).find(|it| is_named(it) || is_changed(it)) {
        let instead = instead(name, &own(name, &usual));
        bail!("--set {}: the program {name} does not have this parameter: {instead}", unused.key);
    }
    Ok(())
}

/// # Errors
/// Names the first text whose key is not of the program, and not close to one of scenarios, for which their error has the nearest.
pub(super) fn check_known(name: &str, texts: &[String], defaults: &Parameters) -> Result<()> {
    let all = defaults.list();
    let first = |key: &str| key.split('.').next().unwrap_or_default().trim().to_owned();
    for text in texts {
        let Some((key, _)) = text.split_once('=') else { continue };
        let key = first(key);
        let is_known = |it: &Parameter| first(&it.key) == key;
        if !all.iter().any(is_known) && nearest(&key, all.iter().map(|it| &*it.key)).is_none() {
            bail!("--set {text}: unknown parameter: {}", instead(name, &own(name, &all)));
        }
    }
    Ok(())
}

/// The keys that a program has.
fn own<'a>(name: &str, all: &'a [Parameter]) -> Vec<&'a str> {
    all.iter().map(|it| &*it.key).filter(|key| has(name, key)).collect()
}

/// Whether a parameter of a scenario has a part in a program. Queues are the switch's.
fn has(name: &str, key: &str) -> bool {
    let is_aqm = key == "aqm" || key.starts_with("aqm.");
    match name {
        // The rest is CoDel's.
        "step" => key == "ce-threshold",
        "red-egress" => !["target-delay", "mean-packet", "draws"].iter().any(|unused| is_of(key, unused)),
        // Each role is a program.
        "abc-edge" => is_aqm || ["reference", "memory", "least-time"].contains(&key),
        "abc-core" => is_aqm,
        "abc-core-median" => is_aqm && key != "aqm.memory",
        "abc-strip" => false,
        // A switch has the packets behind a packet, and not their time.
        "conquest-stands" => key != "behind",
        // The control plane removes flows, and the hash is a CRC.
        "p4air" => !["idle", "table.hashed.seed"].contains(&key),
        _ => true,
    }
}

/// Whether a key is this one, or of its table.
fn is_of(key: &str, table: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What a program can have, where it is less than what a scenario can.
fn range(name: &str, key: &str) -> Option<&'static str> {
    Some(match (name, key) {
        ("step", "ce-threshold") => "0s to 4.29s",
        ("red-egress", "unit") => "packets",
        ("red-egress", "weight") => "a power of two from 1/65536 to 1/2",
        ("red-egress", "thresholds.min" | "thresholds.max") => "0 to 255",
        ("red-egress", "wait") => "false",
        ("red-egress", "at-egress") => "true",
        ("red-egress", "adaptation") => "fixed",
        ("conquest", "act-at") => "egress",
        ("conquest-ingress" | "conquest-feedback", "act-at") => "ingress",
        ("conquest-stands", "unit") => "share-of-queue",
        ("conquest-stands", "threshold") => "0.5",
        ("conquest-stands", "curve") => "threshold",
        ("conquest-stands", "act-at") => "egress",
        ("conquest" | "conquest-stands" | "conquest-ingress" | "conquest-feedback", key) => of_conquest(name, key)?,
        ("abc-edge", "memory") => "1.07ms to 8.76s; its half-life becomes a power of two",
        ("abc-edge", "least-time") => "0s to 4.29s, at most the half-life of memory",
        ("abc-edge" | "abc-core", "aqm.memory") => "340us to 22s; it becomes a power of two of packets",
        ("abc-edge" | "abc-core" | "abc-core-median", "aqm.least" | "aqm.base") => "0 to 511, whole numbers",
        ("abc-edge" | "abc-core" | "abc-core-median", "aqm.gamma") => "4 to 256, a power of two",
        ("p4air", key) => of_p4air(key)?,
        _ => return None,
    })
}

fn of_conquest(name: &str, key: &str) -> Option<&'static str> {
    Some(match key {
        "window" => "65536ns to 67108864ns, a power of two; with the generator, 128 ns for each column",
        "snapshots" => "4, 8 or 16",
        "rows" if ["conquest", "conquest-stands"].contains(&name) => "1 to 4",
        "rows" => "1 or 2",
        "columns" => "2 to 65536, a power of two",
        "estimator" => "inner",
        "unit" => "packets, bytes",
        "behind" => "0s",
        "tau" => "0s to 2.147s",
        "threshold" => "0 to 4294967295",
        "curve" => "threshold, steps",
        "act-at.ingress.hold" => "0s to 2.147s",
        "act-at.ingress.registers" => "2 to 65536, a power of two",
        "act-at.ingress.action" if name == "conquest-ingress" => "respond",
        "act-at.ingress.action" => "drop, limit, reroute",
        "act-at.ingress.action.limit.interval" => "1us to 2.147s, times burst, too",
        "response" if name == "conquest-feedback" => "mark-or-drop: it has no effect",
        _ => return None,
    })
}

fn of_p4air(key: &str) -> Option<&'static str> {
    Some(match key {
        "queues" => "8, 16 or 32",
        "table" => "hashed",
        "table.hashed.entries" => "128 to 65536, a power of two",
        "newest" => "of-queue",
        "start" => "new-flows",
        "assignment" => "in-turn",
        "queueing" => "divided",
        "rtt" => "handshake",
        "mark" => "0",
        "share" => "shift",
        "packet" => "64B to 16384B",
        "act-on" => "share",
        "act-every" => "packet",
        "delay-passes" => "0 to 255",
        "least-window" => "1B to 65535B",
        "fingerprint.restarts" | "fingerprint.repeated-syn-restarts" => "true",
        "fingerprint.rise" => "of-previous",
        "fingerprint.rise.of-previous.shift" => "1 to 11",
        "fingerprint.reduction-shift" => "1 to 15",
        "fingerprint.pattern" => "pulses",
        "fingerprint.least-change" => "0 to 32767",
        "fingerprint.default-rtt" => "1us to 1.07s",
        _ => return None,
    })
}
