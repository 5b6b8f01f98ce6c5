//! Which flows are filling a queue, and what to do about them: the engine of the command `queuescope`, as a library.
//!
//! ```
//! use queuescope::Analyzer;
//! use std::fs::File;
//!
//! # let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/demo.pcap.xz");
//! let report = Analyzer::new("20mbps".parse()?).run(File::open(trace)?)?;
//! let worst = report.bursts.iter().max_by_key(|burst| burst.peak_delay_ns).ok_or("there was no burst")?;
//! println!("a packet waited for {} ns", worst.peak_delay_ns);
//! for culprit in &worst.culprits[0].flows {
//!     println!("{:>5.1} %  {}", 100.0 * culprit.share, culprit.flow);
//! }
//! # assert!(!worst.culprits[0].flows.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Examples of the modules name the crates that these are: `queuescope_log`, `queuescope_sim` and so on. With this crate, write
//! `queuescope::log` for `queuescope_log`, and likewise for the others.
//!
//! Each feature adds modules:
//!
//! | feature | what it is for | modules |
//! | --- | --- | --- |
//! | `pcap` (default) | captures: which flows would have filled a queue | `analysis`, `ingest`, `meter`, `pcap`, `report`, `sketch`; and those whose types appear in their public functions: `log`, `queue`, `scenario`, `sim`, `tcp` |
//! | `table` | departures as CSV and Parquet | `table` |
//! | `sim` | networks, event by event; disciplines and congestion controls, also your own | `sim`, `queue`, `tcp`, `scenario`, `report`, `log`, `run` |
//! | `log` | headers of all packets in memory, with filters, aggregates and triggers | `log` |
//! | `archive` | the same in folders; query results as Arrow batches | `archive` |
//! | `recording` | captures recorded to folders, what queues did to each packet beside them, and queries of both | `recording` |
//! | `p4` | whether an algorithm fits the pipeline of a switch | `p4` |
//! | `live` | Linux: the queue of an interface, by eBPF | `live`, `monitor` |
//! | `link` | Linux: real hosts over a simulated network | `link` |
//! | `html` | reports as pages for a browser | in `report` |
//! | `full` | all of these | |
//!
//! With `pcap`, the feature `sim` adds only `run`, and `log` adds nothing: they are for programs without captures
//! (`default-features = false`).
//!
//! The folder `crates/queuescope/examples` has a program for each main job:
//!
//! | example | what it does |
//! | --- | --- |
//! | `capture` | who fills the queue of a link that a capture passes |
//! | `departures` | the same of departures from anywhere |
//! | `why` | what made one packet wait |
//! | `simulated_bursts` | the bursts of a simulated queue, and which flows fill it |
//! | `own_discipline` | a discipline of your own in a simulation |
//! | `own_congestion_control` | a congestion control of your own in a simulation |
//! | `log_trigger` | headers in memory, with a trigger that fires |
//! | `query_arrow` | packets of a folder as Arrow batches |
//! | `live_interface` | the queue of an interface now |
//! | `link` | real packets through a simulated link |
//! | `p4_fit` | whether an algorithm fits a switch |
//!
//! Units and packets ([`Nanos`], [`Rate`], [`ByteCount`], [`Packet`], [`Departure`]) are always there.
//!
//! With captures come the queue that they pass ([`Limit`](queue::Limit), [`Aqm`](sim::Aqm), [`Speedup`](sim::Speedup)), and the
//! traits for your own consumer of departures: [`Listener`](ingest::Listener), [`Output`](sim::Output) and
//! [`Sink`](queue::Sink).
//!
//! ```
//! use queuescope::ingest::{Listener, OpenedCapture, Queue};
//! use queuescope::queue::{Dropped, Limit, MarkReason, Sink};
//! use queuescope::sim::Output;
//! use queuescope::wire::{Flows, KeyMask, MaskedKey};
//! use queuescope::{Departure, FlowId, Granularity, Nanos, Packet};
//!
//! /// The longest wait, and the number of drops.
//! struct Longest { wait: Nanos, drops: u64, flows: Flows }
//!
//! impl Output for Longest {
//!     fn departed(&mut self, departure: &Departure) {
//!         self.wait = self.wait.max(departure.sojourn());
//!     }
//! }
//!
//! impl Sink for Longest {
//!     fn dropped(&mut self, _: &Dropped) {
//!         self.drops += 1;
//!     }
//!     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
//! }
//!
//! impl Listener for Longest {
//!     type Key = MaskedKey;
//!     type Error = std::convert::Infallible;
//!
//!     fn intern(&mut self, key: &MaskedKey, now: Nanos) -> FlowId {
//!         self.flows.intern(key, now, |_, _| ())
//!     }
//! }
//!
//! let mask = KeyMask::covering(&[Granularity::FiveTuple]);
//! let flows = Flows::masked(mask, &[Granularity::FiveTuple], 1 << 20);
//! let mut longest = Longest { wait: Nanos::ZERO, drops: 0, flows };
//! let queue = Queue::default().with_limit(Limit::Packets(10));
//! # let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/demo.pcap.xz");
//! let capture = OpenedCapture::open(trace.as_ref(), "20mbps".parse()?, None, None)?;
//! capture.replay(&queue, mask, &mut longest, &mut |_, _| ())?;
//! println!("a packet waited for {}, and {} were dropped", longest.wait, longest.drops);
//! # assert!(longest.drops > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[doc(inline)]
pub use queuescope_wire::{
    self as wire, Backlog, ByteCount, Class, Departure, Ecn, Family, FlowId, FlowKey, Granularity, Nanos, Packet,
    PacketId, QueueId, Rate,
};

#[cfg(feature = "pcap")]
#[doc(inline)]
pub use queuescope_analysis::{self as analysis, Analyzer};
#[cfg(feature = "archive")]
#[doc(inline)]
pub use queuescope_archive as archive;
#[cfg(feature = "pcap")]
#[doc(inline)]
pub use queuescope_ingest as ingest;
#[cfg(all(feature = "link", target_os = "linux"))]
#[doc(inline)]
pub use queuescope_link as link;
#[cfg(all(feature = "live", target_os = "linux"))]
#[doc(inline)]
pub use queuescope_live as live;
#[cfg(any(feature = "pcap", feature = "sim", feature = "log"))]
#[doc(inline)]
pub use queuescope_log as log;
#[cfg(feature = "pcap")]
#[doc(inline)]
pub use queuescope_meter as meter;
#[cfg(all(feature = "live", target_os = "linux"))]
#[doc(inline)]
pub use queuescope_monitor as monitor;
#[cfg(feature = "p4")]
#[doc(inline)]
pub use queuescope_p4 as p4;
#[cfg(feature = "pcap")]
#[doc(inline)]
pub use queuescope_pcap as pcap;
#[cfg(any(feature = "pcap", feature = "sim"))]
#[doc(inline)]
pub use queuescope_queue as queue;
#[cfg(feature = "recording")]
#[doc(inline)]
pub use queuescope_recording as recording;
#[cfg(any(feature = "pcap", feature = "sim"))]
#[doc(inline)]
pub use queuescope_report as report;
#[cfg(feature = "sim")]
#[doc(inline)]
pub use queuescope_run as run;
#[cfg(any(feature = "pcap", feature = "sim"))]
#[doc(inline)]
pub use queuescope_scenario as scenario;
#[cfg(any(feature = "pcap", feature = "sim"))]
#[doc(inline)]
pub use queuescope_sim as sim;
#[cfg(feature = "pcap")]
#[doc(inline)]
pub use queuescope_sketch as sketch;
#[cfg(feature = "table")]
#[doc(inline)]
pub use queuescope_table as table;
#[cfg(any(feature = "pcap", feature = "sim"))]
#[doc(inline)]
pub use queuescope_tcp as tcp;
