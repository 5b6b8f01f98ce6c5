//! The names under which numbers are told (OpenMetrics 1.0).

use super::Shown;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use queuescope_live::Counters;
use queuescope_wire::Nanos;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// All that is told of an interface.
pub fn registry(shown: Arc<Mutex<Shown>>, interface: &str) -> Registry {
    let label = ("interface".into(), interface.to_owned().into());
    let mut registry = Registry::with_prefix_and_labels("queuescope", [label].into_iter());
    registry.register_collector(Box::new(Told(shown)));
    registry
}

#[derive(Debug)]
struct Told(Arc<Mutex<Shown>>);

impl Collector for Told {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Shown { counters, acted, .. } = &shown;
        let mut tell = Teller(&mut encoder);
        tell.count("packets", "Packets on the wire that left the queue.", counters.packets)?;
        tell.bytes("sent", "Bytes on the wire that left the queue.", counters.bytes)?;
        tell.count("packets_congested", "Packets that waited for longer than tau.", counters.congested)?;
        let about = "Congested packets whose flow had more than alpha of the queue.";
        tell.count("packets_contributing", about, counters.contributing)?;
        let drops: Vec<_> = Counters::REASONS.into_iter().zip(counters.drops).collect();
        tell.counts("drops", "Packets that the qdisc dropped, by reason.", "reason", &drops)?;
        tell.count("marks", "Packets that the qdisc marked (CE).", counters.marked)?;
        let about = "Packets that came and were neither seen to leave nor dropped: those in the queue, and those that the kernel left out.";
        tell.gauge("packets_unseen", about, None, counters.unseen() as f64)?;
        tell.count(
            "packets_requeued",
            "Packets that the device gave back and that left once more.",
            counters.requeued,
        )?;
        tell.count("packets_unstamped", "Packets without the time at which they came.", counters.unstamped)?;
        tell.count("packets_untold", "Packets that were to be told and found no room.", counters.untold)?;
        tell.delays(counters)?;
        let of_late = [
            ("delay_longest", "The longest wait of the last second.", Unit::Seconds, seconds(shown.longest)),
            (
                "depth_most",
                "The most bytes in the queue in the last second.",
                Unit::Bytes,
                shown.deepest.bytes.0 as f64,
            ),
        ];
        for (name, about, unit, value) in of_late {
            tell.gauge(name, about, Some(&unit), value)?;
        }
        let about = "The most packets in the queue in the last second.";
        tell.gauge("depth_most_packets", about, None, shown.deepest.packets as f64)?;
        tell.count("bursts", "Bursts that ended.", shown.bursts)?;
        tell.sum("bursts_length", "How long bursts that ended took.", seconds(shown.length))?;
        tell.gauge(
            "burst_last_delay",
            "The longest wait of the last burst.",
            Some(&Unit::Seconds),
            seconds(shown.peak),
        )?;
        tell.gauge("tau", "The delay from which on the queue is congested.", Some(&Unit::Seconds), seconds(shown.tau))?;
        tell.gauge(
            "alpha",
            "The share from which on a flow contributes.",
            Some(&Unit::Other("ratio".into())),
            shown.alpha,
        )?;
        let outcomes = [
            ("spared", acted.spared),
            ("marked", acted.marked),
            ("would_mark", acted.would_mark),
            ("marked_before", acted.marked_before),
            ("unmarkable", acted.unmarkable),
            ("dropped", acted.dropped),
            ("would_drop", acted.would_drop),
            ("limited", acted.limited),
            ("would_limit", acted.would_limit),
        ];
        let about = "Packets of flows that are acted on, by what became of them before the queue.";
        tell.counts("acted", about, "outcome", &outcomes)?;
        tell.count("exempt", "Packets of flows that are never acted on, let through.", acted.exempt)?;
        let about = "1 while packets of flows that contribute are changed, 0 while they are not.";
        tell.gauge("acting", about, None, f64::from(u8::from(shown.is_real)))?;
        let about = "Times that acting stopped, as the policy file was taken away, emptied, not clear or said off.";
        tell.count("acting_stopped", about, shown.acting.stopped)?;
        let about = "Times that the policy file held what cannot be done, or could not be read; acting stopped.";
        tell.count("policy_refused", about, shown.acting.refused)?;
        let about = "The version that tells this.";
        tell.gauge_of("build_info", about, ("version", env!("CARGO_PKG_VERSION")), 1.0)
    }
}

/// Numbers in the order in which they are told.
struct Teller<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Teller<'_, '_> {
    fn count(&mut self, name: &str, about: &str, value: u64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, about, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    fn bytes(&mut self, name: &str, about: &str, value: u64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, about, Some(&Unit::Bytes), MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    /// Seconds.
    fn sum(&mut self, name: &str, about: &str, value: f64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, about, Some(&Unit::Seconds), MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    /// The same by some label.
    fn counts(&mut self, name: &str, about: &str, label: &str, values: &[(&str, u64)]) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, about, None, MetricType::Counter)?;
        for (key, value) in values {
            metric.encode_family(&[(label, *key)])?.encode_counter::<NoLabelSet, _, u64>(value, None)?;
        }
        Ok(())
    }

    fn gauge(&mut self, name: &str, about: &str, unit: Option<&Unit>, value: f64) -> fmt::Result {
        self.0.encode_descriptor(name, about, unit, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn gauge_of(&mut self, name: &str, about: &str, label: (&str, &str), value: f64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, about, None, MetricType::Gauge)?;
        metric.encode_family(&[label])?.encode_gauge(&value)
    }

    /// A histogram of delays; the kernel's bounds are powers of two.
    fn delays(&mut self, counters: &Counters) -> fmt::Result {
        let about = "How long packets on the wire waited in the queue.";
        let mut metric = self.0.encode_descriptor("delay", about, Some(&Unit::Seconds), MetricType::Histogram)?;
        let bound = |place| if place + 1 < Counters::DELAYS { seconds(Counters::bound(place)) } else { f64::INFINITY };
        let buckets: Vec<_> = counters.delays.iter().enumerate().map(|(place, count)| (bound(place), *count)).collect();
        let count = counters.delays.iter().sum();
        metric.encode_histogram::<NoLabelSet>(seconds(counters.delay), count, &buckets, None)
    }
}

fn seconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;
    use queuescope_live::Acted;
    use std::collections::{BTreeMap, BTreeSet};

    /// All that is told of a queue in which some packets waited.
    fn told() -> String {
        let mut delays = [0; Counters::DELAYS];
        (delays[3], delays[20], delays[31]) = (5, 7, 1);
        let counters =
            Counters { packets: 13, bytes: 1000, delay: Nanos(1_500_000_000), delays, ..Counters::default() };
        let acted = Acted { marked: 4, ..Acted::default() };
        let shown = Shown { counters, acted, tau: Nanos(1_000_000), alpha: 0.01, bursts: 2, ..Shown::default() };
        let mut text = String::new();
        encode(&mut text, &registry(Arc::new(Mutex::new(shown)), "eth\"0")).unwrap();
        text
    }

    /// Names and labels of samples with their values, as a plain reader of the format has them; each is of a family with a type and a help.
    fn samples(text: &str) -> BTreeMap<String, f64> {
        let (mut types, mut helped, mut samples) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        let (all, end) = text.rsplit_once("# EOF").unwrap();
        assert_eq!(end, "\n");
        for line in all.lines() {
            let words: Vec<_> = line.splitn(4, ' ').collect();
            match words[..] {
                ["#", "TYPE", name, kind] => assert!(types.insert(name, kind).is_none(), "{name} twice"),
                ["#", "HELP", name, _] => assert!(helped.insert(name)),
                ["#", "UNIT", name, unit] => assert!(name.ends_with(&format!("_{unit}"))),
                _ => {
                    let (sample, value) = line.rsplit_once(' ').unwrap();
                    let name = sample.split('{').next().unwrap();
                    let family = ["_total", "_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
                    let kind = types.get(family.unwrap_or(name));
                    let is_right = match kind {
                        Some(&"counter") => name.ends_with("_total"),
                        Some(&"histogram") => family.is_some(),
                        Some(&"gauge") => true,
                        _ => false,
                    };
                    assert!(is_right && helped.contains(family.unwrap_or(name)), "{line}");
                    assert!(sample.contains("interface=\"eth\\\"0\""), "{line}");
                    assert!(samples.insert(sample.to_owned(), value.parse().unwrap()).is_none(), "{line}");
                }
            }
        }
        samples
    }

    #[test]
    fn what_is_told_can_be_read() {
        let samples = samples(&told());
        let value = |name: &str, label: &str| {
            let mut found = samples
                .iter()
                .filter(|(sample, _)| sample.starts_with(&format!("queuescope_{name}{{")) && sample.contains(label));
            let value = *found.next().unwrap_or_else(|| panic!("{name} {label}: {samples:?}")).1;
            assert!(found.next().is_none());
            value
        };
        assert_eq!(
            [value("packets_total", ""), value("sent_bytes_total", ""), value("tau_seconds", "")],
            [13.0, 1000.0, 0.001]
        );
        assert_eq!(
            [value("acted_total", "\"marked\""), value("drops_total", "qdisc"), value("bursts_total", "")],
            [4.0, 0.0, 2.0]
        );
        let bucket = |bound: &str| value("delay_seconds_bucket", &format!("le=\"{bound}\""));
        assert_eq!(
            [bucket("0.000004096"), bucket("0.000008192"), bucket("1.073741824"), bucket("+Inf")],
            [0.0, 5.0, 12.0, 13.0]
        );
        assert_eq!([value("delay_seconds_count", ""), value("delay_seconds_sum", "")], [13.0, 1.5]);
    }

    /// The page of the book has each metric. After a change, `UPDATE_GOLDEN=1 cargo test -p queuescope-monitor --lib metrics::` writes it anew.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "the page is a file of the repository")]
    fn the_page_in_the_book_is_current() {
        let mut page = concat!(
            "# Metrics\n\nWhat [`queuescope live --metrics`](live.md#metrics) answers, in the OpenMetrics format. Each sample has the label \
             `interface`. Counters\nare since the beginning of the run, and their samples end in `_total`. This page is made from the code.\n\n",
            "| metric | type | labels | what it is |\n| --- | --- | --- | --- |\n"
        )
        .to_owned();
        let text = told();
        let lines: Vec<_> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let ["#", "HELP", name, help] = line.splitn(4, ' ').collect::<Vec<_>>()[..] else { continue };
            let mut near = lines[at..].iter().chain(lines[..at].iter().rev());
            let kind = near.find_map(|line| line.strip_prefix("# TYPE ")?.strip_prefix(name)?.strip_prefix(' '));
            let samples = lines
                .iter()
                .filter(|line| line.starts_with(&format!("{name}_")) || line.starts_with(&format!("{name}{{")));
            let labels: BTreeSet<_> = samples
                .filter_map(|line| Some(line.split_once('{')?.1.split_once('}')?.0))
                .flat_map(|labels| labels.split(',').filter_map(|label| label.split_once('=')))
                .map(|(label, _)| format!("`{label}`"))
                .filter(|label| label != "`interface`" && label != "`le`")
                .collect();
            let labels = labels.into_iter().collect::<Vec<_>>().join(", ");
            page += &format!("| `{name}` | {} | {labels} | {help} |\n", kind.expect("it has a type"));
        }
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(file, &page).unwrap();
        }
        assert!(
            std::fs::read_to_string(file).unwrap_or_default() == page,
            "{file} is old: UPDATE_GOLDEN=1 writes it anew"
        );
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the dashboard is a file of the repository")]
    fn the_dashboard_asks_for_what_is_told() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dashboards/queuescope.json");
        let dashboard: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let known: BTreeSet<_> =
            samples(&told()).into_keys().map(|sample| sample.split('{').next().unwrap().to_owned()).collect();
        let panels = dashboard["panels"].as_array().unwrap();
        let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
        assert_eq!(ids.len(), panels.len());
        let texts: Vec<_> = panels
            .iter()
            .flat_map(|panel| panel["targets"].as_array().unwrap())
            .map(|target| &target["expr"])
            .collect();
        let variable = &dashboard["templating"]["list"][2]["query"]["query"];
        let mut asked = 0;
        for text in texts.into_iter().chain([variable]) {
            let text = text.as_str().unwrap();
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            for name in text.split(|letter| !is_part(letter)).filter(|name| name.starts_with("queuescope_")) {
                assert!(known.contains(name), "{name} of {text}");
                asked += 1;
            }
        }
        assert!(asked > 15, "{asked}");
    }
}
