//! Arguments of `traffic`.

use super::shared::RunTime;
use clap::{ArgGroup, Args, Subcommand};
use queuescope_link::traffic::{Burst, TrafficOptions};
use queuescope_wire::{Nanos, Rate};
use std::net::SocketAddr;
use std::num::NonZeroU64;

/// What `traffic` does.
#[derive(Debug, Subcommand)]
pub enum Traffic {
    /// Take flows, until a signal comes.
    ///
    /// What comes is forgotten; the sender is told how many bytes came.
    Serve(Serve),
    /// Send flows at known times, and tell how long each took.
    ///
    /// Each flow is a TCP connection: it starts when it is to, whatever became of those before, and is complete when the server has
    /// told that all its bytes came. The same seed gives the same sizes and times.
    Send(Box<Send>),
}

/// Arguments of `traffic serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 at its end, 2 if nobody can listen there. SIGINT (Ctrl-C) and SIGTERM end it, and what \
                        came is told; a second one ends at once.\n\n\
                        Example: queuescope traffic serve --listen 10.0.0.2:7000"
)]
pub struct Serve {
    /// Where to listen; port 0 is any that is free
    #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:7000")]
    pub listen: SocketAddr,

    /// Connections at once; whoever comes to more is turned away
    #[arg(long, value_name = "N", default_value = "10000")]
    pub flows: NonZeroU64,

    /// The congestion control of who takes flows, which DCTCP needs at both ends [default: what the kernel chooses]. What the kernel
    /// has not got is loaded as by `traffic send`
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,

    /// Close a connection on which nothing happened for so long
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub idle: Nanos,

    /// How long.
    #[command(flatten)]
    pub run_time: RunTime,

    /// Tell it as JSON Lines
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `traffic send`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(["rate", "every", "burst"]))]
#[command(
    after_help = "Exit status: 0 if all flows completed, 1 if some did not, 2 if nothing could be sent. SIGINT (Ctrl-C) and \
                        SIGTERM end it, and what was sent until then is told; a second one ends at once.\n\n\
                        Example: queuescope traffic send 10.0.0.2:7000 --sizes web-rack --rate 40mbit --burst 5MB@1s --for 30s"
)]
pub struct Send {
    /// Where somebody takes flows
    #[arg(value_name = "ADDR:PORT")]
    pub to: SocketAddr,

    /// How many bytes flows have: web-search, data-mining, web-rack; sizes, each as likely, such as 1kB,10kB; or a file
    /// of points of the cumulative distribution (bytes and share, a line each)
    #[arg(long, value_name = "SIZES", default_value = "web-rack", help_heading = "Flows")]
    pub sizes: String,

    /// Start flows so often that their bytes are this rate on average, at times that know nothing of one another
    #[arg(long, value_name = "RATE", conflicts_with = "every", help_heading = "Flows")]
    pub rate: Option<Rate>,

    /// Start a flow this often on average
    #[arg(long, value_name = "TIME", help_heading = "Flows")]
    pub every: Option<Nanos>,

    /// One after the other at equal times, in place of times that know nothing of one another
    #[arg(long, help_heading = "Flows")]
    pub periodic: bool,

    /// Another flow of this size this often, half of that time after the beginning at first; with a congestion control of its
    /// own if wanted: 50MB@1s:reno. Several times for several kinds
    #[arg(long, value_name = "SIZE@TIME[:CONTROL]", help_heading = "Flows")]
    pub burst: Vec<Burst>,

    /// Congestion controls, which flows take in turn [default: what the kernel chooses]. Of vegas, illinois and dctcp, those that the
    /// kernel has not got are loaded into it until the end, which takes the rights that `queuescope doctor` tells (struct_ops)
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Flows")]
    pub congestion: Vec<String>,

    /// Fail unless ECN is agreed on with the server (sysctl net.ipv4.tcp_ecn in both network namespaces decides)
    #[arg(long, help_heading = "Flows")]
    pub ecn: bool,

    /// How long flows start
    #[arg(long = "for", value_name = "TIME", value_parser = Nanos::read_long, default_value = "10s", help_heading = "Run")]
    pub duration: Nanos,

    /// So many flows at most, without bursts
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub count: Option<NonZeroU64>,

    /// Flows at once; those that would be more do not start, and are counted
    #[arg(long, value_name = "N", default_value = "1000", help_heading = "Run")]
    pub flows: NonZeroU64,

    /// How long flows that are open may take when the last has started
    #[arg(long, value_name = "TIME", value_parser = Nanos::read_long, default_value = "10s", help_heading = "Run")]
    pub wait: Nanos,

    /// Another seed, other sizes and times
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = "Run")]
    pub seed: u64,

    /// Tell each flow as a line of JSON, and a summary at the end
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl Send {
    /// The flows that are wanted.
    pub fn options(&self) -> TrafficOptions {
        let mut options = TrafficOptions::default();
        options.sizes.clone_from(&self.sizes);
        options.rate = self.rate;
        options.every = self.every;
        options.periodic = self.periodic;
        options.bursts.clone_from(&self.burst);
        options.congestion.clone_from(&self.congestion);
        options.duration = self.duration;
        options.count = self.count;
        options.seed = self.seed;
        options
    }
}
