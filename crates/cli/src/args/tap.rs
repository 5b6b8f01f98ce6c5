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
#[command(mut_arg("log", |arg| arg.help("Put each packet that was seen on both sides of the router, or was lost in it, into a folder, with its headers as it came and how long it was there; the folder is made, or gone on with if it has a log of such (queuescope query DIR asks it)")))]
#[command(after_help = "Exit status: 0 if all went well, 1 if an input is damaged (what came before the damage is \
                        reported), 2 if nothing could be done.\n\n\
                        Example: queuescope tap lan1.pcap lan2.pcap --egress wan.pcap --rate 100mbps --html report.html")]
pub struct Tap {
    /// Captures of links into the router, one each: pcap or pcapng, plain or compressed with gzip, zstd or xz. All
    /// captures are read several times, so none can be standard input
    #[arg(required = true, value_name = "INGRESS", value_hint = ValueHint::FilePath)]
    pub ingress: Vec<PathBuf>,

    /// Capture of the link out of the router, whose queue is asked about
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub egress: PathBuf,

    /// Only packets of which an expression holds enter the queue, such as `tcp and length > 1000B`, or in pcap's words `tcp and
    /// greater 1000`, of all captures: others are as if they had not been captured (`queuescope query --attributes` lists what it
    /// can be about)
    #[arg(long = "input", value_name = "EXPRESSION")]
    pub only: Option<String>,

    /// What is known of the router and the captures.
    #[command(flatten)]
    pub router: Router,
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

impl Tap {
    /// What the arguments say of the router and the captures.
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

/// What is known of the router and the captures.
#[derive(Debug, Args)]
#[command(next_help_heading = "Router")]
pub struct Router {
    /// Rate of the link out of the router, if known: a packet's own time on the link is then taken out of its delay
    /// (unless --stamps first)
    #[arg(short, long, allow_hyphen_values = true)]
    pub rate: Option<Rate>,

    /// Rate of the links into the router, if known: one for all, or one for each, separated by commas. Only needed with
    /// --stamps first
    #[arg(long, value_delimiter = ',', value_name = "RATES", allow_hyphen_values = true)]
    pub ingress_rate: Vec<Rate>,

    /// At which bit of a packet the captures are stamped
    #[arg(long, value_enum, default_value = "last")]
    pub stamps: Stamps,

    /// The longest that a packet can be in the router: what has not come out by then is not looked for any longer
    #[arg(long, value_name = "TIME", default_value = "200ms", allow_hyphen_values = true, value_parser = some_time)]
    pub max_delay: Nanos,

    /// What the router translates (NAT)
    #[arg(long, value_enum, value_name = "WHAT", default_value = "none")]
    pub nat: NatName,

    /// Compare transport checksums too: helps where no payload was captured, hurts where a network card fills them in
    #[arg(long)]
    pub checksums: bool,

    /// All ingress captures were stamped by one clock
    #[arg(long)]
    pub shared_clock: bool,

    /// What is said of packets that were not seen to come in
    #[arg(long, value_enum, value_name = "WHAT", default_value = "unknown")]
    pub unseen: UnseenName,
}

/// At which bit captures are stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stamps {
    /// The first: a packet has come once its last bit has, at --ingress-rate.
    First,
    /// The last: a packet left the queue when its first bit did, at --rate.
    Last,
}

/// What is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NatName {
    /// Nothing.
    None,
    /// Addresses, ports and checksums.
    Addresses,
    /// All but the payload: identifications and TCP's numbers too.
    Payload,
}

/// What is said of packets that were not seen to come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UnseenName {
    /// They left the queue; when they came is not known, and nothing is asked about them.
    Unknown,
    /// In a FIFO they came between those that left before and after them.
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
fn some_time(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos(0)) => Err("nothing passes a router in no time; use one such as 200ms".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}
