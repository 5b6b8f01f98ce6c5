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
#[command(mut_arg("set", |arg| arg.help("Anything else of the link, or another value of the scenario, by its path: link.discipline.pie.target=5ms; can be given several times")))]
#[command(mut_arg("json", |arg| arg.help("Print JSON Lines in place of text; what the command prints goes to standard error then")))]
#[command(mut_arg("parquet", |arg| arg.help("Write each packet that left the queue to a Parquet file")))]
#[command(mut_arg("log", |arg| arg.help("Put each packet that left the queue or was dropped there into a folder, with its headers and what the queue did to it; the folder is made, or gone on with if it has a log of such (queuescope query DIR asks it)")))]
#[command(
    override_usage = "queuescope link [OPTIONS] -- <COMMAND>...\n       queuescope link [OPTIONS] <SCENARIO>",
    after_help = "Exit status: that of the command, 127 or 126 if it cannot be run; 1 if that is 0 and something could \
                        not be written (it is counted); 2 if nothing could be done.\n\n\
                        Examples: queuescope link --rate 50mbit --delay 5ms --aqm pie -- iperf3 -c 100.64.0.1\n          \
                        queuescope link --rate 10mbit --limit 100packets -- queuescope link --delay 20ms -- sh\n          \
                        queuescope link scenarios/codel.toml --set duration=10s"
)]
pub struct Link {
    /// Scenario file (TOML) that is run in place of a command: real senders and receivers over the network that it describes,
    /// with the report that queuescope sim gives for it
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath, required_unless_present = "command", conflicts_with_all = ["rate", "trace", "back_rate", "delay", "loss", "aqm", "limit", "one_way", "command"])]
    pub scenario: Option<PathBuf>,

    /// How fast the link is, either way, such as 50mbit
    #[arg(long, value_name = "RATE", conflicts_with = "trace", default_value = "1gbit")]
    pub rate: Rate,

    /// In place of a rate, a file in mahimahi's format: each line a time in milliseconds at which 1500 bytes may leave; it
    /// begins anew when it ends
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,

    /// How fast it is the way back, to the command [default: as fast]
    #[arg(long, value_name = "RATE", conflicts_with = "trace")]
    pub back_rate: Option<Rate>,

    /// How long a packet is under way, each way
    #[arg(long, value_name = "TIME", default_value = "0ms")]
    pub delay: Nanos,

    /// Which part of packets is lost on the way, each way: 0.01 or 1% [default: none]
    #[arg(long, value_name = "SHARE")]
    pub loss: Option<Alpha>,

    /// What manages the queue: a discipline or a switch program, with parameters as scenarios have them, such as pie or
    /// codel,target=10ms,interval=200ms (queuescope sim --explain lists those of each)
    #[arg(long, value_name = "NAME", default_value = "tail-drop")]
    pub aqm: String,

    /// How much the queue holds: 100packets, 150kB, 20ms, none
    #[arg(long, value_name = "LIMIT", default_value = "1000packets")]
    pub limit: String,

    /// Only what the command sends waits in such a queue; the way back has one without a limit
    #[arg(long)]
    pub one_way: bool,

    /// What is replaced of it, or of the scenario.
    #[command(flatten)]
    pub overrides: Overrides,

    /// The link whose queue is analysed: bottleneck is what the command sends, bottleneck-back what it gets; none: no queue is
    /// [default: both; of a scenario those of its meters, or its first link]
    #[arg(long, value_name = "LINK")]
    pub meter: Option<String>,

    /// Which packets are analysed.
    #[command(flatten)]
    pub analysed: Analysed,

    /// Show the queue on the terminal while it carries packets, as queuescope live does; what the command prints is told when it
    /// has ended, and it reads nothing
    #[arg(long, conflicts_with = "json")]
    pub view: bool,

    /// Write the packets that met the queue to a pcapng file, each with a comment on what it met there
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub pcapng: Option<PathBuf>,

    /// What is run behind the link
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,

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
}

impl Link {
    /// The link of a command as the arguments say.
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

/// What stands between a link and the command that is run behind it.
#[derive(Debug, Args)]
pub struct Keep {
    /// What it is tied to
    pub tie: OsString,
    /// What is run
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}
