//! The command line: one definition, from which parser, help, man page and completions are made.

#[cfg(target_os = "linux")]
mod acting;
mod analyze;
#[cfg(target_os = "linux")]
mod capture_live;
#[cfg(target_os = "linux")]
mod compare;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(feature = "experiments")]
mod experiment;
mod focus;
mod folder;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod live;
mod p4;
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
pub use analyze::{Analyze, Why};
#[cfg(target_os = "linux")]
pub use capture_live::{Capture, Way};
#[cfg(target_os = "linux")]
pub use compare::Compare;
#[cfg(target_os = "linux")]
pub use doctor::Doctor;
#[cfg(feature = "experiments")]
pub use experiment::{Experiment, Paper};
pub use focus::Focus;
pub use folder::{Export, Folder, FolderArgs, KeepArgs};
#[cfg(target_os = "linux")]
pub use link::{Keep, Link};
#[cfg(target_os = "linux")]
pub use live::Live;
pub use p4::{Fit, P4};
pub use query::Query;
pub use record::{Derived, DurabilityName, Keeping, Queued, Record, Watch};
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
    /// What the command line says. It ends the process where that means nothing, or help was asked for.
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| if is_about_where(&error) { gone() } else { error }.exit())
    }
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find the bursts that filled a queue, and the flows to blame, in a capture file.
    ///
    /// The packets of the capture are sent through a FIFO queue, or what --aqm names, that is drained at --rate, as if the
    /// link after the point of capture had that rate. A burst starts with a packet that waits at least --tau, and ends before one that
    /// waits less than half of it. Its culprits are the flows whose packets left the queue meanwhile.
    Analyze(Box<Analyze>),
    /// Tell who made a packet, a flow, or everybody at some time wait.
    ///
    /// Three kinds of culprits: direct ones left the queue while the victim waited; indirect ones left before that, since
    /// the queue was last empty; original ones raised the queue to the levels that stood as the victim came, and may be
    /// long gone. The answer is exact; some 40 bytes of memory are needed for each packet of the input.
    Why(Box<Why>),
    /// Find the bursts in a router, and the flows to blame, from captures on both sides of it.
    ///
    /// Packets are found again behind the router by what it does not change of them, and the clocks of the captures are
    /// aligned by those that met an empty queue. What came in and did not come out was lost; what came out and was not
    /// seen to come in takes part in the queue, and is not asked about. The rest is as with analyze.
    Tap(Box<Tap>),
    /// Ask which packets of a capture are meant by an expression, and work things out of them.
    ///
    /// Every header of the capture is put into a log in memory. The expression is about the attributes of packets (--attributes
    /// lists them), or in the words of tcpdump. Packets are told one by one, or put in groups, of which the highest are told.
    Query(Box<Query>),
    /// Put the headers of a capture into a folder, where they are found again.
    ///
    /// A folder is gone on with when it is recorded to again, by one process at a time; queuescope query DIR asks it, also
    /// meanwhile.
    Record(Box<Record>),
    /// Tell when triggers of a folder fire that is recorded to, a line of JSON each.
    ///
    /// Triggers are looked at as packets come, by the time of the packets. It ends when nobody records any more.
    Watch(Watch),
    /// Look at a folder that was recorded to, make it smaller, or write what it has to a file.
    #[command(subcommand)]
    Log(Folder),
    /// Simulate a network as a scenario file describes it, and report on its queues and flows.
    ///
    /// A scenario (TOML) says which links there are, what manages their queues, and who sends what to whom. Hosts have real
    /// congestion controls. What passes the link with a meter is analysed as with analyze; what became of links and flows
    /// stands before that. A scenario with a sweep is run with each combination of its values, on all cores, and a table
    /// compares them.
    Sim(Box<Sim>),
    /// Join the results of a sweep's shards, and print the same as one run of the whole sweep would have.
    ///
    /// Shards are the parts of a sweep that queuescope sim --shard has run, each with --results of its own; folders that
    /// were copied together, or of runs that were stopped, are joined as well.
    Merge(Box<Merge>),
    /// Run the experiments of a paper again, and print what comes out beside what it reports.
    ///
    /// Each is many simulations, on all cores; what is done is kept, so that a run that was stopped goes on. There is a table
    /// of ours, the paper's and the difference, with a sentence on each; and each figure as a plot (SVG) with its data (CSV).
    #[cfg(feature = "experiments")]
    Experiment(Experiment),
    /// Run the experiments of a paper again (not in this build).
    #[cfg(not(feature = "experiments"))]
    #[command(hide = true)]
    Experiment {
        /// What such a build would be given.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Ask whether an algorithm fits a switch's pipeline, where its parts go, and if it does not, why.
    #[command(subcommand)]
    P4(P4),
    /// Tell what is in the queue of an interface of this machine, while it is: the bursts, and the flows to blame.
    ///
    /// Programs in the kernel see each packet as it comes to the interface's queue and as it leaves it. Those that waited for long
    /// are told, the others counted; the rest is as with analyze. It needs Linux 6.6 and some rights: queuescope doctor tells
    /// whether they are there. Nothing of it stays in the kernel when it ends, whatever ends it.
    #[cfg(target_os = "linux")]
    Live(Box<Live>),
    /// Tell what this machine and this user can do, by doing it.
    ///
    /// Measuring the queue of an interface needs some abilities of Linux. Each is tried in a network namespace of its own, and
    /// nothing stays behind. For each missing ability, doctor prints the reason and what does not work without it. One command
    /// line grants all of them; doctor prints what else its users gain by it.
    #[cfg(target_os = "linux")]
    Doctor(Doctor),
    /// Run a command behind a link in user space, with any queue discipline.
    ///
    /// The command has a network namespace of its own, whose only interface is the link: what it sends waits in the queue,
    /// and so does what it gets. At the other end is the namespace that this is begun in, by a new interface and a route to
    /// it; all of that is gone when the command ends, or this does. Links can be run within links.
    #[cfg(target_os = "linux")]
    Link(Box<Link>),
    /// Run a scenario simulated and on real hosts, and tell both side by side.
    ///
    /// The network is the same code both times; what differs is TCP, the hosts, and the exactness of time.
    #[cfg(target_os = "linux")]
    Compare(Compare),
    /// Stand between a link and the command behind it.
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Keep(Keep),
    /// Copy the packets of an interface as they pass, to a file or into a folder.
    ///
    /// The kernel keeps the beginning of each in memory that is shared with it, with its time and length; what finds no room there is
    /// counted. A file is pcapng; a folder has headers, as record puts them there, and can be asked meanwhile.
    #[cfg(target_os = "linux")]
    Capture(Box<Capture>),
    /// Send flows over TCP at known times, and take them: load to measure queues with.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
