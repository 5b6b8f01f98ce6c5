//! Arguments of `live`.

use super::acting::ActingArgs;
use super::record::Queued;
use super::shared::{Analysed, Keys, Question, RunTime};
use crate::setup::asked;
use clap::{Args, ValueHint};
use queuescope_monitor::{Listen, WatchOptions};
use std::path::PathBuf;

/// Arguments of `live`.
#[derive(Debug, Args)]
#[command(mut_arg("tau", |arg| arg.default_value("1ms").help("Delay from which on the queue is congested; packets that waited less than half of it are only counted")))]
#[command(mut_arg("only", |arg| arg.help("Take only packets of which an expression holds to be in the queue, such as those of one class where the interface has several: `dst_port == 443`. Others are counted (`queuescope query --attributes --departures` lists what it can be about)")))]
#[command(mut_arg("log", |arg| arg.help("Put each packet that is told into a folder, with its headers and what the queue did to it; the folder is made, or gone on with if it has a log of such (queuescope query DIR asks it)")))]
#[command(
    after_help = "Exit status: 0 when it ends, by a signal, --for, or since the interface is gone; 1 if something could not be written, such as to a\n\
                        full disk (it is counted); 2 if nothing could be done.\n\n\
                        Example: queuescope live eth0 --tau 5ms --for 1m"
)]
pub struct Live {
    /// The interface, as `ip link` names it
    #[arg(value_name = "INTERFACE", value_hint = ValueHint::Other)]
    pub interface: String,

    /// How long.
    #[command(flatten)]
    pub run_time: RunTime,

    /// Which packets are analysed.
    #[command(flatten)]
    pub analysed: Analysed,

    /// Tell every packet, and not only those that waited for at least half of --tau: shares are exact then, at the cost of time
    #[arg(long)]
    pub every_packet: bool,

    /// What a flow is.
    #[command(flatten)]
    pub keys: Keys,
    /// What is asked.
    #[command(flatten)]
    pub question: Question,
    /// Where packets go.
    #[command(flatten)]
    pub queued: Queued,

    /// What is done to flows.
    #[command(flatten)]
    pub acting: ActingArgs,

    /// Print JSON Lines in place of text: each burst as it ends, and a summary at the end; so is it also where standard output is no
    /// terminal
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Tell Prometheus what is counted, at http://ADDRESS/metrics: 127.0.0.1:9090, or :9090 for every address of this
    /// machine
    #[arg(long, value_name = "ADDRESS", value_parser = Listen::read, help_heading = "Output")]
    pub metrics: Option<Listen>,

    /// Write the packets that are told, as pcapng, with their first 128 bytes and a comment on each: how long it waited, and its
    /// flow's share of the queue
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub pcapng: Option<PathBuf>,
}

impl Live {
    /// How the interface is watched, and whether its queue is drawn.
    pub fn options(&self, is_drawn: bool) -> WatchOptions {
        let mut options = WatchOptions::new(&self.interface);
        options.only.clone_from(&self.analysed.only);
        options.inner = self.keys.inner;
        options.every_packet = self.every_packet;
        options.asked = asked(&self.keys, &self.question);
        options.acting = self.acting.options();
        options.metrics.clone_from(&self.metrics);
        options.is_drawn = is_drawn;
        options
    }
}
