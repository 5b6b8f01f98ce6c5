//! Arguments of `live` for P4air.

use anyhow::{Context, Result};
use clap::Args;
use queuescope_live::{GuardCommand, P4airParams};
use queuescope_monitor::{ActingBounds, P4airOptions};
use queuescope_wire::{ByteCount, Rate};

/// The hidden subcommand that removes the queues of P4air if `live` is killed.
pub const GUARD: &str = "guard-queues";

/// P4air on the interface.
#[derive(Debug, Args)]
pub struct P4airArgs {
    /// Find the kind of congestion control of each flow that leaves by the interface (P4air; Turkovic and Kuipers, ICNP 2020).
    /// With --for-real, give each kind its own queues in place of the interface's default queue, and slow down flows above
    /// their share. Needs --rate
    #[arg(
        long,
        help_heading = "P4air",
        group = "action",
        requires = "rate",
        conflicts_with_all = ["mark", "drop", "limit", "threshold", "hold", "policy_file"]
    )]
    pub p4air: bool,

    /// The rate at which --p4air sends: a little less than what the link behind the interface carries, so that packets
    /// wait here
    #[arg(long, value_name = "RATE", help_heading = "P4air", requires = "p4air")]
    pub rate: Option<Rate>,

    /// The number of queues of --p4air, from 7 to 64: one each for ants, mice and delayed packets, the others for the four
    /// groups of long-lived flows
    #[arg(long, value_name = "N", help_heading = "P4air", default_value_t = 32, value_parser = clap::value_parser!(u32).range(7..=64), requires = "p4air")]
    pub queues: u32,

    /// The sum of the limits of all queues of --p4air, such as 1MB [default: what the link sends in 100 ms]; each queue has
    /// room for a super-packet of 66 kB at least
    #[arg(long, value_name = "SIZE", help_heading = "P4air", requires = "p4air")]
    pub buffer: Option<ByteCount>,
}

impl P4airArgs {
    /// The arguments as options, with --p4air.
    ///
    /// # Errors
    /// Fails if the program's own file is not known.
    pub fn options(&self, for_real: bool, bounds: ActingBounds) -> Result<Option<P4airOptions>> {
        let (true, Some(rate)) = (self.p4air, self.rate) else { return Ok(None) };
        let mut params = P4airParams::new(rate);
        params.queues = self.queues;
        params.buffer = self.buffer.unwrap_or(params.buffer);
        let program = std::env::current_exe().context("cannot find the program itself")?;
        let guard = GuardCommand { program, arguments: vec![GUARD.into()], environment: None };
        Ok(Some(P4airOptions { params, for_real, bounds, guard }))
    }
}
