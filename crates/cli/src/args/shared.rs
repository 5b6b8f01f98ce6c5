//! Arguments that several commands share.

use super::focus::Focus;
use super::values::{Alpha, Factor};
use crate::expressions::expression_error;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum, ValueHint};
use queuescope_analysis::AnalysisOptions;
use queuescope_ingest::records::Departures;
use queuescope_ingest::{Flag, PacketFilter};
use queuescope_log::{begins_as_date, parse_date};
use queuescope_queue::Limit;
use queuescope_recording::query::Loaded;
use queuescope_scenario::{Overhead, Override};
use queuescope_sim::Speedup;
use queuescope_sketch::Estimator;
use queuescope_table::{Columns, TimeUnit};
use queuescope_wire::{ByteCount, Granularity, Nanos, Rate};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where departures come from: a capture that is sent through a queue, or a table.
#[derive(Debug, Args)]
#[command(mut_arg("departures", |arg| arg.conflicts_with_all(["rate", "by", "inner"])))]
// Clap does not enforce `requires = "departures"` where `departures` has a conflict, so these options conflict with `rate`
// too.
#[command(mut_arg("map", |arg| arg.conflicts_with("rate")), mut_arg("time_unit", |arg| arg.conflicts_with("rate")))]
pub struct Input {
    /// Capture file: pcap or pcapng, plain or compressed with gzip, zstd or xz; - is standard input
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,

    /// Rate at which the link drains the queue, such as 10gbps, 1.5Mbit/s or 64000bps
    #[arg(short, long, required_unless_present = "departures", allow_hyphen_values = true)]
    pub rate: Option<Rate>,

    /// Only packets that match an expression enter the queue, such as `tcp and dst_port == 443`, or in pcap's syntax `tcp
    /// port 443`. The others are ignored, as if they were not in the file (`queuescope query --attributes` lists the
    /// attributes; for a table, add --departures)
    #[arg(long = "input", value_name = "EXPRESSION")]
    pub only: Option<String>,

    /// The queue.
    #[command(flatten)]
    pub queue: Queue,
    /// A table in place of a capture.
    #[command(flatten)]
    pub table: Table,
}

impl Input {
    /// The file. The arguments have one, unless the question goes to a fleet.
    pub fn path(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(""))
    }
}

/// How packets come to the queue, and what it holds.
#[derive(Debug, Args)]
#[command(next_help_heading = "Queue")]
pub struct Queue {
    /// Limit of the queue, without the packet being sent: bytes or packets (with the new packet), a time, or none. A time
    /// limits how long the link needs for what waits before the new packet; the longest wait is that and the rest of the
    /// packet being sent
    #[arg(long, allow_hyphen_values = true, default_value = "1s", value_name = "LIMIT", conflicts_with = "departures")]
    pub limit: Limit,

    /// Factor by which packets are sent faster than they were captured
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

    /// Split super-packets of segmentation offload into the packets that the wire carried
    #[arg(long, conflicts_with = "departures")]
    pub split_gso: bool,

    /// Largest packet of the network in bytes; a larger one is a super-packet
    #[arg(allow_hyphen_values = true, long, default_value_t = 1500, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(68..=65535))]
    pub mtu: u32,
}

/// What a flow is.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Flows")]
pub struct Keys {
    /// What a flow is: 5tuple, conn (both directions), src-dst, src, dst, dscp or vlan; several separated by commas. src and
    /// dst can have a prefix length: dst/24/56 (IPv4/IPv6), or dst/24 (for IPv6 twice as many bits)
    #[arg(long, value_delimiter = ',', default_value = "5tuple,dst", value_name = "KEYS")]
    pub by: Vec<Granularity>,

    /// Distinguish flows inside tunnels (GRE, VXLAN, IP in IP)
    #[arg(long)]
    pub inner: bool,
}

impl Keys {
    /// The default of `--by`.
    pub const DEFAULT: [Granularity; 2] = AnalysisOptions::BY;
}

/// What to look for in the queue.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Question")]
pub struct Question {
    /// Least delay at which the queue is congested [default: an eighth of the longest delay so far, at least the time of 10
    /// full packets]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub tau: Option<Nanos>,

    /// Least share of the queue at which a flow is a culprit, such as 1% or 0.01
    #[arg(long, allow_hyphen_values = true, default_value = "1%", value_name = "SHARE")]
    pub alpha: Alpha,

    /// List only flows whose rate rose in a burst by this factor, such as 4x, from one interval to the next, faster than a
    /// congestion control would. An interval is as long as a window of the sketch. For the first granularity of --by; at
    /// least 2x
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true)]
    pub ramped: Option<Factor>,

    /// Number of bursts to keep, those with the longest delays. Text lists at most ten of them; JSON and HTML have all
    #[arg(allow_hyphen_values = true, long, default_value_t = 1000, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub most_bursts: u32,

    /// Use the longest recent delay of any packet, halving in this time, instead of each packet's own. Shows which flows
    /// hold up others where there are several classes of traffic
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub across_classes: Option<Nanos>,

    /// Which packets' waiting is examined, and which flows are listed.
    #[command(flatten)]
    pub focus: Focus,
}

/// The sketch, as a switch would run it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sketch")]
pub struct Sketch {
    /// Number of snapshots [default: 8]
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

    /// Estimators, separated by commas: which windows count for a packet's wait
    #[arg(long, value_delimiter = ',', default_value = "overlap", value_name = "NAMES")]
    pub estimator: Vec<Estimator>,

    /// How old counts expire: by a tag of their window, or by cleaning one entry with each packet
    #[arg(long, value_enum, default_value = "tag")]
    pub expiry: ExpiryName,
}

/// How old counts expire.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ExpiryName {
    /// Every counter stores its window.
    Tag,
    /// One entry is cleaned with each packet; the rest are cleaned as by a packet generator.
    Clean,
    /// One entry is cleaned with each packet, and no others, as in the paper's text.
    CleanPlain,
}

/// Where the report goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Print JSON Lines instead of text
    #[arg(long)]
    pub json: bool,

    /// Write the report as one self-contained HTML file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Write each packet that left the queue to a Parquet file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub parquet: Option<PathBuf>,
}

/// Which packets are recorded, and which of their headers.
#[derive(Debug, Args)]
pub struct Recorded {
    /// Only packets that match an expression: `tcp and dst_port == 443`, or in pcap's syntax `tcp port 443`
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub chosen: Option<String>,

    /// Look into tunnels: addresses and ports are those of the inner packet
    #[arg(long)]
    pub inner: bool,
}

/// The time range of the records to find.
#[derive(Debug, Args)]
pub struct Times {
    /// Start at this time after the first packet or record, such as 1.2s, or at a date, such as 2021-07-23T16:56:49Z
    #[arg(long, value_name = "TIME")]
    pub from: Option<TimePoint>,

    /// End before this time, also counted from the first packet or record, or a date
    #[arg(long, value_name = "TIME")]
    pub to: Option<TimePoint>,
}

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimePoint {
    /// So long after the first packet or record.
    AfterFirst(Nanos),
    /// A date, as the time since 1970.
    Date(Nanos),
}

impl FromStr for TimePoint {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        if begins_as_date(text) { Ok(Self::Date(parse_date(text)?)) } else { Ok(Self::AfterFirst(text.parse()?)) }
    }
}

impl Times {
    /// Checks that the range is not empty.
    ///
    /// # Errors
    /// Fails if the end is not after the start.
    pub fn check(&self) -> Result<()> {
        match (self.from, self.to) {
            (Some(TimePoint::AfterFirst(from)), Some(TimePoint::AfterFirst(to))) if from >= to => {
                bail!("--from {from} --to {to} is an empty time range: --to must be after --from")
            }
            (Some(TimePoint::Date(from)), Some(TimePoint::Date(to))) if from >= to => {
                bail!("--from and --to are an empty time range: --to must be after --from")
            }
            _ => Ok(()),
        }
    }

    /// The range in the timestamps of `loaded`, in nanoseconds: from the first, up to but without the second.
    pub fn range(&self, loaded: &Loaded) -> (u64, u64) {
        let at = |time, none| match time {
            Some(TimePoint::Date(time)) => time.0,
            Some(TimePoint::AfterFirst(time)) => loaded.at(Some(time), none),
            None => none,
        };
        (at(self.from, 0), at(self.to, u64::MAX))
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
    /// Replace a value of the scenario, by its path: link.rate=1gbps, flows.0.count=50. Can be given several times
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    pub set: Vec<String>,
}

impl Overrides {
    /// The values in the form that a scenario takes.
    pub fn each(&self) -> impl Iterator<Item = Override> {
        self.set.iter().map(Override::new)
    }
}

/// Which packets are treated as being in a measured queue: that of a link, or of an interface.
#[derive(Debug, Args)]
pub struct Analysed {
    /// Treat only packets that match an expression as being in the analysed queue, such as `dst_port == 443`; the link still
    /// carries all packets (`queuescope query --attributes --departures` lists the attributes)
    #[arg(long = "input", value_name = "EXPRESSION")]
    pub only: Option<String>,
}

impl Analysed {
    /// The filter of packets, or `None` for all packets.
    ///
    /// # Errors
    /// Fails if the expression is invalid.
    pub fn chosen(&self) -> Result<Option<PacketFilter<Departures>>> {
        PacketFilter::from_flag(Flag::Input, self.only.as_deref()).map_err(expression_error)
    }
}

/// How many simulations run at once.
#[derive(Debug, Args)]
pub struct Parallel {
    /// Number of cells to run at a time [default: one on each core]
    #[arg(long, value_name = "COUNT", allow_hyphen_values = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

/// A table of departures in place of a capture.
#[derive(Debug, Args)]
#[command(next_help_heading = "Departures from elsewhere")]
pub struct Table {
    /// Read FILE as a table (CSV or Parquet) of packets that left a queue: flow, size, enqueued, dequeued, class
    #[arg(long)]
    pub departures: bool,

    /// Names of the table's columns, where they are different:
    /// flow=src+dst,size=bytes,enqueued=t_in,dequeued=t_out,class=prio
    #[arg(long = "columns", value_name = "NAMES", requires = "departures")]
    pub map: Option<Columns>,

    /// Unit of times in the table: s, ms, us or ns
    #[arg(long, default_value = "ns", value_name = "UNIT", requires = "departures")]
    pub time_unit: TimeUnit,
}
