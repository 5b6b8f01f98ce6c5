//! Arguments of `tap`.

use super::record::Queued;
use super::shared::{Keys, Output, Question, Sketch};
use clap::{Args, ValueEnum, ValueHint};
use queuescope_ingest::tap::{self, TapOptions};
use queuescope_meter::tap::Unseen;
use queuescope_wire::parse::Nat;
use queuescope_wire::{Nanos, Rate};
use std::path::PathBuf;

/// Arguments of `tap`.
#[derive(Debug, Args)]
#[command(mut_arg("log", |arg| arg.help("Record each packet that was captured on both sides of the router, or was lost in it, in a folder, with its headers as it came in and its delay. The folder is created; if it has a log of this kind, that is continued (queuescope query DIR searches it)")))]
#[command(after_help = "Exit status: 0 if all went well, 1 if an input is damaged (what came before the damage is \
                        reported), 2 if nothing could be done.\n\n\
                        Example: queuescope tap lan1.pcap lan2.pcap --egress wan.pcap --rate 100mbps --html report.html")]
pub struct Tap {
    /// Captures of the links into the router, one for each link: pcap or pcapng, plain or compressed with gzip, zstd or xz.
    /// All captures are read several times, so none can be standard input
    #[arg(required = true, value_name = "INGRESS", value_hint = ValueHint::FilePath)]
    pub ingress: Vec<PathBuf>,

    /// Capture of the link out of the router, whose queue is analysed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub egress: PathBuf,

    /// Only packets that match an expression enter the queue, such as `tcp and length > 1000B`, or in pcap's syntax `tcp and
    /// greater 1000`. The others are ignored in all captures (`queuescope query --attributes` lists the attributes)
    #[arg(long = "input", value_name = "EXPRESSION")]
    pub only: Option<String>,

    /// What is known about the router and the captures.
    #[command(flatten)]
    pub router: Router,
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
}

impl Tap {
    /// The arguments about the router and the captures as options.
    pub fn options(&self) -> TapOptions {
        let router = &self.router;
        let mut options = TapOptions::default();
        options.only.clone_from(&self.only);
        options.inner = self.keys.inner;
        options.rate = router.rate;
        options.stamps = router.stamps.into();
        options.max_delay = router.max_delay;
        options.nat = router.nat.into();
        options.checksums = router.checksums;
        options.shared_clock = router.shared_clock;
        options.unseen = router.unseen.into();
        options
    }
}

/// What is known about the router and the captures.
#[derive(Debug, Args)]
#[command(next_help_heading = "Router")]
pub struct Router {
    /// Rate of the link out of the router, if known. The transmission time of a packet is then subtracted from its delay
    /// (unless --stamps first)
    #[arg(short, long, allow_hyphen_values = true)]
    pub rate: Option<Rate>,

    /// Rate of the links into the router, if known: one for all, or one for each, separated by commas. Needed only with
    /// --stamps first
    #[arg(long, value_delimiter = ',', value_name = "RATES", allow_hyphen_values = true)]
    pub ingress_rate: Vec<Rate>,

    /// The bit of a packet at which captures take its timestamp
    #[arg(long, value_enum, default_value = "last")]
    pub stamps: Stamps,

    /// Longest time that a packet can be in the router. A packet that has not come out by then is not searched for any
    /// longer
    #[arg(long, value_name = "TIME", default_value = "200ms", allow_hyphen_values = true, value_parser = positive_time)]
    pub max_delay: Nanos,

    /// What the router changes in packets (NAT)
    #[arg(long, value_enum, value_name = "WHAT", default_value = "none")]
    pub nat: NatName,

    /// Compare transport checksums too. This helps where no payload was captured, and hurts where a network card fills them
    /// in
    #[arg(long)]
    pub checksums: bool,

    /// The timestamps of all ingress captures are from one clock
    #[arg(long)]
    pub shared_clock: bool,

    /// How to treat packets that were not captured on their way in
    #[arg(long, value_enum, value_name = "WHAT", default_value = "unknown")]
    pub unseen: UnseenName,
}

/// The bit of a packet at which captures take its timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stamps {
    /// The first bit: a packet has arrived when its last bit has, at --ingress-rate.
    First,
    /// The last bit: a packet left the queue when its first bit did, at --rate.
    Last,
}

/// What the router changes in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NatName {
    /// Nothing.
    None,
    /// Addresses, ports and checksums.
    Addresses,
    /// Everything but the payload: IP identifications and TCP sequence numbers too.
    Payload,
}

/// How to treat packets that were not captured on their way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UnseenName {
    /// They left the queue at known times, but arrived at unknown times. They cannot be victims.
    Unknown,
    /// In a FIFO, they arrived between the packets that left before and after them.
    Neighbours,
}

impl From<Stamps> for tap::Stamps {
    fn from(stamps: Stamps) -> Self {
        match stamps {
            Stamps::First => Self::First,
            Stamps::Last => Self::Last,
        }
    }
}

impl From<NatName> for Nat {
    fn from(name: NatName) -> Self {
        match name {
            NatName::None => Self::None,
            NatName::Addresses => Self::Addresses,
            NatName::Payload => Self::AllButPayload,
        }
    }
}

impl From<UnseenName> for Unseen {
    fn from(name: UnseenName) -> Self {
        match name {
            UnseenName::Unknown => Self::Unknown,
            UnseenName::Neighbours => Self::FromNeighbours,
        }
    }
}

/// A time that is not zero.
fn positive_time(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos(0)) => Err("a packet needs some time in a router: use a time above 0, such as 200ms".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}
