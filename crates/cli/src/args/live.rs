//! Arguments of `live`.

use super::acting::ActingArgs;
use super::p4air::P4airArgs;
use super::record::Queued;
use super::shared::{Analysed, Keys, Question, RunTime};
use crate::setup::options_of_question;
use anyhow::Result;
use clap::{Args, ValueHint};
use queuescope_monitor::{ActingBounds, Listen, WatchOptions};
use std::path::PathBuf;

/// Arguments of `live`.
#[derive(Debug, Args)]
#[command(mut_arg("tau", |arg| arg.default_value("1ms").help("Delay from which on the queue is congested; packets that waited less than half of it are only counted")))]
#[command(mut_arg("only", |arg| arg.help("Treat only packets that match an expression as being in the queue, such as those of one class where the interface has several: `dst_port == 443`. Others are counted (`queuescope query --attributes --departures` lists the attributes)")))]
#[command(mut_arg("log", |arg| arg.help("Record each packet that the kernel reports in a folder, with its headers and what the queue did to it. The folder is created; if it has a log of this kind, that is continued (queuescope query DIR searches it)")))]
#[command(
    after_help = "Exit status: 0 when it ends, by a signal, by --for, or because the interface is gone; 1 if something could not be written, such as to a full disk (it is counted); 2 if nothing could be done.\n\n\
                        Example: queuescope live eth0 --tau 5ms --for 1m"
)]
pub struct Live {
    /// The interface, as `ip link` names it
    #[arg(value_name = "INTERFACE", value_hint = ValueHint::Other)]
    pub interface: String,

    /// How long the interface is watched.
    #[command(flatten)]
    pub run_time: RunTime,

    /// Which packets are analysed.
    #[command(flatten)]
    pub analysed: Analysed,

    /// Report every packet, not only those that waited for at least half of --tau. Shares are then exact, and
    /// the behaviour of flows is judged, at the cost of processor time
    #[arg(long)]
    pub every_packet: bool,

    /// What a flow is.
    #[command(flatten)]
    pub keys: Keys,
    /// What to look for in the queue.
    #[command(flatten)]
    pub question: Question,
    /// The folder for single packets.
    #[command(flatten)]
    pub queued: Queued,

    /// The coordinator of a fleet, which gets answers about the folder.
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: super::fleet::OptionalAccess,

    /// Acting on flows.
    #[command(flatten)]
    pub acting: ActingArgs,

    /// P4air.
    #[command(flatten)]
    pub p4air: P4airArgs,

    /// Print JSON Lines instead of text: each burst as it ends, and a summary at the end. This is the default if standard
    /// output is not a terminal
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Serve metrics for Prometheus at http://ADDRESS/metrics: 127.0.0.1:9090, or :9090 for every address of this machine
    #[arg(long, value_name = "ADDRESS", value_parser = Listen::read, help_heading = "Output")]
    pub metrics: Option<Listen>,

    /// Write the packets that the kernel reports to a pcapng file, with their first 128 bytes and a comment on each: how
    /// long it waited, and its flow's share of the queue
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub pcapng: Option<PathBuf>,
}

impl Live {
    /// The arguments as options of watching the interface. `is_drawn`: whether its queue is drawn on the terminal.
    ///
    /// # Errors
    /// Fails if the program's own file is not known, which P4air needs.
    pub fn options(&self, is_drawn: bool) -> Result<WatchOptions> {
        let mut options = WatchOptions::new(&self.interface);
        options.only.clone_from(&self.analysed.only);
        options.inner = self.keys.inner;
        options.every_packet = self.every_packet;
        options.asked = options_of_question(&self.keys, &self.question);
        options.acting = self.acting.options();
        options.p4air = self.p4air.options(self.acting.policy.for_real, options.acting.bounds.clone())?;
        if options.p4air.is_some() {
            // They bound P4air, which excludes other actions.
            options.acting.bounds = ActingBounds::default();
        }
        options.metrics.clone_from(&self.metrics);
        options.is_drawn = is_drawn;
        Ok(options)
    }
}
