//! Arguments of `analyze` and `why`.

use super::focus::Focus;
use super::record::Queued;
use super::shared::{Input, Keys, Output, Question, Sketch};
use super::values::Alpha;
use clap::{ArgGroup, Args, ValueHint};
use queuescope_analysis::why::{At, AtError};
use queuescope_log::begins_as_date;
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Arguments of `analyze`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if all went well, 1 if the input is damaged (what came before the damage is \
                        reported), 2 if nothing could be done.\n\n\
                        Example: queuescope analyze trace.pcap.gz --rate 100mbps --by 5tuple,dst/24 --html report.html")]
#[command(mut_arg("log", |arg| arg.conflicts_with_all(["departures", "compare_aqm"])))]
#[command(mut_arg("html", |arg| arg.conflicts_with("compare_aqm")), mut_arg("parquet", |arg| arg.conflicts_with("compare_aqm")))]
pub struct Analyze {
    /// Where departures come from.
    #[command(flatten)]
    pub input: Input,
    /// What a flow is.
    #[command(flatten)]
    pub keys: Keys,
    /// What to look for in the queue.
    #[command(flatten)]
    pub question: Question,
    /// The sketch.
    #[command(flatten)]
    pub sketch: Sketch,
    /// Where the report goes.
    #[command(flatten)]
    pub output: Output,
    /// The folder for single packets.
    #[command(flatten)]
    pub queued: Queued,

    /// Write the packets to a pcapng file, with a comment on each: how long it waited, and its flow's share of the queue.
    /// Comments, interface names and other blocks of the capture are not copied
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with = "departures",
        help_heading = "Output"
    )]
    pub pcapng: Option<PathBuf>,

    /// The discipline or switch program that manages the queue, with parameters as in scenarios, such as pie or
    /// codel,target=10ms,interval=200ms (queuescope sim --explain lists the parameters of each). The captured senders do not
    /// react to drops and marks [default: tail-drop]
    #[arg(long, value_name = "NAME", conflicts_with = "departures", help_heading = "Queue")]
    pub aqm: Option<String>,

    /// Send the packets through each of these in turn, such as tail-drop,codel,fq-codel,pie, and compare them: delays,
    /// drops, marks, and which flows pay
    #[arg(
        long,
        value_name = "NAMES",
        // None of these applies to a comparison.
        conflicts_with_all = [
            "departures", "aqm", "pcapng", "victims", "show", "tau", "alpha", "ramped", "most_bursts", "across_classes", "snapshots",
            "rows", "columns", "window", "memory", "estimator", "expiry", "durability", "log_memory", "when_full", "keep_for",
            "keep_size", "log_index",
        ],
        help_heading = "Queue"
    )]
    pub compare_aqm: Option<String>,
}

/// Arguments of `why`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: as for analyze.\n\n\
                        Examples: queuescope why trace.pcap --rate 100mbps --at 1.2s..1.5s\n          \
                        queuescope why trace.pcap --packet 4711 --fleet monitor.example.net:7401 --credentials me")]
#[command(group = ArgGroup::new("victim").required(true).multiple(true).args(["at", "packet", "flow", "victims"]))]
#[command(mut_arg("victims", |arg| arg.conflicts_with("packet").help("Packets that match an expression, such as `udp and dst_port == 10`; with a time range in --at, only those that wait then; with --flow, only those of the flow. Culprits are any packets in the queue (`queuescope query --attributes --departures` lists the attributes)")))]
// Hosts of a fleet have recorded what their queues did: there is nothing to replay.
#[command(mut_arg("file", |arg| arg.required(false).required_unless_present("fleet")))]
#[command(mut_arg("rate", |arg| arg.required_unless_present("fleet")))]
#[command(mut_arg("fleet", |arg| arg.conflicts_with_all([
    "rate", "departures", "only", "limit", "speedup", "overhead", "split_gso", "mtu", "by", "inner", "show", "alpha",
])))]
pub struct Why {
    /// Where departures come from.
    #[command(flatten)]
    pub input: Input,
    /// What a flow is.
    #[command(flatten)]
    pub keys: Keys,

    /// A moment, such as 1.2s after the first packet: which flows are in the queue then. Or a range, such as 1.2s..1.5s: why
    /// packets wait in it. With --fleet, dates: 2026-11-27T12:00:00Z..2026-11-27T12:00:01Z
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = asked_time, help_heading = "Question")]
    pub at: Option<AskedTime>,

    /// A packet, by its number in the input, counted from 1; of a table, its row. With --fleet and no FILE, the digest that it
    /// printed
    #[arg(
        long,
        value_name = "NUMBER",
        allow_hyphen_values = true,
        value_parser = packet_name,
        conflicts_with_all = ["at", "flow"],
        help_heading = "Question"
    )]
    pub packet: Option<PacketName>,

    /// A flow, by its name as analyze prints it, or by a part that occurs in no other name; with a time range in --at, only
    /// its packets that wait then
    #[arg(long, value_name = "NAME", help_heading = "Question")]
    pub flow: Option<String>,

    /// Which packets' waiting is examined, and which flows are listed.
    #[command(flatten)]
    pub focus: Focus,

    /// Least share of the bytes for a flow to be listed
    #[arg(long, allow_hyphen_values = true, default_value = "1%", value_name = "SHARE", help_heading = "Question")]
    pub alpha: Alpha,

    /// Print JSON in place of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// A fleet in place of a replay.
    #[command(flatten)]
    pub asked: AskedFleet,
}

/// A fleet whose hosts recorded what their queues did.
#[derive(Debug, Args)]
#[command(next_help_heading = "Fleet")]
pub struct AskedFleet {
    /// Ask the hosts of a fleet, through its coordinator at this address, what their queues did: to a packet of FILE (--packet NUMBER), to a packet by its digest, to a
    /// flow (--flow) or to packets that match (--victims), or who was in them at a time (--at). As queuescope fleet why
    #[arg(long, value_name = "HOST:PORT", requires = "credentials")]
    pub fleet: Option<String>,

    /// The folder with your certificate, which fleet join made
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "fleet")]
    pub credentials: Option<PathBuf>,
}

/// A time that a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedTime {
    /// As it was written.
    pub text: String,
    /// Its meaning for a file; none if it is a date.
    pub after_first: Option<At>,
}

/// Parses a time after the first packet; a date is kept as it is.
fn asked_time(text: &str) -> Result<AskedTime, String> {
    let after_first =
        if begins_as_date(text) { None } else { Some(text.parse().map_err(|error: AtError| error.to_string())?) };
    Ok(AskedTime { text: text.to_owned(), after_first })
}

/// The name of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketName {
    /// Its number in a capture, counted from 1.
    Number(NonZeroU64),
    /// Its digest, of 16 hexadecimal digits.
    Digest(String),
}

/// Parses the number of a packet, which counts from 1, or a digest.
pub fn packet_name(text: &str) -> Result<PacketName, String> {
    if text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(PacketName::Digest(text.to_owned()));
    }
    let number = text.parse().map(PacketName::Number);
    number.map_err(|_| "packets are numbered 1, 2, 3 and so on, as Wireshark does".to_owned())
}
