//! The command line: one definition, from which parser, help, man page and completions are made.

#[cfg(target_os = "linux")]
mod acting;
#[cfg(target_os = "linux")]
mod capture_live;
#[cfg(target_os = "linux")]
mod compare;
mod experiment;
mod focus;
mod folder;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod live;
mod p4;
mod query;
mod record;
mod sim;
mod tap;
#[cfg(target_os = "linux")]
mod traffic;

#[cfg(target_os = "linux")]
pub use acting::{ActingArgs, BoundsArgs, PolicyArgs, Written};
#[cfg(target_os = "linux")]
pub use capture_live::{Capture, Way};
#[cfg(target_os = "linux")]
pub use compare::Compare;
pub use experiment::{Experiment, Paper};
pub use focus::Focus;
pub use folder::{Export, Folder, FolderArgs, KeepArgs};
#[cfg(target_os = "linux")]
pub use link::{Keep, Link};
#[cfg(target_os = "linux")]
pub use live::Live;
pub use p4::{Fit, P4};
pub use query::Query;
pub use record::{Derived, DurabilityName, Keeping, Queued, Record, Watch};
pub use sim::{Merge, Shard, Sim};
pub use tap::{NatName, Router, Stamps, Tap, UnseenName};
#[cfg(target_os = "linux")]
pub use traffic::{Burst, Send, Serve, Traffic};

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum, ValueHint};
use queuescope_queue::Limit;
use queuescope_report::format::moment;
use queuescope_scenario::Overhead;
use queuescope_sim::Speedup;
use queuescope_sketch::Estimator;
use queuescope_table::{Columns, TimeUnit};
use queuescope_wire::{ByteCount, Granularity, Nanos, Prefixes, Rate};
use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

/// Which flows are filling a queue, and what to do about them.
#[derive(Debug, Parser)]
#[command(name = "queuescope", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find the bursts that filled a queue, and the flows to blame, in a capture file.
    ///
    /// The packets of the capture are sent through a FIFO queue that is drained at --rate, as if the link after the
    /// point of capture had that rate. A burst starts with a packet that waits at least --tau, and ends before one that
    /// waits less than half of it. Its culprits are the flows whose packets left the queue meanwhile.
    Analyze(Box<Analyze>),
    /// Tell who made a packet, a flow, or everybody at some time wait.
    ///
    /// Three kinds of culprits: direct ones left the queue while the victim waited; indirect ones left before that, since
    /// the queue was last empty; original ones raised the queue to the levels that stood as the victim came, and may be
    /// long gone. The answer is exact; some 40 bytes of memory are needed for each packet of the input.
    Why(Box<Why>),
    /// Find the bursts in a router, and the flows to blame, from captures on both sides of it.
    ///
    /// Packets are found again behind the router by what it does not change of them, and the clocks of the captures are
    /// aligned by those that met an empty queue. What came in and did not come out was lost; what came out and was not
    /// seen to come in takes part in the queue, and is not asked about. The rest is as with analyze.
    Tap(Box<Tap>),
    /// Ask which packets of a capture are meant by an expression, and work things out of them.
    ///
    /// Every header of the capture is put into a log in memory. The expression is about the attributes of packets (--attributes
    /// lists them), or in the words of tcpdump. Packets are told one by one, or put in groups, of which the highest are told.
    Query(Box<Query>),
    /// Put the headers of a capture into a folder, where they are found again.
    ///
    /// A folder is gone on with when it is recorded to again, by one process at a time; queuescope query DIR asks it, also
    /// meanwhile.
    Record(Box<Record>),
    /// Tell when triggers of a folder fire that is recorded to, a line of JSON each.
    ///
    /// Triggers are looked at as packets come, by the time of the packets. It ends when nobody records any more.
    Watch(Watch),
    /// Look at a folder that was recorded to, make it smaller, or write what it has to a file.
    #[command(subcommand)]
    Log(Folder),
    /// Simulate a network as a scenario file describes it, and report on its queues and flows.
    ///
    /// A scenario (TOML) says which links there are, what manages their queues, and who sends what to whom. Hosts have real
    /// congestion controls. What passes the link with a meter is analysed as with analyze; what became of links and flows
    /// stands before that. A scenario with a sweep is run with each combination of its values, on all cores, and a table
    /// compares them.
    Sim(Box<Sim>),
    /// Join the results of a sweep's shards, and print the same as one run of the whole sweep would have.
    ///
    /// Shards are the parts of a sweep that queuescope sim --shard has run, each with --results of its own; folders that
    /// were copied together, or of runs that were stopped, are joined as well.
    Merge(Box<Merge>),
    /// Run the experiments of a paper again, and tell what comes out beside what it reports.
    ///
    /// Each is many simulations, on all cores; what is done is kept, so that a run that was stopped goes on. There is a table
    /// of ours, the paper's and the difference, with a sentence on each; and each figure as a plot (SVG) with its data (CSV).
    Experiment(Experiment),
    /// Ask whether an algorithm fits a switch's pipeline, where its parts go, and if it does not, why.
    #[command(subcommand)]
    P4(P4),
    /// Tell what is in the queue of an interface of this machine, while it is: the bursts, and the flows to blame.
    ///
    /// Programs in the kernel see each packet as it comes to the interface's queue and as it leaves it. Those that waited for long
    /// are told, the others counted; the rest is as with analyze. It needs Linux 6.6 and some rights: queuescope doctor tells
    /// whether they are there. Nothing of it stays in the kernel when it ends, whatever ends it.
    #[cfg(target_os = "linux")]
    Live(Box<Live>),
    /// Tell what this machine and this user can do, by doing it.
    ///
    /// Measuring the queue of an interface needs some abilities of Linux. Each is tried in a network namespace of its own, and
    /// nothing stays behind. For each missing ability, doctor prints the reason and what does not work without it. One command
    /// line grants all of them; doctor prints what else its users gain by it.
    #[cfg(target_os = "linux")]
    Doctor(Doctor),
    /// Run a command behind a link in user space, with any queue discipline.
    ///
    /// The command has a network namespace of its own, whose only interface is the link: what it sends waits in the queue,
    /// and so does what it gets. At the other end is the namespace that this is begun in, by a new interface and a route to
    /// it; all of that is gone when the command ends, or this does. Links can be run within links.
    #[cfg(target_os = "linux")]
    Link(Box<Link>),
    /// Run a scenario simulated and on real hosts, and tell both side by side.
    ///
    /// The network is the same code both times; what differs is TCP, the hosts, and the exactness of time.
    #[cfg(target_os = "linux")]
    Compare(Compare),
    /// Stand between a link and the command behind it.
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Keep(Keep),
    /// Copy the packets of an interface as they pass, to a file or into a folder.
    ///
    /// The kernel keeps the beginning of each in memory that is shared with it, with its time and length; what finds no room there is
    /// counted. A file is pcapng; a folder has headers, as record puts them there, and can be asked meanwhile.
    #[cfg(target_os = "linux")]
    Capture(Box<Capture>),
    /// Send flows over TCP at known times, and take them: load to measure queues with.
    #[cfg(target_os = "linux")]
    #[command(subcommand)]
    Traffic(Traffic),
    /// Print the man page, a shell's completions, or the schema of --json.
    Generate {
        /// What to print.
        what: Generated,
    },
}

/// Arguments of `doctor`.
#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if nothing is missing, 1 if something is.")]
pub struct Doctor {
    /// Check only these abilities, or those that these commands need [default: all]
    #[arg(value_name = "WHAT", value_parser = clap::builder::PossibleValuesParser::new(crate::doctor::known()))]
    pub what: Vec<String>,

    /// Tell it as JSON Lines
    #[arg(long)]
    pub json: bool,
}

/// What `generate` prints.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Generated {
    /// The man page, in roff.
    Man,
    /// Completions for bash.
    Bash,
    /// Completions for fish.
    Fish,
    /// Completions for zsh.
    Zsh,
    /// The JSON schema of the lines that --json prints.
    Schema,
}

/// Arguments of `analyze`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if all went well, 1 if the input is damaged (what came before the damage is \
                        reported), 2 if nothing could be done.\n\n\
                        Example: queuescope analyze trace.pcap.gz --rate 100mbps --by 5tuple,dst/24 --html report.html")]
#[command(mut_arg("log", |arg| arg.conflicts_with("departures")))]
pub struct Analyze {
    /// Where departures come from.
    #[command(flatten)]
    pub input: Input,
    /// What a flow is.
    #[command(flatten)]
    pub keys: Keys,
    /// What is asked.
    #[command(flatten)]
    pub question: Question,
    /// The sketch.
    #[command(flatten)]
    pub sketch: Sketch,
    /// Where the answer goes.
    #[command(flatten)]
    pub output: Output,
    /// Where packets go.
    #[command(flatten)]
    pub queued: Queued,

    /// Write the packets again, as pcapng, with a comment on each: how long it waited, and its flow's share of the queue
    /// (comments, interface names and blocks of other kinds that the capture has are not copied)
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with = "departures",
        help_heading = "Output"
    )]
    pub pcapng: Option<PathBuf>,
}

/// Arguments of `why`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: as of analyze.\n\n\
                        Example: queuescope why trace.pcap --rate 100mbps --at 1.2s..1.5s")]
#[command(group = ArgGroup::new("victim").required(true).multiple(true).args(["at", "packet", "flow", "victims"]))]
#[command(mut_arg("victims", |arg| arg.conflicts_with("packet").help("Packets of which an expression holds, such as `udp and dst_port == 10`; with a stretch --at only then, with --flow only those of the flow. Culprits are any packets in the queue (`queuescope query --attributes --departures` lists what it can be about)")))]
pub struct Why {
    /// Where departures come from.
    #[command(flatten)]
    pub input: Input,
    /// What a flow is.
    #[command(flatten)]
    pub keys: Keys,

    /// A moment, such as 1.2s from the first packet: who is in the queue then. A stretch, such as 1.2s..1.5s: why packets
    /// wait in it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Question")]
    pub at: Option<At>,

    /// A packet, by its number in the input, from 1 (a table's row)
    #[arg(
        long,
        value_name = "NUMBER",
        allow_hyphen_values = true,
        value_parser = packet_number,
        conflicts_with_all = ["at", "flow"],
        help_heading = "Question"
    )]
    pub packet: Option<NonZeroU64>,

    /// A flow, by its name as analyze prints it, or by a part that no other name has; with a stretch --at, only then
    #[arg(long, value_name = "NAME", help_heading = "Question")]
    pub flow: Option<String>,

    /// Whose waiting it is, and which flows are listed.
    #[command(flatten)]
    pub focus: Focus,

    /// Share of the bytes from which on a flow is told
    #[arg(long, allow_hyphen_values = true, default_value = "1%", value_name = "SHARE", help_heading = "Question")]
    pub alpha: Alpha,

    /// Print JSON in place of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The number of a packet.
fn packet_number(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| "packets are numbered 1, 2, 3 and so on, as Wireshark does".to_owned())
}

/// A moment or a stretch of time, from the first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A moment.
    Moment(Nanos),
    /// From one moment until another.
    Stretch(Nanos, Nanos),
}

impl At {
    /// The same on a clock that shows `origin` as the first packet comes; a moment is a nanosecond.
    pub fn range(self, origin: Nanos) -> Range<Nanos> {
        let (from, to) = match self {
            Self::Moment(at) => (at, at.saturating_add(Nanos(1))),
            Self::Stretch(from, to) => (from, to),
        };
        origin.saturating_add(from)..origin.saturating_add(to)
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moment(at) => f.pad(&format!("at {}", moment(at.0))),
            Self::Stretch(from, to) => f.pad(&format!("from {} to {}", moment(from.0), moment(to.0))),
        }
    }
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time = |text: &str| text.parse::<Nanos>().map_err(|error| error.to_string());
        let Some((from, to)) = text.split_once("..") else { return time(text).map(Self::Moment) };
        match (time(from)?, time(to)?) {
            (from, to) if from < to => Ok(Self::Stretch(from, to)),
            _ => Err(format!("'{text}' ends before it begins, or as it does: write FROM..TO, such as 1.2s..1.5s")),
        }
    }
}

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
    pub const DEFAULT: [Granularity; 2] = [Granularity::FiveTuple, Granularity::Destination(Prefixes::WHOLE)];
}

/// The share of the queue from which on a flow is a culprit unless told otherwise.
pub const DEFAULT_ALPHA: f64 = 0.01;

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

/// A factor by which something grows, at least 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor(pub f64);

impl FromStr for Factor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().trim_end_matches(['x', 'X']).parse::<f64>() {
            Ok(factor) if factor >= 2.0 && factor.is_finite() => Ok(Self(factor)),
            _ => Err(format!("'{text}' is no factor: use one of at least 2, such as 4 or 4x")),
        }
    }
}

/// A share, above 0 and at most 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alpha(pub f64);

impl FromStr for Alpha {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
        match number.parse::<f64>().map(|number| number / scale) {
            Ok(share) if share > 0.0 && share <= 1.0 => Ok(Self(share)),
            _ => Err(format!("'{text}' is no such share: use one above 0 and up to 100%, such as 1% or 0.01")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn moments_and_stretches_are_read() {
        assert_eq!("1.5s".parse(), Ok(At::Moment(Nanos(1_500_000_000))));
        assert_eq!("1ms..2ms".parse(), Ok(At::Stretch(Nanos(1_000_000), Nanos(2_000_000))));
        for text in ["", "1", "2ms..1ms", "1ms..1ms", "..", "1ms..", "-1ms", "1ms..2"] {
            assert!(text.parse::<At>().is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_above_nothing_and_at_most_everything() {
        assert_eq!("1%".parse(), Ok(Alpha(0.01)));
        assert_eq!("0.3".parse(), Ok(Alpha(0.3)));
        for text in ["0", "101%", "-1%", "NaN", "inf", "", "%"] {
            assert!(text.parse::<Alpha>().is_err(), "{text}");
        }
    }
}
