//! The metrics of a coordinator.

use anyhow::Result;
use queuescope_fleet::coordinator::{Measures, Measuring};
use queuescope_monitor::{Listen, MetricFamily, MetricsServer};
use std::collections::BTreeMap;

/// What the names of all metrics begin with.
const PREFIX: &str = "queuescope_fleet";

/// Serves the metrics of a coordinator; returns the server and its address.
///
/// # Errors
/// Fails if the address cannot be bound or a thread cannot start.
pub fn serve(at: &Listen, measuring: Measuring) -> Result<(MetricsServer, std::net::SocketAddr)> {
    Ok(MetricsServer::serve(at, PREFIX, move || families(&measuring.read()))?)
}

fn families(measures: &Measures) -> Vec<MetricFamily> {
    let Measures { cuts, uploads, .. } = measures;
    let counter = MetricFamily::counter;
    let gauge = MetricFamily::gauge;
    let sinks = |of: fn(&(queuescope_fleet::coordinator::SinkReport, u64)) -> u64| {
        measures.sinks.iter().map(|sink| (sink.0.sink.clone(), of(sink) as f64)).collect::<Vec<_>>()
    };
    let mut all = vec![
        gauge("members", "Members by state.").labelled("state", labelled(&measures.members)),
        counter("cuts", "Cuts that were made.").of(cuts.made as f64),
        counter("cuts_void", "Cuts that are void: a lease ended before its tail thawed.").of(cuts.void as f64),
        counter("cuts_partial", "Cuts without some of the members.").of(cuts.partial as f64),
        MetricFamily::seconds("cuts_time", "Total time of cuts, from the first message to the last reply.").of(cuts.time.0 as f64 / 1e9),
        counter("questions", "Questions to members, also of control programs.").of(measures.questions as f64),
        counter("replies", "Replies of members to questions, those that did not come included, by state.").labelled("state", labelled(&measures.replies)),
        counter("alerts", "Alerts that are or were stored, from the first start on.").of(measures.alerts as f64),
        gauge("alerts_waiting", "Alerts that wait at members to be stored.").of(measures.alerts_waiting as f64),
        gauge("actions", "Actions that are kept, by state.").labelled("state", labelled(&measures.actions)),
        gauge("uploads_waiting", "Volumes of members that wait to be uploaded.").of(uploads.waiting as f64),
        MetricFamily::bytes("uploads_waiting_size", "Their size.").of(uploads.waiting_bytes as f64),
        gauge("uploads_confirmed", "Volumes that members have uploaded since they began.").of(uploads.confirmed as f64),
        gauge("uploads_held", "Volumes that are too old or too many, and stay because they wait to be uploaded.").of(uploads.held as f64),
        gauge("uploads_troubled", "Members whose last upload failed.").of(measures.uploads_troubled as f64),
        gauge("connections", "Open connections.").of(measures.connections as f64),
        counter("connections_refused", "Connections that were refused: without a valid certificate, too slow, or over the limit.")
            .of(measures.connections_refused as f64),
        counter("calls_refused", "Calls that were refused by the certificate or the role of the caller.").of(measures.calls_refused as f64),
        counter("messages_rejected", "Messages of members that were rejected, by reason: of an unknown kind, malformed, or an answer that nobody waits for.")
            .labelled("reason", measures.rejected.map(|(reason, count)| (reason.to_owned(), count as f64)).into()),
    ];
    if !measures.sinks.is_empty() {
        all.extend([
            gauge("sink_pending", "Alerts that wait to be sent, by sink.").labelled("sink", sinks(|sink| sink.1)),
            counter("sink_sent", "Alerts that were sent, by sink.").labelled("sink", sinks(|sink| sink.0.stats.sent)),
            counter("sink_refused", "Alerts that the receiver refused, by sink.")
                .labelled("sink", sinks(|sink| sink.0.stats.refused)),
            counter("sink_left_out", "Alerts that were not sent because too many waited, by sink.")
                .labelled("sink", sinks(|sink| sink.0.stats.left_out)),
            counter("sink_retried", "Attempts that failed, by sink.")
                .labelled("sink", sinks(|sink| sink.0.stats.retried)),
            gauge("sink_failing", "1 while the last attempt of a sink failed.")
                .labelled("sink", sinks(|sink| sink.0.is_failing.into())),
        ]);
    }
    let version = vec![(env!("CARGO_PKG_VERSION").to_owned(), 1.0)];
    all.push(gauge("build_info", "The version of queuescope that exports these metrics.").labelled("version", version));
    all
}

fn labelled(values: &BTreeMap<&'static str, u64>) -> Vec<(String, f64)> {
    values.iter().map(|(name, value)| ((*name).to_owned(), *value as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_fleet::coordinator::{SinkReport, SinkStats};
    use queuescope_monitor::metrics_text;
    use std::collections::BTreeSet;

    /// All metrics of a coordinator with a sink, as text.
    fn exported() -> String {
        let report = SinkReport {
            sink: "webhook:http://localhost/\"".to_owned(),
            stats: SinkStats { sent: 7, ..SinkStats::default() },
            position: 7,
            is_failing: true,
        };
        let mut measures = Measures { sinks: vec![(report, 3)], ..Measures::default() };
        measures.members.insert("here", 2);
        metrics_text(PREFIX, move || families(&measures)).expect("it can be written")
    }

    /// The names of metrics in a text.
    fn names(text: &str) -> BTreeSet<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = text.split(|c| !is_part(c)).filter(|word| word.starts_with("queuescope_fleet_"));
        words.map(|word| word.trim_end_matches("_total").to_owned()).collect()
    }

    #[test]
    fn metrics_have_the_values_of_the_coordinator() {
        let text = exported();
        for line in [
            "queuescope_fleet_members{state=\"here\"} 2.0",
            "queuescope_fleet_cuts_total 0.0",
            "queuescope_fleet_sink_pending{sink=\"webhook:http://localhost/\\\"\"} 3.0",
            "queuescope_fleet_sink_sent_total{sink=\"webhook:http://localhost/\\\"\"} 7.0",
            "queuescope_fleet_sink_failing{sink=\"webhook:http://localhost/\\\"\"} 1.0",
        ] {
            assert!(text.lines().any(|exported| exported == line), "{line}: {text}");
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the files are of the repository")]
    fn the_dashboard_and_the_guide_have_only_exported_metrics_and_the_guide_has_all() {
        let exported = names(&exported());
        let read =
            |file: &str| std::fs::read_to_string(format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"))).expect(file);
        let dashboard = names(&read("dashboards/fleet.json"));
        assert!(dashboard.len() > 10 && dashboard.is_subset(&exported), "{dashboard:?}");
        assert_eq!(names(&read("docs/how-to/fleet.md")), exported);
    }
}
