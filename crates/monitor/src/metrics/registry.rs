//! The exported metrics: names, help texts and types (OpenMetrics 1.0).

use super::QueueState;
use crate::p4air::P4airStatus;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use queuescope_live::{Counters, P4airGroup};
use queuescope_wire::Nanos;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The metrics of an interface. Each carries the label `interface`.
pub fn registry(shown: Arc<Mutex<QueueState>>, interface: &str) -> Registry {
    let label = ("interface".into(), interface.to_owned().into());
    let mut registry = Registry::with_prefix_and_labels("queuescope", [label].into_iter());
    registry.register_collector(Box::new(QueueMetrics(shown)));
    registry
}

#[derive(Debug)]
struct QueueMetrics(Arc<Mutex<QueueState>>);

impl Collector for QueueMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let QueueState { counters, acted, .. } = &shown;
        let mut metrics = MetricsEncoder(&mut encoder);
        metrics.count("packets", "Packets on the wire that left the queue.", counters.packets)?;
        metrics.bytes("sent", "Bytes on the wire that left the queue.", counters.bytes)?;
        metrics.count("packets_congested", "Packets whose sojourn time was longer than tau.", counters.congested)?;
        let about = "Congested packets whose flow held more than alpha of the queue.";
        metrics.count("packets_contributing", about, counters.contributing)?;
        let drops: Vec<_> = Counters::REASONS.into_iter().zip(counters.drops).collect();
        metrics.counts("drops", "Packets on the wire that the qdisc dropped, by reason.", "reason", &drops)?;
        let about =
            "The same drops as the qdisc that dropped them counts (tc -s): a super-packet that it drops whole is one.";
        metrics.count("tc_drops", about, counters.tc_drops)?;
        metrics.count("marks", "Packets that the qdisc marked (CE).", counters.marked)?;
        let about = "Packets that arrived, or left by the count of the qdisc, but were not seen to leave or be dropped: those in the queue, and those that the kernel missed.";
        metrics.gauge("packets_unseen", about, None, counters.unseen() as f64)?;
        metrics.count(
            "packets_requeued",
            "Packets that the device returned to the queue and that left again.",
            counters.requeued,
        )?;
        metrics.count("packets_unstamped", "Packets without an enqueue time.", counters.unstamped)?;
        metrics.count(
            "packets_unjudged",
            "Congested packets of which it is unknown whether their flow contributed.",
            counters.unjudged,
        )?;
        metrics.count(
            "packets_untold",
            "Packets that were not handed over because the ring buffer was full.",
            counters.untold,
        )?;
        metrics.delays(counters)?;
        let of_late = [
            ("delay_longest", "The longest sojourn time of the last second.", Unit::Seconds, seconds(shown.longest)),
            (
                "depth_most",
                "The most bytes in the queue in the last second.",
                Unit::Bytes,
                shown.deepest.bytes.0 as f64,
            ),
        ];
        for (name, about, unit, value) in of_late {
            metrics.gauge(name, about, Some(&unit), value)?;
        }
        let about = "The most packets in the queue in the last second.";
        metrics.gauge("depth_most_packets", about, None, shown.deepest.packets as f64)?;
        metrics.count("bursts", "Bursts that ended.", shown.bursts)?;
        metrics.sum("bursts_length", "Total duration of the bursts that ended.", seconds(shown.length))?;
        metrics.gauge(
            "burst_last_delay",
            "The longest sojourn time of the last burst.",
            Some(&Unit::Seconds),
            seconds(shown.peak),
        )?;
        metrics.gauge(
            "tau",
            "The sojourn time above which the queue is congested.",
            Some(&Unit::Seconds),
            seconds(shown.tau),
        )?;
        metrics.gauge(
            "alpha",
            "The share of the queue above which a flow contributes.",
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
        let about = "Packets of flows that are acted on, by outcome before the queue.";
        metrics.counts("acted", about, "outcome", &outcomes)?;
        metrics.count("exempt", "Packets of flows that are never acted on, let through.", acted.exempt)?;
        let about = "1 while acting changes packets of flows that contribute, otherwise 0.";
        metrics.gauge("acting", about, None, f64::from(u8::from(shown.is_real)))?;
        let about = "Times that acting stopped because the policy file was removed, emptied, invalid or said off.";
        metrics.count("acting_stopped", about, shown.acting.stopped)?;
        let about = "Times that the policy file was invalid or could not be read; acting stopped.";
        metrics.count("policy_refused", about, shown.acting.refused)?;
        if let Some(p4air) = &shown.p4air {
            metrics.p4air(p4air)?;
        }
        let about = "The version of queuescope that exports these metrics.";
        metrics.gauge_of("build_info", about, ("version", env!("CARGO_PKG_VERSION")), 1.0)
    }
}

/// Encodes metrics in the order of the calls.
struct MetricsEncoder<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl MetricsEncoder<'_, '_> {
    fn count(&mut self, name: &str, about: &str, value: u64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, about, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    fn bytes(&mut self, name: &str, about: &str, value: u64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, about, Some(&Unit::Bytes), MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    /// A counter in seconds.
    fn sum(&mut self, name: &str, about: &str, value: f64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, about, Some(&Unit::Seconds), MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    /// A counter with one value per value of a label.
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

    fn p4air(&mut self, status: &P4airStatus) -> fmt::Result {
        let P4airStatus { counters, division, .. } = status;
        let flows = P4airGroup::ALL.map(|group| (group.name(), division.flows(group)));
        self.gauges("p4air_flows", "Flows of P4air, by group.", "group", &flows)?;
        let queues = P4airGroup::LONG_LIVED.map(|group| (group.name(), division.queues(group).len() as u32));
        self.gauges("p4air_queues", "Queues of P4air for long-lived flows, by group.", "group", &queues)?;
        let moves: Vec<_> = P4airGroup::LONG_LIVED.iter().map(|group| group.name()).zip(counters.moves).collect();
        self.counts("p4air_moves", "Flows that moved to a group of long-lived flows.", "group", &moves)?;
        self.count("p4air_queues_given", "Queues that moved to another group.", division.given.into())?;
        let about = "Packets of flows above their share, and ACKs whose window was lowered, by outcome.";
        self.counts("p4air_acted", about, "outcome", &counters.outcomes())?;
        self.count("p4air_no_room", "Times that a flow found no room in the table of P4air.", counters.full)?;
        let about = "1 while P4air has queues and acts on flows, 0 in a dry run and when its time is over.";
        self.gauge("p4air_acting", about, None, f64::from(u8::from(status.is_real)))
    }

    /// A gauge with one value per value of a label.
    fn gauges(&mut self, name: &str, about: &str, label: &str, values: &[(&str, u32)]) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, about, None, MetricType::Gauge)?;
        for (value_of, value) in values {
            metric.encode_family(&[(label, *value_of)])?.encode_gauge(&f64::from(*value))?;
        }
        Ok(())
    }

    /// The histogram of sojourn times; the kernel's bucket bounds are powers of two.
    fn delays(&mut self, counters: &Counters) -> fmt::Result {
        let about = "Sojourn times in the queue of packets on the wire.";
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
    use queuescope_live::{Acted, P4airCounters, P4airDivision, P4airParams};
    use queuescope_wire::Rate;
    use std::collections::{BTreeMap, BTreeSet};

    /// The metrics of a queue with some sojourn times, as text.
    fn exported() -> String {
        let mut delays = [0; Counters::DELAYS];
        (delays[3], delays[20], delays[31]) = (5, 7, 1);
        let counters = Counters {
            packets: 13,
            bytes: 1000,
            tc_drops: 3,
            delay: Nanos(1_500_000_000),
            delays,
            ..Counters::default()
        };
        let acted = Acted { marked: 4, ..Acted::default() };
        let p4air = P4airStatus {
            is_real: true,
            params: P4airParams::new(Rate::from_bits_per_second(1_000_000).unwrap()),
            counters: P4airCounters { moves: [4, 3, 2, 1], ..P4airCounters::default() },
            division: P4airDivision::default(),
            flows: Vec::new(),
        };
        let shown = QueueState {
            counters,
            acted,
            p4air: Some(p4air),
            tau: Nanos(1_000_000),
            alpha: 0.01,
            bursts: 2,
            ..QueueState::default()
        };
        let mut text = String::new();
        encode(&mut text, &registry(Arc::new(Mutex::new(shown)), "eth\"0")).unwrap();
        text
    }

    /// The samples, by name and labels. Parses the format by its specification; checks that each belongs to a family with a type and a
    /// help text.
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
    fn the_exported_text_can_be_parsed() {
        let samples = samples(&exported());
        let value = |name: &str, label: &str| {
            let mut found = samples
                .iter()
                .filter(|(sample, _)| sample.starts_with(&format!("queuescope_{name}{{")) && sample.contains(label));
            let value = *found.next().unwrap_or_else(|| panic!("{name} {label}: {samples:?}")).1;
            assert!(found.next().is_none());
            value
        };
        assert_eq!(
            [
                value("packets_total", ""),
                value("sent_bytes_total", ""),
                value("tau_seconds", ""),
                value("tc_drops_total", "")
            ],
            [13.0, 1000.0, 0.001, 3.0]
        );
        assert_eq!(
            [value("acted_total", "\"marked\""), value("drops_total", "qdisc"), value("bursts_total", "")],
            [4.0, 0.0, 2.0]
        );
        assert_eq!(
            [
                value("p4air_moves_total", "model-based"),
                value("p4air_flows", "\"ant\""),
                value("p4air_queues", "delay-based"),
                value("p4air_acting", "")
            ],
            [1.0, 0.0, 0.0, 1.0]
        );
        let bucket = |bound: &str| value("delay_seconds_bucket", &format!("le=\"{bound}\""));
        assert_eq!(
            [bucket("0.000004096"), bucket("0.000008192"), bucket("1.073741824"), bucket("+Inf")],
            [0.0, 5.0, 12.0, 13.0]
        );
        assert_eq!([value("delay_seconds_count", ""), value("delay_seconds_sum", "")], [13.0, 1.5]);
    }

    /// The page of the book has each metric. After a change, `UPDATE_GOLDEN=1 cargo test -p queuescope-monitor --lib metrics::` writes it again.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "the page is a file of the repository")]
    fn the_page_in_the_book_is_current() {
        let mut page = concat!(
            "# Metrics\n\nWhat [`queuescope live --metrics`](live.md#metrics) answers, in the OpenMetrics format. Each sample has the label \
             `interface`. Counters\nare since the beginning of the run, and their samples end in `_total`. This page is made from the code.\n\n",
            "| metric | type | labels | what it is |\n| --- | --- | --- | --- |\n"
        )
        .to_owned();
        let text = exported();
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
            "{file} is out of date: UPDATE_GOLDEN=1 writes it again"
        );
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the dashboard is a file of the repository")]
    fn the_dashboard_queries_only_exported_metrics() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dashboards/queuescope.json");
        let dashboard: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let known: BTreeSet<_> =
            samples(&exported()).into_keys().map(|sample| sample.split('{').next().unwrap().to_owned()).collect();
        let panels = dashboard["panels"].as_array().unwrap();
        let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
        assert_eq!(ids.len(), panels.len());
        let texts: Vec<_> = panels
            .iter()
            .flat_map(|panel| panel["targets"].as_array().unwrap())
            .map(|target| &target["expr"])
            .collect();
        let variable = &dashboard["templating"]["list"][2]["query"]["query"];
        let mut queries = 0;
        for text in texts.into_iter().chain([variable]) {
            let text = text.as_str().unwrap();
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            for name in text.split(|letter| !is_part(letter)).filter(|name| name.starts_with("queuescope_")) {
                assert!(known.contains(name), "{name} of {text}");
                queries += 1;
            }
        }
        assert!(queries > 15, "{queries}");
    }
}
