//! `--victims` and `--show`: whose waiting is examined, and which flows are listed.

use super::Cli;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Args, CommandFactory, Parser};

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

impl Cli {
    /// What the command line says. It ends the process where that means nothing, or help was asked for.
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| if is_about_where(&error) { gone() } else { error }.exit())
    }
}

/// Whether a command was given `--where` that has none.
fn is_about_where(error: &Error) -> bool {
    let argument = error.get(ContextKind::InvalidArg);
    error.kind() == ErrorKind::UnknownArgument
        && matches!(argument, Some(ContextValue::String(name)) if name == "--where")
}

/// It had one meaning where there are three.
fn gone() -> Error {
    Cli::command().error(
        ErrorKind::UnknownArgument,
        "--where chooses what `record` and `capture` keep; of a queue, say what it is for:\n  \
         --victims EXPRESSION  whose waiting is examined (culprits are any packets in the queue)\n  \
         --show EXPRESSION     which flows are listed (shares are of the whole queue)\n  \
         --input EXPRESSION    which packets enter the queue at all (what --where did)",
    )
}
