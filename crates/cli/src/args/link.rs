//! Arguments of `link`.

use super::record::Queued;
use super::shared::{Analysed, Keys, Output, Overrides, Question, Sketch};
use super::values::Alpha;
use clap::{Args, ValueHint};
use queuescope_link::LinkOptions;
use queuescope_wire::{Nanos, Rate};
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `link`.
#[derive(Debug, Args)]
#[command(mut_arg("set", |arg| arg.help("Set any other value of the link or of the scenario, by its path: link.discipline.pie.target=5ms; can be given several times")))]
#[command(mut_arg("json", |arg| arg.help("Print JSON Lines instead of text; the output of the command then goes to standard error")))]
#[command(mut_arg("parquet", |arg| arg.help("Write each packet that left the queue to a Parquet file")))]
#[command(mut_arg("log", |arg| arg.help("Record each packet that left the queue or was dropped there in a folder, with its headers and what the queue did to it. The folder is created; if it has a log of this kind, that is continued (queuescope query DIR searches it)")))]
#[command(
    override_usage = "queuescope link [OPTIONS] -- <COMMAND>...\n       queuescope link [OPTIONS] <SCENARIO>\n       queuescope link [OPTIONS] --between <FIRST> <SECOND>",
    after_help = "Exit status: that of the command, 127 or 126 if it cannot be run; 1 if that is 0 and something could not be written (it is counted); 2 if nothing could be done.\n\n\
                        Examples: queuescope link --rate 50mbit --delay 5ms --aqm pie -- iperf3 -c 100.64.0.1\n          \
                        queuescope link --rate 10mbit --limit 100packets -- queuescope link --delay 20ms -- sh\n          \
                        queuescope link scenarios/codel.toml --set duration=10s\n          \
                        queuescope link --between eth1 eth2 --rate 50mbit --limit 24packets --aqm abc,strips=false\n          \
                        queuescope link --between eth1 eth2 --rate 50mbit --log /var/log/queuescope-link --credentials /etc/queuescope/link"
)]
pub struct Link {
    /// Scenario file (TOML) to run in place of a command: real senders and receivers over the network that it describes,
    /// with the report that queuescope sim prints for it
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath, required_unless_present_any = ["command", "between"], conflicts_with_all = ["rate", "trace", "back_rate", "delay", "loss", "aqm", "limit", "one_way", "command", "between"])]
    pub scenario: Option<PathBuf>,

    /// In place of a command, carry the Ethernet frames of two interfaces as a cable between them would, until a signal. With
    /// --aqm abc, frames have activity headers within the ABC domain: FIRST is outside of the domain if the program meters, SECOND if it strips
    #[arg(long, value_names = ["FIRST", "SECOND"], num_args = 2, value_hint = ValueHint::Other, conflicts_with = "command")]
    pub between: Vec<String>,

    /// With --between, end after this time, such as 10s or 5m
    #[arg(long = "for", value_name = "TIME", value_parser = Nanos::read_long, conflicts_with_all = ["command", "scenario"])]
    pub duration: Option<Nanos>,

    /// Rate of the link, in both directions, such as 50mbit
    #[arg(long, value_name = "RATE", conflicts_with = "trace", default_value = "1gbit")]
    pub rate: Rate,

    /// In place of a rate, a trace file in mahimahi's format: each line is a time in milliseconds at which 1500 bytes can
    /// leave. The trace is repeated when it ends
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,

    /// Rate of the way back, to the command [default: the same rate]
    #[arg(long, value_name = "RATE", conflicts_with = "trace")]
    pub back_rate: Option<Rate>,

    /// Propagation delay of the link, each way
    #[arg(long, value_name = "TIME", default_value = "0ms")]
    pub delay: Nanos,

    /// Share of packets that the link loses, each way: 0.01 or 1% [default: none]
    #[arg(long, value_name = "SHARE")]
    pub loss: Option<Alpha>,

    /// The discipline or switch program that manages the queue, with parameters as in scenarios, such as pie or
    /// codel,target=10ms,interval=200ms (queuescope sim --explain lists the parameters of each)
    #[arg(long, value_name = "NAME", default_value = "tail-drop")]
    pub aqm: String,

    /// Limit of the queue: 100packets, 150kB, 20ms, none
    #[arg(long, value_name = "LIMIT", default_value = "1000packets")]
    pub limit: String,

    /// Use the discipline and the limit only for what the command sends; the queue of the way back has no limit
    #[arg(long)]
    pub one_way: bool,

    /// Values of the link, or of the scenario, that are replaced.
    #[command(flatten)]
    pub overrides: Overrides,

    /// The link whose queue is analysed: bottleneck carries what the command sends, bottleneck-back what it receives; none
    /// analyses no queue [default: both; of a scenario, the links of its meters, or its first link]
    #[arg(long, value_name = "LINK")]
    pub meter: Option<String>,

    /// Which packets are analysed.
    #[command(flatten)]
    pub analysed: Analysed,

    /// Show the queue on the terminal while it carries packets, as queuescope live does. The output of the command is
    /// printed when it has ended; it has no standard input
    #[arg(long, conflicts_with = "json")]
    pub view: bool,

    /// Write the packets that passed the queue to a pcapng file, each with a comment on what the queue did to it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub pcapng: Option<PathBuf>,

    /// The command to run behind the link
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,

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
    /// The coordinator of a fleet, which gets answers about the folder.
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: super::fleet::OptionalAccess,
}

impl Link {
    /// The arguments as options of a command's link.
    pub fn options(&self) -> LinkOptions {
        let mut options = LinkOptions::default();
        options.rate = self.rate;
        options.trace.clone_from(&self.trace);
        options.back_rate = self.back_rate;
        options.delay = self.delay;
        options.loss = self.loss.map(|share| share.0);
        options.aqm.clone_from(&self.aqm);
        options.limit.clone_from(&self.limit);
        options.one_way = self.one_way;
        options.set.clone_from(&self.overrides.set);
        options
    }
}

/// Arguments of the hidden subcommand `keep`, which supervises the command behind a link.
#[derive(Debug, Args)]
pub struct Keep {
    /// The process that it ends with
    pub tie: OsString,
    /// The command to run
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}
