//! Arguments of `capture`.

use super::record::{Derived, KeepOptions};
use super::shared::{Recorded, RunTime};
use clap::{ArgGroup, Args, ValueEnum, ValueHint};
use queuescope_live::capture::Direction;
use queuescope_wire::ByteCount;
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Arguments of `capture`.
#[derive(Debug, Args)]
// Clap does not enforce `requires` where a conflict exists, so options that need a folder conflict with a file.
#[command(group = ArgGroup::new("to").required(true).args(["output", "log"]))]
#[command(
    mut_arg("log_memory", |arg| arg.long("memory").conflicts_with("output")),
    mut_arg("log_index", |arg| arg.long("index").conflicts_with("output")),
    mut_arg("durability", |arg| arg.conflicts_with("output")),
    mut_arg("when_full", |arg| arg.conflicts_with("output")),
    mut_arg("keep_for", |arg| arg.conflicts_with("output")),
    mut_arg("keep_size", |arg| arg.conflicts_with("output")),
    mut_arg("filter", |arg| arg.conflicts_with("output")),
    mut_arg("aggregate", |arg| arg.conflicts_with("output")),
    mut_arg("trigger", |arg| arg.conflicts_with("output")),
    mut_arg("definitions", |arg| arg.conflicts_with("output"))
)]
#[command(
    after_help = "Exit status: 0 if all went well, also if packets found no room in memory (they are counted); 1 if packets were not written, because the disk was too slow or full (they are counted); 2 if nothing could be captured. SIGINT (Ctrl-C) and SIGTERM end the capture, and what was captured is written; a second signal ends it at once.\n\n\
                        Examples: queuescope capture eth0 -o trace.pcapng --for 10s\n          \
                        queuescope capture eth0 --log traffic --where tcp --index src_ip,dst_ip\n          \
                        queuescope capture eth0 -o - | queuescope analyze - --rate 1gbps"
)]
pub struct Capture {
    /// The interface
    #[arg(value_name = "INTERFACE")]
    pub interface: String,

    /// Write pcapng to this file; - is standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Record headers in this folder. It is created; if it has a log of packets, that is continued
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub log: Option<PathBuf>,

    /// Largest number of bytes to keep of each packet
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=262_144))]
    pub snaplen: u32,

    /// Direction of the packets
    #[arg(long, value_enum, default_value_t = DirectionName::Both)]
    pub direction: DirectionName,

    /// Which packets are captured.
    #[command(flatten)]
    pub recorded: Recorded,

    /// How long the capture runs.
    #[command(flatten)]
    pub run_time: RunTime,

    /// End after this number of packets
    #[arg(long, value_name = "N")]
    pub count: Option<NonZeroU64>,

    /// Memory for packets that are not written yet, from 1MiB to 4GiB
    #[arg(long, value_name = "BYTES", default_value = "32MiB", value_parser = ring)]
    pub buffer: ByteCount,

    /// How packets are kept.
    #[command(flatten)]
    pub keeping: KeepOptions,

    /// What is computed from them.
    #[command(flatten)]
    pub derived: Derived,
}

/// Direction of the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DirectionName {
    /// Incoming packets
    In,
    /// Outgoing packets
    Out,
    /// Both
    Both,
}

impl From<DirectionName> for Direction {
    fn from(way: DirectionName) -> Self {
        match way {
            DirectionName::In => Self::In,
            DirectionName::Out => Self::Out,
            DirectionName::Both => Self::Both,
        }
    }
}

/// Parses the memory of the ring buffer. Less does not hold a batch; more would be requested from the kernel at once.
pub fn ring(text: &str) -> Result<ByteCount, String> {
    let bytes = text.parse::<ByteCount>().map_err(|error| error.to_string())?;
    if (1 << 20..=1 << 32).contains(&bytes.0) { Ok(bytes) } else { Err("use 1MiB to 4GiB".to_owned()) }
}
