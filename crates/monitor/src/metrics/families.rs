//! Metrics of another source, in the same format and over the same server as those of a queue.

use super::http;
use crate::error::MetricsError;
use crate::listen::Listen;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// A metric with its samples.
///
/// ```
/// use queuescope_monitor::{MetricFamily, metrics_text};
///
/// let members = vec![("here".to_owned(), 3.0), ("absent".to_owned(), 0.0)];
/// let family = MetricFamily::gauge("members", "Members by state.").labelled("state", members);
/// let text = metrics_text("queuescope_fleet", move || vec![family.clone()])?;
/// assert!(text.contains("queuescope_fleet_members{state=\"here\"} 3.0\n"));
/// # Ok::<(), std::fmt::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct MetricFamily {
    name: &'static str,
    about: &'static str,
    kind: Kind,
    /// The name of the label of all samples; empty: there is one sample without a label.
    label: &'static str,
    samples: Vec<(String, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    /// In seconds.
    Seconds,
    Gauge,
    /// In bytes.
    Bytes,
}

impl MetricFamily {
    /// A number that only grows.
    pub fn counter(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Kind::Counter)
    }

    /// A sum of times that only grows, in seconds.
    pub fn seconds(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Kind::Seconds)
    }

    /// A number that grows and shrinks.
    pub fn gauge(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Kind::Gauge)
    }

    /// A number of bytes that grows and shrinks.
    pub fn bytes(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Kind::Bytes)
    }

    fn new(name: &'static str, about: &'static str, kind: Kind) -> Self {
        Self { name, about, kind, label: "", samples: Vec::new() }
    }

    /// With one sample.
    #[must_use]
    pub fn of(self, value: f64) -> Self {
        Self { label: "", samples: vec![(String::new(), value)], ..self }
    }

    /// With a sample for each value of a label.
    #[must_use]
    pub fn labelled(self, label: &'static str, samples: Vec<(String, f64)>) -> Self {
        Self { label, samples, ..self }
    }

    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (unit, kind) = match self.kind {
            Kind::Counter => (None, MetricType::Counter),
            Kind::Seconds => (Some(&Unit::Seconds), MetricType::Counter),
            Kind::Gauge => (None, MetricType::Gauge),
            Kind::Bytes => (Some(&Unit::Bytes), MetricType::Gauge),
        };
        let mut metric = encoder.encode_descriptor(self.name, self.about, unit, kind)?;
        for (value_of_label, value) in &self.samples {
            if self.label.is_empty() {
                self.kind.encode(&mut metric, *value)?;
            } else {
                let labels = [(self.label, value_of_label.as_str())];
                self.kind.encode(&mut metric.encode_family(&labels)?, *value)?;
            }
        }
        Ok(())
    }
}

impl Kind {
    fn encode(self, metric: &mut MetricEncoder<'_>, value: f64) -> fmt::Result {
        match self {
            Self::Counter | Self::Seconds => metric.encode_counter::<NoLabelSet, _, f64>(&value, None),
            Self::Gauge | Self::Bytes => metric.encode_gauge(&value),
        }
    }
}

/// A server of metrics, in a thread of its own, which ends with the process.
#[derive(Debug)]
pub struct MetricsServer {
    failed: Arc<AtomicU64>,
}

impl MetricsServer {
    /// Serves metrics whose names begin with `prefix` at an address; `read` is called for each request. Returns the server and the address with its actual port.
    ///
    /// # Errors
    /// Fails if the address cannot be bound or the thread cannot start.
    pub fn serve(
        at: &Listen,
        prefix: &'static str,
        read: impl Fn() -> Vec<MetricFamily> + Send + Sync + 'static,
    ) -> Result<(Self, SocketAddr), MetricsError> {
        let listener = TcpListener::bind(at.addresses());
        let listener = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = listener.map_err(|why| MetricsError::Listen { at: at.to_string(), why })?;
        let (registry, failed) = (Arc::new(registry(prefix, read)), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&failed);
        let spawned = thread::Builder::new().name("metrics".to_owned());
        spawned.spawn(move || http::serve(&listener, &registry, &counted)).map_err(MetricsError::Thread)?;
        Ok((Self { failed }, address))
    }

    /// Requests that should have been answered and were not.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

/// Metrics as the server writes them.
///
/// # Errors
/// None are expected.
pub fn metrics_text(
    prefix: &'static str,
    read: impl Fn() -> Vec<MetricFamily> + Send + Sync + 'static,
) -> Result<String, fmt::Error> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry(prefix, read))?;
    Ok(text)
}

fn registry(prefix: &'static str, read: impl Fn() -> Vec<MetricFamily> + Send + Sync + 'static) -> Registry {
    let mut registry = Registry::with_prefix(prefix);
    registry.register_collector(Box::new(Families(Box::new(read))));
    registry
}

/// Reads families for each request.
struct Families(Box<dyn Fn() -> Vec<MetricFamily> + Send + Sync>);

impl fmt::Debug for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Families")
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        (self.0)().iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn families() -> Vec<MetricFamily> {
        vec![
            MetricFamily::counter("cuts", "Cuts.").of(3.0),
            MetricFamily::seconds("cut_time", "Their time.").of(0.25),
            MetricFamily::bytes("waiting", "Bytes.").of(10.0),
            MetricFamily::gauge("members", "Members.")
                .labelled("state", vec![("he\"re".to_owned(), 2.0), ("absent".to_owned(), 0.0)]),
        ]
    }

    #[test]
    fn families_have_types_units_and_labels() {
        let text = metrics_text("test", families).expect("it can be written");
        let expected = "# HELP test_cuts Cuts.\n# TYPE test_cuts counter\ntest_cuts_total 3.0\n\
                        # HELP test_cut_time_seconds Their time.\n# TYPE test_cut_time_seconds counter\n# UNIT test_cut_time_seconds seconds\n\
                        test_cut_time_seconds_total 0.25\n\
                        # HELP test_waiting_bytes Bytes.\n# TYPE test_waiting_bytes gauge\n# UNIT test_waiting_bytes bytes\ntest_waiting_bytes 10.0\n\
                        # HELP test_members Members.\n# TYPE test_members gauge\n\
                        test_members{state=\"he\\\"re\"} 2.0\ntest_members{state=\"absent\"} 0.0\n# EOF\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_server_answers_with_the_metrics_of_the_moment() {
        let at = Listen::read("127.0.0.1:0").expect("an address");
        let asked = AtomicU64::new(0);
        let read = move || {
            vec![MetricFamily::counter("asked", "Requests.").of((asked.fetch_add(1, Ordering::Relaxed) + 1) as f64)]
        };
        let (server, address) = MetricsServer::serve(&at, "test", read).expect("the port is free");
        for time in 1..3 {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("it reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it answers");
            assert!(
                answer.starts_with("HTTP/1.1 200 OK") && answer.contains(&format!("test_asked_total {time}.0\n")),
                "{answer}"
            );
        }
        assert_eq!(server.failed(), 0);
    }
}
