//! Arguments that several commands have.

use super::focus::Focus;
use super::values::{Alpha, Factor};
use crate::expressions::explained;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum, ValueHint};
use queuescope_analysis::AnalysisOptions;
use queuescope_ingest::records::Departures;
use queuescope_ingest::{Flag, PacketFilter};
use queuescope_queue::Limit;
use queuescope_recording::query::Loaded;
use queuescope_scenario::{Overhead, Override};
use queuescope_sim::Speedup;
use queuescope_sketch::Estimator;
use queuescope_table::{Columns, TimeUnit};
use queuescope_wire::{ByteCount, Granularity, Nanos, Rate};
use std::path::PathBuf;

/// Where departures come from: a capture that is sent through a queue, or a table.
#[derive(Debug, Args)]
#[command(mut_arg("departures", |arg| arg.conflicts_with_all(["rate", "by", "inner"])))]
// Clap waives a requirement that something else forbids, so what forbids it is forbidden of these too.
#[command(mut_arg("map", |arg| arg.conflicts_with("rate")), mut_arg("time_unit", |arg| arg.conflicts_with("rate")))]
pub struct Input {
    /// Capture file: pcap or pcapng, plain or compressed with gzip, zstd or xz; - is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Rate at which the link drains the queue, such as 10gbps, 1.5Mbit/s or 64000bps
    #[arg(short, long, required_unless_present = "departures", allow_hyphen_values = true)]
    pub rate: Option<Rate>,

    /// Only packets of which an expression holds enter the queue, such as `tcp and dst_port == 443`, or in pcap's words `tcp port
    /// 443`: the others are as if they were not in the file (`queuescope query --attributes` lists what it can be about; of a
    /// table, with --departures)
    #[arg(long = "input", value_name = "EXPRESSION")]
    pub only: Option<String>,

    /// The queue.
    #[command(flatten)]
    pub queue: Queue,
    /// A table in place of a capture.
    #[command(flatten)]
    pub table: Table,
}

/// How packets come to the queue, and what it holds.
#[derive(Debug, Args)]
#[command(next_help_heading = "Queue")]
pub struct Queue {
    /// What the queue holds at most, without the packet being sent: bytes or packets (with the new one), a time (what the
    /// link needs for what waits before the new one, so that the longest wait is that and the rest of the packet being
    /// sent), or none
    #[arg(long, allow_hyphen_values = true, default_value = "1s", value_name = "LIMIT", conflicts_with = "departures")]
    pub limit: Limit,

    /// Send the packets so many times faster than they were captured
    #[arg(long, allow_hyphen_values = true, default_value = "1", value_name = "FACTOR", conflicts_with = "departures")]
    pub speedup: Speedup,

    /// See [`Overhead`].
    #[arg(
        long,
        help = Overhead::ABOUT.trim_end_matches('.'),
        allow_hyphen_values = true,
        default_value = "none",
        value_name = "WHAT",
        conflicts_with = "departures"
    )]
    pub overhead: Overhead,

    /// Split super-packets of segmentation offload into the packets that the wire carries
    #[arg(long, conflicts_with = "departures")]
    pub split_gso: bool,

    /// Largest packet of the network in bytes: what is larger is a super-packet
    #[arg(allow_hyphen_values = true, long, default_value_t = 1500, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(68..=65535))]
    pub mtu: u32,
}

/// How flows are told apart.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Flows")]
pub struct Keys {
    /// What a flow is; several at once, separated by commas: 5tuple, conn (both directions), src-dst, src, dst, dscp,
    /// vlan; src and dst with a prefix length if wanted: dst/24/56 (IPv4/IPv6), or dst/24 (of IPv6 twice as many bits)
    #[arg(long, value_delimiter = ',', default_value = "5tuple,dst", value_name = "KEYS")]
    pub by: Vec<Granularity>,

    /// Tell flows inside of tunnels (GRE, VXLAN, IP in IP) apart
    #[arg(long)]
    pub inner: bool,
}

impl Keys {
    /// What a flow is unless told otherwise.
    pub const DEFAULT: [Granularity; 2] = AnalysisOptions::BY;
}

/// What is asked of the queue.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Question")]
pub struct Question {
    /// Delay from which on the queue is congested [default: an eighth of the longest delay so far, at least the time of
    /// 10 full packets]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub tau: Option<Nanos>,

    /// Share of the queue from which on a flow is a culprit, such as 1% or 0.01
    #[arg(long, allow_hyphen_values = true, default_value = "1%", value_name = "SHARE")]
    pub alpha: Alpha,

    /// Tell only flows whose rate jumped in a burst, by this factor from one stretch of time (as long as a window of the
    /// sketch) to the next, such as 4x: who ramps up as no congestion control does. At the first granularity; at least 2x
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true)]
    pub ramped: Option<Factor>,

    /// Bursts to keep, those with the longest delays
    #[arg(allow_hyphen_values = true, long, default_value_t = 1000, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub most_bursts: u32,

    /// Ask about the longest recent delay of any packet, halving in this time, instead of each packet's own: shows who
    /// holds up others where there are several classes of traffic
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub across_classes: Option<Nanos>,

    /// Whose waiting it is, and which flows are listed.
    #[command(flatten)]
    pub focus: Focus,
}

/// The sketch, as a switch would run it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sketch")]
pub struct Sketch {
    /// Snapshots [default: 8]
    #[arg(allow_hyphen_values = true, long, value_name = "H")]
    pub snapshots: Option<usize>,

    /// Rows of each snapshot [default: 2]
    #[arg(allow_hyphen_values = true, long = "sketch-rows", value_name = "R")]
    pub rows: Option<usize>,

    /// Columns of each snapshot [default: what fits in --memory]
    #[arg(allow_hyphen_values = true, long = "sketch-columns", value_name = "C", conflicts_with = "memory")]
    pub columns: Option<usize>,

    /// Time window of a snapshot [default: doubles from the time of a full packet until the snapshots cover the longest
    /// delay]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub window: Option<Nanos>,

    /// Memory of one sketch
    #[arg(long, allow_hyphen_values = true, default_value = "64KiB", value_name = "BYTES")]
    pub memory: ByteCount,

    /// Which windows count for a packet's wait; several separated by commas
    #[arg(long, value_delimiter = ',', default_value = "overlap", value_name = "NAMES")]
    pub estimator: Vec<Estimator>,

    /// How old counts go away: tagged by window, or cleaned an entry a packet
    #[arg(long, value_enum, default_value = "tag")]
    pub expiry: ExpiryName,
}

/// How old counts go away.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ExpiryName {
    /// Every counter knows its window.
    Tag,
    /// One entry is cleaned with each packet, and what is left over as a packet generator would.
    Clean,
    /// One entry is cleaned with each packet, and nothing else, as the paper's text has it.
    CleanPlain,
}

/// Where the answer goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Print JSON Lines in place of text
    #[arg(long)]
    pub json: bool,

    /// Write a report to look at in a browser; one file that needs nothing else
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Write each packet that left the queue to a Parquet file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub parquet: Option<PathBuf>,
}

/// Which packets are recorded, and what of them.
#[derive(Debug, Args)]
pub struct Recorded {
    /// Only packets of which this holds: `tcp and dst_port == 443`, or in pcap's words `tcp port 443`
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub chosen: Option<String>,

    /// Look into tunnels: addresses and ports are those of the inner packet
    #[arg(long)]
    pub inner: bool,
}

/// Between which times records are wanted.
#[derive(Debug, Args)]
pub struct Times {
    /// From this time on, counted from the first packet or record, such as 1.2s
    #[arg(long, value_name = "TIME")]
    pub from: Option<Nanos>,

    /// Before this time
    #[arg(long, value_name = "TIME")]
    pub to: Option<Nanos>,
}

impl Times {
    /// Refuses times between which there is nothing.
    ///
    /// # Errors
    /// If the end is not after the beginning.
    pub fn check(&self) -> Result<()> {
        match (self.from, self.to) {
            (Some(from), Some(to)) if from >= to => {
                bail!("--from {from} --to {to} ends before it begins, or as it does")
            }
            _ => Ok(()),
        }
    }

    /// The same times as records have them.
    pub fn of(&self, loaded: &Loaded) -> (u64, u64) {
        (loaded.at(self.from, 0), loaded.at(self.to, u64::MAX))
    }
}

/// How long a command runs.
#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
pub struct RunTime {
    /// End after this time, such as 10s or 5m
    #[arg(long = "for", value_name = "TIME", value_parser = Nanos::read_long)]
    pub duration: Option<Nanos>,
}

/// Values of a scenario that are replaced.
#[derive(Debug, Args)]
pub struct Overrides {
    /// Replace a value of the scenario, by its path: link.rate=1gbps, flows.0.count=50; can be given several times
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    pub set: Vec<String>,
}

impl Overrides {
    /// As a scenario takes them.
    pub fn each(&self) -> impl Iterator<Item = Override> {
        self.set.iter().map(Override::new)
    }
}

/// Which packets are taken to be in a queue that was not made from them: that of a link, or of an interface.
#[derive(Debug, Args)]
pub struct Analysed {
    /// Take only packets of which an expression holds to be in the queue that is analysed, such as `dst_port == 443`; the link
    /// carries all (`queuescope query --attributes --departures` lists what it can be about)
    #[arg(long = "input", value_name = "EXPRESSION")]
    pub only: Option<String>,
}

impl Analysed {
    /// The packets that are chosen; all if there is none.
    ///
    /// # Errors
    /// If the expression means nothing.
    pub fn chosen(&self) -> Result<Option<PacketFilter<Departures>>> {
        PacketFilter::of(Flag::Input, self.only.as_deref()).map_err(explained)
    }
}

/// How many simulations run at once.
#[derive(Debug, Args)]
pub struct Parallel {
    /// Cells to run at a time [default: one on each core]
    #[arg(long, value_name = "COUNT", allow_hyphen_values = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

/// A table of departures in place of a capture.
#[derive(Debug, Args)]
#[command(next_help_heading = "Departures from elsewhere")]
pub struct Table {
    /// FILE is a table (CSV or Parquet) of packets that left a queue: flow, size, enqueued, dequeued, class
    #[arg(long)]
    pub departures: bool,

    /// Names of the table's columns, where they differ: flow=src+dst,size=bytes,enqueued=t_in,dequeued=t_out,class=prio
    #[arg(long = "columns", value_name = "NAMES", requires = "departures")]
    pub map: Option<Columns>,

    /// Unit of times in the table: s, ms, us or ns
    #[arg(long, default_value = "ns", value_name = "UNIT", requires = "departures")]
    pub time_unit: TimeUnit,
}
