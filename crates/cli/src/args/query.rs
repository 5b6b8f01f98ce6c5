//! Arguments of `query`.

use super::shared::{Table, Times};
use clap::{Args, ValueHint};
use queuescope_wire::ByteCount;
use std::path::PathBuf;

/// Arguments of `query`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: as for analyze.\n\n\
                        Examples: queuescope query trace.pcap 'tcp port 443 and length > 1000B'\n          \
                        queuescope query trace.pcap 'tcp_flags & RST' --select ts,src_ip,dst_ip\n          \
                        queuescope query trace.pcap --group dst_ip,ts/100ms --select 'sum(length),count' --top 10\n          \
                        queuescope query departures.parquet --departures 'delay > 1ms' --group flow --top 10\n          \
                        queuescope query queued 'src_ip == 10.0.0.5 and delay > 1ms' --in-queue --group src_ip,dst_ip")]
pub struct Query {
    /// Capture file: pcap or pcapng, plain or compressed with gzip, zstd or xz; - is standard input. Or a recorded folder
    #[arg(value_hint = ValueHint::FilePath, required_unless_present = "attributes")]
    pub file: Option<PathBuf>,

    /// Packets to find: `tcp and dst_port == 443`, or in pcap's syntax `tcp port 443` [default: every packet]
    pub expression: Option<String>,

    /// The time range of the packets.
    #[command(flatten, next_help_heading = "Question")]
    pub times: Times,

    /// Find the packets that were in the same queue while the matching packets waited, in place of those. For folders that
    /// analyze, tap or sim --log has made, and for departures
    #[arg(long, help_heading = "Question")]
    pub in_queue: bool,

    /// Attributes to print of each packet; or figures of all packets, and with --group of each group: count, sum(length),
    /// min(ttl), max(length), mean(length), stddev(length), distinct(src_ip) [default: time, source, destination, protocol and length; of departures time,
    /// flow, length and delay; of packets of a queue all of these; of groups count]
    #[arg(long, value_name = "LIST", help_heading = "Question")]
    pub select: Option<String>,

    /// Group packets by these attributes; ts/10ms groups by intervals of 10ms
    #[arg(long, value_name = "LIST", help_heading = "Question")]
    pub group: Option<String>,

    /// Print only the N groups in which the first selected figure is highest
    #[arg(long, value_name = "N", requires = "group", help_heading = "Question")]
    pub top: Option<usize>,

    /// Stop after this number of packets
    #[arg(long, value_name = "N", conflicts_with = "group", help_heading = "Question")]
    pub limit: Option<u64>,

    /// Look into tunnels: addresses and ports are those of the inner packet. For a folder, record --inner decides
    #[arg(long, conflicts_with = "departures", help_heading = "Question")]
    pub inner: bool,

    /// Make indexes of these attributes first, for --explain
    #[arg(long, value_name = "LIST", help_heading = "Question")]
    pub index: Option<String>,

    /// Print how packets are found and how many, in place of the packets
    #[arg(long, conflicts_with_all = ["select", "group", "csv", "limit"], help_heading = "Output")]
    pub explain: bool,

    /// Write the packets to a Parquet file, for DuckDB and pandas, in place of printing them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["group", "csv", "explain"],
          help_heading = "Output")]
    pub parquet: Option<PathBuf>,

    /// List the attributes that expressions can use; with --departures, those of a table
    #[arg(long, conflicts_with_all = ["json", "csv", "parquet", "explain"], help_heading = "Output")]
    pub attributes: bool,

    /// Largest memory for packet headers. Packets that do not fit are left out and counted (exit status 1). For a folder,
    /// largest memory for groups: with more groups, its packets are read several times [default: 4GB; for a folder 512MB]
    #[arg(long, value_name = "BYTES", help_heading = "Output")]
    pub memory: Option<ByteCount>,

    /// Print JSON instead of text, a line for each packet or group
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Print CSV instead of text
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub csv: bool,

    /// A table in place of a capture.
    #[command(flatten)]
    pub table: Table,
}
