//! `--victims` and `--show`: which packets' waiting is examined, and which flows are listed.

use clap::Args;

/// Which packets' waiting is examined, and which flows are listed. The queue is computed from all packets in any case.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Question")]
pub struct Focus {
    /// Examine only the waiting of packets that match an expression, such as `udp and dst_port == 10`: delays, bursts and
    /// worst packets are those of these packets. Culprits are any packets in the queue (`queuescope query --attributes
    /// --departures` lists the attributes)
    #[arg(long, value_name = "EXPRESSION")]
    pub victims: Option<String>,

    /// List only flows that match an expression, such as `dst net 10.0.0.0/8`. Shares are still of the whole queue. The
    /// report gives the number and the share of the flows that are not shown
    #[arg(long, value_name = "EXPRESSION")]
    pub show: Option<String>,
}

impl Focus {
    /// Whether either option is given.
    pub fn is_given(&self) -> bool {
        self.victims.is_some() || self.show.is_some()
    }
}
