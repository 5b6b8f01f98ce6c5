//! The command line: one definition, from which the parser, the help, the man page and the completions are made.

#[cfg(target_os = "linux")]
mod acting;
#[cfg(all(target_os = "linux", feature = "fleet"))]
mod agent;
mod analyze;
#[cfg(target_os = "linux")]
mod capture_live;
#[cfg(target_os = "linux")]
mod compare;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(feature = "experiments")]
mod experiment;
#[cfg(all(target_os = "linux", feature = "fleet"))]
mod fleet;
#[cfg(all(target_os = "linux", feature = "fleet"))]
mod flow_acts;
mod focus;
mod folder;
#[cfg(all(target_os = "linux", feature = "fleet"))]
mod hops;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod live;
mod p4;
#[cfg(target_os = "linux")]
mod p4air;
mod query;
mod record;
mod shared;
mod sim;
mod tap;
#[cfg(target_os = "linux")]
mod traffic;
mod values;

#[cfg(target_os = "linux")]
pub use acting::ActingArgs;
#[cfg(all(target_os = "linux", feature = "fleet"))]
pub use agent::Agent;
pub use analyze::{Analyze, AskedTime, PacketName, Why, packet_name};
#[cfg(target_os = "linux")]
pub use capture_live::{Capture, DirectionName};
#[cfg(target_os = "linux")]
pub use compare::Compare;
#[cfg(target_os = "linux")]
pub use doctor::Doctor;
#[cfg(feature = "experiments")]
pub use experiment::{Experiment, Paper};
#[cfg(all(target_os = "linux", feature = "fleet"))]
pub use fleet::{
    AlertSending, Coordinator, CoordinatorInit, CoordinatorRun, Fleet, FleetAccess, FleetActions, FleetAlerts,
    FleetCut, FleetHealth, FleetInvite, FleetJoin, FleetManifest, FleetMembers, FleetProgram, FleetQuery, FleetRevoke,
    FleetUpload, FleetWhy, OptionalAccess, ProgramAdd, ProgramFile, ProgramList, ProgramRemove, RoleName,
};
#[cfg(all(target_os = "linux", feature = "fleet"))]
pub use flow_acts::FlowActing;
pub use focus::Focus;
pub use folder::{Export, Folder, FolderArgs, KeepArgs};
#[cfg(target_os = "linux")]
pub use link::{Keep, Link};
#[cfg(target_os = "linux")]
pub use live::Live;
pub use p4::{Fit, Generate, P4, P4Report};
pub use query::Query;
pub use record::{Derived, DurabilityName, KeepOptions, Queued, Record, Watch, parameter_values};
pub use shared::{ExpiryName, Input, Keys, Output, Question, Queue, Sketch, Table};
pub use sim::{Merge, Sim};
pub use tap::{NatName, Router, Stamps, Tap, UnseenName};
#[cfg(target_os = "linux")]
pub use traffic::{Send, Serve, Traffic};
pub use values::{Alpha, Factor};

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

/// Which flows are filling a queue, and what to do about them.
#[derive(Debug, Parser)]
#[command(name = "queuescope", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the command line. Ends the process if the arguments are invalid, or if help or the version is requested.
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| if is_removed_where(&error) { removed_where() } else { error }.exit())
    }
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find the bursts that filled a queue, and the flows to blame, in a capture file.
    ///
    /// The packets of the capture pass through a FIFO queue, or through the discipline that --aqm names. A link of --rate
    /// drains the queue, as if the link after the point of capture had that rate. A burst starts with a packet that waits at
    /// least --tau, and ends before the first that waits less than half of --tau. Its culprits are the flows whose packets
    /// left the queue meanwhile.
    Analyze(Box<Analyze>),
    /// Show which flows made a packet, a flow, or all packets at some time wait.
    ///
    /// There are three kinds of culprits. Direct culprits left the queue while the victim waited. Indirect culprits left
    /// before the victim came, since the queue was last empty. Original culprits raised the queue to the depth that the
    /// victim met, and may have left long before. The answer is exact, and needs some 40 bytes of memory for each packet of
    /// the input.
    Why(Box<Why>),
    /// Find the bursts in a router, and the flows to blame, from captures on both sides of it.
    ///
    /// Packets are matched behind the router by the fields that it does not change. The clocks of the captures are aligned
    /// by packets that met an empty queue. A packet that came in and did not come out was lost. A packet that came out and
    /// was not captured on its way in takes part in the queue, but cannot be a victim. The rest is as with analyze.
    Tap(Box<Tap>),
    /// Find the packets of a capture that match an expression, and compute figures of them.
    ///
    /// The headers of the capture are loaded into a log in memory. The expression compares attributes of packets
    /// (--attributes lists them), or is written as for tcpdump. Packets are printed one by one, or in groups, of which the
    /// highest can be selected.
    Query(Box<Query>),
    /// Record the headers of a capture in a folder, for later queries.
    ///
    /// Recording to a folder again appends to it. One process at a time can record to it; queuescope query DIR searches it,
    /// also during recording.
    Record(Box<Record>),
    /// Print alerts as triggers of a folder fire while it is being recorded, a line of JSON each.
    ///
    /// Triggers are evaluated as packets come, by the timestamps of the packets. The command ends when recording ends.
    Watch(Watch),
    /// Inspect a recorded folder, make it smaller, or export its records to a file.
    #[command(subcommand)]
    Log(Folder),
    /// Simulate a network as a scenario file describes it, and report on its queues and flows.
    ///
    /// A scenario (TOML) describes the links, the disciplines of their queues, and which host sends what to which other.
    /// Hosts have real congestion controls. The report starts with links and flows. Packets that pass a link with a meter
    /// are then analysed as with analyze. A scenario with a sweep is run with each combination of its values, on all cores,
    /// and a table compares them.
    Sim(Box<Sim>),
    /// Join the results of a sweep's shards, and print what one run of the whole sweep would print.
    ///
    /// Shards are the parts of a sweep that queuescope sim --shard has run, each with its own --results folder. Folders that
    /// were copied together, and those of runs that were stopped, can be joined as well.
    Merge(Box<Merge>),
    /// Repeat the experiments of a paper, and print the results beside those of the paper.
    ///
    /// Each experiment is many simulations, on all cores. Finished ones are kept, so a run that was stopped can continue.
    /// The output is a table of our result, the paper's and the difference, with a sentence on each, and each figure as a
    /// plot (SVG) with its data (CSV).
    #[cfg(feature = "experiments")]
    Experiment(Experiment),
    /// Repeat the experiments of a paper (not in this build).
    #[cfg(not(feature = "experiments"))]
    #[command(hide = true)]
    Experiment {
        /// The arguments that a build with the feature would take.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Check whether an algorithm fits a switch's pipeline: where its parts go, or why it does not fit.
    #[command(subcommand)]
    P4(P4),
    /// Watch the queue of an interface of this machine: its bursts, and the flows to blame, as they happen.
    ///
    /// Programs in the kernel see each packet as it enters the interface's queue and as it leaves it. They report packets
    /// that waited for long, and count the others; the rest is as with analyze. This needs Linux 6.6 and some rights, which
    /// queuescope doctor checks. Nothing stays in the kernel when it ends, even if it is killed.
    #[cfg(target_os = "linux")]
    Live(Box<Live>),
    /// Check what this machine and this user can do, by trying it.
    ///
    /// Measuring the queue of an interface needs some abilities of Linux. Each is tried in a network namespace of its own,
    /// and leaves nothing behind. For each missing ability, doctor prints the reason and what does not work without it. One
    /// command line grants all of them; doctor prints what else it allows its users to do.
    #[cfg(target_os = "linux")]
    Doctor(Doctor),
    /// Run a command behind a link in user space, with any queue discipline.
    ///
    /// The command has a network namespace of its own, whose only interface is the link. The packets that it sends wait in
    /// the queue, and so do those that it receives. At the other end of the link is the namespace in which queuescope was
    /// started, which gets a new interface and a route. All of this is removed when the command or queuescope ends. Links
    /// can be run within links.
    #[cfg(target_os = "linux")]
    Link(Box<Link>),
    /// Run a scenario in simulation and on real hosts, and print both results side by side.
    ///
    /// The network is the same code in both. The TCP implementation, the hosts and the precision of time differ.
    #[cfg(target_os = "linux")]
    Compare(Compare),
    /// Supervise the command behind a link.
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Keep(Keep),
    /// Remove the queues of P4air when the process that made them is killed.
    #[cfg(target_os = "linux")]
    #[command(hide = true, name = p4air::GUARD)]
    GuardQueues,
    /// Copy the packets of an interface as they pass, to a file or into a folder.
    ///
    /// The kernel writes the first bytes of each packet to memory that it shares with queuescope, with the packet's time and
    /// length. Packets that find no room there are counted. A file is pcapng. A folder has headers, as with record, and can
    /// be queried during the capture.
    #[cfg(target_os = "linux")]
    Capture(Box<Capture>),
    /// Record an interface of this host, and answer a coordinator about it: this host becomes a member of a fleet.
    ///
    /// Packets are recorded in a folder as with capture --log. The agent keeps one connection to the coordinator open, answers
    /// its questions, and sends it the alerts of triggers. While it has no connection, it records, and keeps the alerts.
    #[cfg(all(target_os = "linux", feature = "fleet"))]
    Agent(Box<Agent>),
    /// Make or run the coordinator of a fleet, to which agents and people connect.
    #[cfg(all(target_os = "linux", feature = "fleet"))]
    #[command(subcommand)]
    Coordinator(Coordinator),
    /// Ask a coordinator about all hosts at once: queries, atomic snapshots, alerts. Also invite and revoke members.
    #[cfg(all(target_os = "linux", feature = "fleet"))]
    #[command(subcommand)]
    Fleet(Fleet),
    /// Ask a coordinator about all hosts (not in this build).
    #[cfg(not(all(target_os = "linux", feature = "fleet")))]
    #[command(hide = true, aliases = ["agent", "coordinator"])]
    Fleet {
        /// The arguments that a build with the feature would take.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Send flows over TCP at known times, and receive them: load to measure queues with.
    #[cfg(target_os = "linux")]
    #[command(subcommand)]
    Traffic(Traffic),
    /// Print the man page, a shell's completions, or the schema of --json.
    Generate {
        /// What to print.
        what: Generated,
    },
}

/// What `generate` prints.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Generated {
    /// The man page, in roff.
    Man,
    /// Completions for bash.
    Bash,
    /// Completions for fish.
    Fish,
    /// Completions for zsh.
    Zsh,
    /// The JSON schema of the lines that --json prints.
    Schema,
}

/// Whether the error is that a command without `--where` was given one.
fn is_removed_where(error: &Error) -> bool {
    let argument = error.get(ContextKind::InvalidArg);
    error.kind() == ErrorKind::UnknownArgument
        && matches!(argument, Some(ContextValue::String(name)) if name == "--where")
}

/// The error for `--where` on commands about queues, which three options replaced.
fn removed_where() -> Error {
    Cli::command().error(
        ErrorKind::UnknownArgument,
        "--where chooses what `record` and `capture` keep. About a queue, use one of these:\n  \
         --victims EXPRESSION  packets whose waiting is examined (culprits are any packets in the queue)\n  \
         --show EXPRESSION     flows that are listed (shares are of the whole queue)\n  \
         --input EXPRESSION    packets that enter the queue at all (formerly --where)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
