//! Arguments of `agent`.

use super::capture_live::{DirectionName, ring};
use super::fleet::FleetAccess;
use super::flow_acts::FlowActing;
use super::hops::SwitchReports;
use super::record::{Derived, KeepOptions};
use super::shared::{Recorded, RunTime};
use clap::{Args, ValueHint};
use queuescope_table::{Columns, TimeUnit};
use queuescope_wire::ByteCount;
use std::path::{Path, PathBuf};

/// Arguments of `agent`.
#[derive(Debug, Args)]
#[command(mut_arg("log_memory", |arg| arg.long("memory")), mut_arg("log_index", |arg| arg.long("index")))]
// Records of a queue have no triggers yet, and are not uploaded; its reports are not captured.
#[command(group(clap::ArgGroup::new("of_interface")
    .args([
        "interface", "cpu", "chosen", "inner", "filter", "aggregate", "trigger", "definitions", "upload", "act",
    ])
    .multiple(true)
    .conflicts_with_all(["int", "int_capture", "departures", "folder"])))]
// The process that records to the folder decides how its packets are kept.
#[command(group(clap::ArgGroup::new("of_log")
    .args([
        "durability", "log_memory", "when_full", "keep_for", "keep_size", "log_index", "direction", "buffer",
    ])
    .multiple(true)
    .conflicts_with("folder")))]
#[command(
    after_help = "Exit status: 0 if all went well; 1 if packets were not written (they are counted); 2 if nothing could be recorded, or if the coordinator refused this host. SIGINT and SIGTERM end the agent, and what was captured is written.\n\n\
                        Examples: queuescope agent eth0 --log /var/log/queuescope --credentials /etc/queuescope/me --trigger 'busy=bytes > 100MB@10ms/1s' --aggregate 'bytes=sum(length)'\n         \
                        queuescope agent --int 192.0.2.7:6000 --log /var/log/queuescope-switches --credentials /etc/queuescope/switches"
)]
pub struct Agent {
    /// The interface
    #[arg(value_name = "INTERFACE", required_unless_present_any = ["int", "int_capture", "departures", "folder"])]
    pub interface: Option<String>,

    /// Record headers in this folder. It is created; if it has a log of packets, that is continued
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "folder")]
    pub log: Option<PathBuf>,

    /// Direction of the packets
    #[arg(long, value_enum, default_value_t = DirectionName::Both)]
    pub direction: DirectionName,

    /// Memory for packets that are not read yet, from 1MiB to 4GiB
    #[arg(long, value_name = "BYTES", default_value = "8MiB", value_parser = ring)]
    pub buffer: ByteCount,

    /// The most processor time to take, as a part of one core: 15%. Beyond it, one of 2, 4, 8 and so on packets is recorded, and the others are counted [default:
    /// no limit]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub cpu: Option<f64>,

    /// Which packets are recorded.
    #[command(flatten)]
    pub recorded: Recorded,

    /// Reports of switches, instead of an interface.
    #[command(flatten)]
    pub reports: SwitchReports,

    /// Instead of an interface, read a table (CSV or Parquet) of packets that left a queue, and then answer until the end: flow, size, enqueued, dequeued, class
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["int", "int_capture"])]
    pub departures: Option<PathBuf>,

    /// Names of the table's columns. With those that distinguish packets of a flow, other hosts recognise them:
    /// flow=src+dst,ip_id=id,tcp_seq=seq,tcp_ack=ack,payload_length=payload
    #[arg(long = "columns", value_name = "NAMES", requires = "departures")]
    pub map: Option<Columns>,

    /// Unit of times in the table: s, ms, us or ns
    #[arg(long, default_value = "ns", value_name = "UNIT", requires = "departures")]
    pub time_unit: TimeUnit,

    /// Instead of an interface, answer about a folder that another process records to, such as capture --log or live --log. It is only read: the agent forwards the alerts of
    /// that process, has no part in cuts, and installs no definitions of control programs. That process decides how packets are kept, so --memory, --index and similar options
    /// are given to it. Answers state how many packets
    /// the folder's disk lost, and what that process left out in the time of the question
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["log", "int", "int_capture", "departures"])]
    pub folder: Option<PathBuf>,

    /// How long the agent runs.
    #[command(flatten)]
    pub run_time: RunTime,

    /// Upload volumes here when they are complete, as this host's: file:///DIR, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or
    /// az://CONTAINER/PREFIX. Credentials come from the environment (AWS_*, GOOGLE_*, AZURE_*). From now on, --keep-for and --keep-size keep
    /// volumes until the store has them
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub upload: Option<String>,

    /// How packets are kept.
    #[command(flatten)]
    pub keeping: KeepOptions,

    /// What is computed from them.
    #[command(flatten)]
    pub derived: Derived,

    /// The coordinator.
    #[command(flatten)]
    pub access: FleetAccess,

    /// What control programs may do to flows.
    #[command(flatten)]
    pub acting: FlowActing,
}

impl Agent {
    /// The folder that it records to. The arguments have one, unless the agent serves the folder of another process.
    pub fn log(&self) -> &Path {
        self.log.as_deref().unwrap_or(Path::new(""))
    }
}

/// Parses a part of a core.
fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().map_err(|_| format!("'{text}' is not a share: 15% or 0.15"))? / unit;
    if (0.001..=64.0).contains(&share) { Ok(share) } else { Err("use 0.1% to 6400%".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::Agent;
    use clap::Parser;
    use clap::error::ErrorKind;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        _agent: Agent,
    }

    #[test]
    fn a_folder_of_another_process_takes_no_options_of_recording() {
        let parsed = |words: &str| {
            let words = format!("agent --credentials me --folder log {words}");
            Command::try_parse_from(words.split_whitespace()).map(drop).map_err(|error| error.kind())
        };
        assert_eq!(parsed(""), Ok(()));
        assert_eq!(parsed("--for 10s"), Ok(()));
        for given in [
            "--memory 2GB",
            "--index src_ip",
            "--keep-for 7d",
            "--keep-size 1GB",
            "--durability synced",
            "--when-full wait",
            "--buffer 16MiB",
            "--direction in",
        ] {
            assert_eq!(parsed(given), Err(ErrorKind::ArgumentConflict), "{given}");
        }
    }
}
