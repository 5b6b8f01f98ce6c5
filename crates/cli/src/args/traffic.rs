//! Arguments of `traffic`.

use super::shared::RunTime;
use clap::{ArgGroup, Args, Subcommand};
use queuescope_link::traffic::{Burst, TrafficOptions};
use queuescope_wire::{Nanos, Rate};
use std::net::SocketAddr;
use std::num::NonZeroU64;

/// The subcommands of `traffic`.
#[derive(Debug, Subcommand)]
pub enum Traffic {
    /// Receive flows, until a signal comes.
    ///
    /// The data is discarded. The server sends the number of received bytes back to the sender.
    Serve(Serve),
    /// Send flows at known times, and print how long each took.
    ///
    /// Each flow is a TCP connection. It starts at its time, even if earlier flows are not complete, and is complete when
    /// the server has confirmed all its bytes. The same seed gives the same sizes and times.
    Send(Box<Send>),
}

/// Arguments of `traffic serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 at its end, 2 if it cannot listen on the address. SIGINT (Ctrl-C) and SIGTERM end it, and it prints what it received; a second signal ends it at once.\n\n\
                        Example: queuescope traffic serve --listen 10.0.0.2:7000"
)]
pub struct Serve {
    /// Address to listen on; port 0 takes any free port
    #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:7000")]
    pub listen: SocketAddr,

    /// Largest number of connections at once; further ones are refused
    #[arg(long, value_name = "N", default_value = "10000")]
    pub flows: NonZeroU64,

    /// Congestion control of the receiver; DCTCP must run at both ends [default: the kernel's choice]. One that the kernel
    /// does not have is loaded as by `traffic send`
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,

    /// Close a connection that was idle for this time
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub idle: Nanos,

    /// How long the server runs.
    #[command(flatten)]
    pub run_time: RunTime,

    /// Print JSON Lines
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `traffic send`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(["rate", "every", "burst"]))]
#[command(
    after_help = "Exit status: 0 if all flows completed, 1 if some did not, 2 if nothing could be sent. SIGINT (Ctrl-C) and SIGTERM end it, and it prints what was sent until then; a second signal ends it at once.\n\n\
                        Example: queuescope traffic send 10.0.0.2:7000 --sizes web-rack --rate 40mbit --burst 5MB@1s --for 30s"
)]
pub struct Send {
    /// Address of the server that receives flows
    #[arg(value_name = "ADDR:PORT")]
    pub to: SocketAddr,

    /// Sizes of flows in bytes: web-search, data-mining or web-rack; a list of equally likely sizes, such as 1kB,10kB; or a
    /// file with points of the cumulative distribution (bytes and share, one point a line)
    #[arg(long, value_name = "SIZES", default_value = "web-rack", help_heading = "Flows")]
    pub sizes: String,

    /// Start flows as a Poisson process, so that their bytes have this rate on average
    #[arg(long, value_name = "RATE", conflicts_with = "every", help_heading = "Flows")]
    pub rate: Option<Rate>,

    /// Average time between starts of flows
    #[arg(long, value_name = "TIME", help_heading = "Flows")]
    pub every: Option<Nanos>,

    /// Start flows at equal intervals, in place of a Poisson process
    #[arg(long, help_heading = "Flows")]
    pub periodic: bool,

    /// Start another flow of SIZE every TIME, the first after half of TIME; CONTROL is its congestion control: 50MB@1s:reno.
    /// Can be given several times
    #[arg(long, value_name = "SIZE@TIME[:CONTROL]", help_heading = "Flows")]
    pub burst: Vec<Burst>,

    /// Congestion controls, which flows take in turn [default: the kernel's choice]. If the kernel lacks vegas, illinois,
    /// dctcp, highspeed, scalable, htcp, bic, hybla, yeah, veno, westwood, lola, bbr3 or prague, it is loaded until the
    /// end. This needs rights that `queuescope doctor` checks (struct_ops)
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Flows")]
    pub congestion: Vec<String>,

    /// Fail unless ECN is negotiated with the server (sysctl net.ipv4.tcp_ecn in both network namespaces decides)
    #[arg(long, help_heading = "Flows")]
    pub ecn: bool,

    /// Time during which flows start
    #[arg(long = "for", value_name = "TIME", value_parser = Nanos::read_long, default_value = "10s", help_heading = "Run")]
    pub duration: Nanos,

    /// Largest number of flows, not counting those of --burst
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub count: Option<NonZeroU64>,

    /// Largest number of flows at once; further ones do not start, and are counted
    #[arg(long, value_name = "N", default_value = "1000", help_heading = "Run")]
    pub flows: NonZeroU64,

    /// How long to wait for open flows after the last has started
    #[arg(long, value_name = "TIME", value_parser = Nanos::read_long, default_value = "10s", help_heading = "Run")]
    pub wait: Nanos,

    /// Seed of the random sizes and times
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = "Run")]
    pub seed: u64,

    /// Print each flow as a line of JSON, and a summary at the end
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl Send {
    /// The arguments as options of the flows to send.
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
