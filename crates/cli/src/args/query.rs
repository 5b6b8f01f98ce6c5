//! Arguments of `query`.

use super::shared::{Table, Times};
use clap::{Args, ValueHint};
use queuescope_wire::ByteCount;
use std::path::PathBuf;

/// Arguments of `query`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: as of analyze.\n\n\
                        Examples: queuescope query trace.pcap 'tcp port 443 and length > 1000B'\n          \
                        queuescope query trace.pcap 'tcp_flags & RST' --select ts,src_ip,dst_ip\n          \
                        queuescope query trace.pcap --group dst_ip,ts/100ms --select 'sum(length),count' --top 10\n          \
                        queuescope query departures.parquet --departures 'delay > 1ms' --group flow --top 10\n          \
                        queuescope query queued 'src_ip == 10.0.0.5 and delay > 1ms' --in-queue --group src_ip,dst_ip")]
pub struct Query {
    /// Capture file: pcap or pcapng, plain or compressed with gzip, zstd or xz; - is standard input. Or a folder that was recorded to
    #[arg(value_hint = ValueHint::FilePath, required_unless_present = "attributes")]
    pub file: Option<PathBuf>,

    /// Which packets: `tcp and dst_port == 443`, or in pcap's words `tcp port 443` [default: every packet]
    pub expression: Option<String>,

    /// Between which times.
    #[command(flatten, next_help_heading = "Question")]
    pub times: Times,

    /// In place of the packets that were found, those that were in the same queue while they waited: of a folder that analyze, tap or
    /// sim --log has made, or of departures
    #[arg(long, help_heading = "Question")]
    pub in_queue: bool,

    /// What is told of each packet: attributes; or of all, and with --group of each group: count, sum(length), min(ttl),
    /// max(length), mean(length) [default: when, from where, to where, protocol and length; of departures when, flow, length and
    /// delay; of packets of a queue both; of groups count]
    #[arg(long, value_name = "LIST", help_heading = "Question")]
    pub select: Option<String>,

    /// Put packets in groups by these attributes; ts/10ms is a stretch of time
    #[arg(long, value_name = "LIST", help_heading = "Question")]
    pub group: Option<String>,

    /// Only so many groups: those in which what is selected first is highest
    #[arg(long, value_name = "N", requires = "group", help_heading = "Question")]
    pub top: Option<usize>,

    /// Stop after so many packets
    #[arg(long, value_name = "N", conflicts_with = "group", help_heading = "Question")]
    pub limit: Option<u64>,

    /// Look into tunnels: addresses and ports are those of the inner packet; of a folder, record --inner decides
    #[arg(long, conflicts_with = "departures", help_heading = "Question")]
    pub inner: bool,

    /// Make indexes of these attributes first, for --explain
    #[arg(long, value_name = "LIST", help_heading = "Question")]
    pub index: Option<String>,

    /// Tell how packets are found and how many, in place of the packets
    #[arg(long, conflicts_with_all = ["select", "group", "csv", "limit"], help_heading = "Output")]
    pub explain: bool,

    /// Write the packets to a Parquet file, for DuckDB and pandas, in place of printing them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["group", "csv", "explain"],
          help_heading = "Output")]
    pub parquet: Option<PathBuf>,

    /// List the attributes that can be asked for; with --departures those of a table
    #[arg(long, conflicts_with_all = ["json", "csv", "parquet", "explain"], help_heading = "Output")]
    pub attributes: bool,

    /// Memory for packets' headers at most; what does not fit is left out, and counted (exit status 1); of a folder there is no need
    /// for it [default: 4GB]
    #[arg(long, value_name = "BYTES", help_heading = "Output")]
    pub memory: Option<ByteCount>,

    /// Print JSON in place of text, a line for each packet or group
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Print CSV in place of text
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub csv: bool,

    /// A table in place of a capture.
    #[command(flatten)]
    pub table: Table,
}
