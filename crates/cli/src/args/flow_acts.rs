//! Arguments of `agent` about actions on flows.

use clap::Args;
use queuescope_fleet::act::LONGEST;
use queuescope_fleet::agent::ActLimits;
use queuescope_wire::Nanos;

/// What control programs may do to flows of this host.
#[derive(Debug, Args)]
#[command(next_help_heading = "Acting")]
pub struct FlowActing {
    /// Let control programs mark, drop and limit flows that this interface sends, within the limits below. Without this option, all actions are refused
    #[arg(long, value_name = "INTERFACE", requires = "act_only")]
    pub act: Option<String>,

    /// Act only on flows that match an expression, such as 'dst net 10.0.0.0/8'; may be repeated, and then one must match. `ip or ip6` allows all
    #[arg(long, value_name = "EXPRESSION", requires = "act")]
    pub act_only: Vec<String>,

    /// Never act on flows that match an expression, such as 'tcp port 22'; may be repeated. The connection to the coordinator is always one of these
    #[arg(long, value_name = "EXPRESSION", requires = "act")]
    pub never: Vec<String>,

    /// Change packets, if the program also says so (dry = false). Without this option, packets are only counted
    #[arg(long, requires = "act")]
    pub for_real: bool,

    /// The longest time of an action, up to 60min
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = longest, requires = "act")]
    pub act_longest: Nanos,

    /// The most actions in a minute
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=6_000), requires = "act")]
    pub act_per_minute: u32,

    /// The most actions at the same time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=64), requires = "act")]
    pub act_most: u32,
}

impl FlowActing {
    /// The limits.
    pub fn limits(&self) -> ActLimits {
        ActLimits {
            longest: self.act_longest,
            per_minute: self.act_per_minute,
            most: self.act_most as usize,
            dry: !self.for_real,
        }
    }
}

fn longest(text: &str) -> Result<Nanos, String> {
    let time = text.parse::<Nanos>().map_err(|why| why.to_string())?;
    if (Nanos(1)..=LONGEST).contains(&time) { Ok(time) } else { Err(format!("use 1ns to {LONGEST}")) }
}
