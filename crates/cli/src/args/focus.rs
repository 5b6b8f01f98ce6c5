//! `--victims` and `--show`: whose waiting is examined, and which flows are listed.

use clap::Args;

/// Whose waiting is examined, and which flows are listed. The queue is worked out from all packets either way.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Question")]
pub struct Focus {
    /// Examine only the waiting of packets of which an expression holds, such as `udp and dst_port == 10`: delays, bursts and
    /// worst packets are those that these packets met. Culprits are any packets in the queue (`queuescope query --attributes
    /// --departures` lists what an expression can be about)
    #[arg(long, value_name = "EXPRESSION")]
    pub victims: Option<String>,

    /// List only flows of which an expression holds, such as `dst net 10.0.0.0/8`. Shares are still of the whole queue, and the
    /// report says how many flows are not shown, and what share they have
    #[arg(long, value_name = "EXPRESSION")]
    pub show: Option<String>,
}

impl Focus {
    /// Whether anything is asked for.
    pub fn is_given(&self) -> bool {
        self.victims.is_some() || self.show.is_some()
    }
}
