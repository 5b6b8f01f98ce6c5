//! A congestion control that is written in Python.

use crate::failure::Outcome;
use crate::own::{call, name_of};
use pyo3::prelude::*;
use queuescope::tcp::{Ack, Congestion, CongestionControl, ControlFactory, InitialValues, Phase};
use queuescope::{Nanos, Rate};

/// A factory that calls `class` for each connection with the size of a segment, the initial window and a seed.
pub fn factory(class: Bound<'_, PyAny>) -> Outcome<ControlFactory> {
    let name = name_of(&class)?;
    let class = class.unbind();
    Ok(ControlFactory::new(name, move |opening| Written::new(&class, opening)))
}

/// The congestion control of a connection. The values that the sender reads are read from the object after each event.
struct Written {
    object: Py<PyAny>,
    window: u64,
    threshold: u64,
    pacing: Option<Rate>,
}

impl Written {
    fn new(class: &Py<PyAny>, opening: InitialValues) -> Self {
        let InitialValues { mss, initial_window, seed } = opening;
        let object = call(|py| {
            let object = class.bind(py).call0()?;
            object.call_method1("_begin", (mss, initial_window, seed))?;
            Ok(object.unbind())
        });
        let mut control = Self { object, window: initial_window, threshold: u64::MAX, pacing: None };
        call(|py| control.read(py));
        control
    }

    /// Reads what the sender needs.
    fn read(&mut self, py: Python<'_>) -> PyResult<()> {
        let (window, threshold, pacing): (u64, Option<u64>, Option<u64>) =
            self.object.bind(py).call_method0("_values")?.extract()?;
        self.window = window;
        self.threshold = threshold.unwrap_or(u64::MAX);
        self.pacing = pacing.and_then(Rate::from_bits_per_second);
        Ok(())
    }
}

/// What an ACK means to a congestion control.
#[pyclass(frozen, get_all, name = "Ack", module = "queuescope")]
#[derive(Debug)]
pub struct RawAck {
    /// Bytes acknowledged cumulatively for the first time.
    acked: u64,
    /// Bytes delivered for the first time, cumulatively or selectively.
    delivered: u64,
    /// Bytes in flight after the ACK.
    in_flight: u64,
    /// The round-trip time that it measured, in nanoseconds.
    rtt_ns: Option<u64>,
    /// The smoothed round-trip time in nanoseconds; zero before the first.
    smoothed_rtt_ns: u64,
    /// `open`, `disorder`, `reduced`, `recovery` or `loss`.
    phase: &'static str,
    /// Bytes whose ACKs reported a mark.
    marked: u64,
    /// Whether the window kept the sender from sending more.
    window_limited: bool,
    /// The delivery rate in bits per second, if it could be measured.
    rate_bps: Option<f64>,
}

impl From<&Ack> for RawAck {
    fn from(ack: &Ack) -> Self {
        let rate = ack.rate.filter(|sample| sample.interval > Nanos::ZERO);
        Self {
            acked: ack.acked,
            delivered: ack.delivered,
            in_flight: ack.in_flight,
            rtt_ns: ack.rtt.map(|rtt| rtt.0),
            smoothed_rtt_ns: ack.smoothed_rtt.0,
            phase: match ack.phase {
                Phase::Open => "open",
                Phase::Disorder => "disorder",
                Phase::Reduced => "reduced",
                Phase::Recovery => "recovery",
                Phase::Loss => "loss",
            },
            marked: ack.marked,
            window_limited: ack.window_limited,
            rate_bps: rate.map(|sample| sample.amount as f64 * 8.0 / sample.interval.as_secs_f64()),
        }
    }
}

/// A congestion event.
#[pyclass(frozen, get_all, name = "Congestion", module = "queuescope")]
#[derive(Debug)]
pub struct RawCongestion {
    /// Bytes in flight when it was found, including the lost ones.
    in_flight: u64,
    /// Bytes found lost; zero if packets were marked.
    lost: u64,
    /// Bytes that the ACK delivered that revealed it.
    delivered: u64,
}

impl From<&Congestion> for RawCongestion {
    fn from(congestion: &Congestion) -> Self {
        let Congestion { in_flight, lost, delivered, .. } = *congestion;
        Self { in_flight, lost, delivered }
    }
}

impl CongestionControl for Written {
    fn on_ack(&mut self, ack: &Ack, now: Nanos) {
        call(|py| {
            self.object.bind(py).call_method1("on_ack", (RawAck::from(ack), now.0))?;
            self.read(py)
        });
    }

    fn on_congestion(&mut self, congestion: &Congestion, now: Nanos) {
        call(|py| {
            self.object.bind(py).call_method1("on_congestion", (RawCongestion::from(congestion), now.0))?;
            self.read(py)
        });
    }

    fn on_timeout(&mut self, congestion: &Congestion, now: Nanos) {
        call(|py| {
            self.object.bind(py).call_method1("on_timeout", (RawCongestion::from(congestion), now.0))?;
            self.read(py)
        });
    }

    fn on_recovered(&mut self, now: Nanos) {
        call(|py| {
            self.object.bind(py).call_method1("on_recovered", (now.0,))?;
            self.read(py)
        });
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn slow_start_threshold(&self) -> u64 {
        self.threshold
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing
    }
}
