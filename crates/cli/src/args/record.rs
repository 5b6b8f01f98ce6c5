//! Arguments of `record`, and of what else is put into folders.

use super::shared::Recorded;
use crate::expressions::attributes;
use crate::paths::read_text;
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum, ValueHint};
use queuescope_archive::{Durability, Full, Retention};
use queuescope_log::Schema;
use queuescope_recording::{self as recording, DefinitionsFile};
use queuescope_wire::{ByteCount, Nanos};
use std::path::{Path, PathBuf};

/// Arguments of `record`.
#[derive(Debug, Args)]
#[command(
    mut_arg("log_memory", |arg| arg.long("memory").help_heading(None)),
    mut_arg("log_index", |arg| arg.long("index").help_heading(None)),
    mut_arg("durability", |arg| arg.help_heading(None)),
    mut_arg("when_full", |arg| arg.help_heading(None)),
    mut_arg("keep_for", |arg| arg.help_heading(None)),
    mut_arg("keep_size", |arg| arg.help_heading(None))
)]
#[command(
    after_help = "Exit status: 0 if all went well, 1 if the capture is damaged (what came before that is recorded), or the disk \
                        could not keep up and packets were left out or lost, 2 if nothing could be done, or not all that \
                        was acknowledged could be kept. SIGINT (Ctrl-C) and SIGTERM end the input, and what was read is kept; a second one \
                        ends at once.\n\n\
                        Examples: queuescope record trace.pcap --log traffic --index src_ip,dst_ip\n          \
                        tcpdump -U -w - -s 128 | queuescope record - --log traffic --where 'tcp' --durability synced"
)]
pub struct Record {
    /// Capture file: pcap or pcapng, plain or compressed with gzip, zstd or xz; - is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The folder; it is made, or gone on with if it has a log of packets
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub log: PathBuf,

    /// Which packets.
    #[command(flatten)]
    pub recorded: Recorded,

    /// Only one packet of so many, by chance; the same ones of the same capture
    #[arg(long, value_name = "1/N", value_parser = sample)]
    pub sample: Option<u64>,

    /// How packets are kept.
    #[command(flatten)]
    pub keeping: Keeping,

    /// What is worked out of them.
    #[command(flatten)]
    pub derived: Derived,
}

/// What is worked out of packets while they are recorded, and kept with the folder.
#[derive(Debug, Args)]
#[command(next_help_heading = "Worked out, and kept with the folder")]
pub struct Derived {
    /// A filter by a name, which aggregates can be of: `web=tcp port 443`
    #[arg(long, value_name = "NAME=EXPRESSION")]
    pub filter: Vec<String>,

    /// An aggregate by a name, of all packets or of a filter's: `bytes=sum(length)@web`
    #[arg(long, value_name = "NAME=FUNCTION[@FILTER]")]
    pub aggregate: Vec<String>,

    /// A trigger by a name: when an aggregate is so, of all packets or of those of a time; `queuescope watch DIR` tells when
    /// it fires: `busy=bytes > 100MB@10ms/1s`
    #[arg(long, value_name = "NAME=CONDITION[@PERIOD[/WINDOW]]")]
    pub trigger: Vec<String>,

    /// Filters, aggregates, triggers and indexes in a file (TOML), such as a recipe
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub definitions: Option<PathBuf>,

    /// A parameter of that file: `switch=7`
    #[arg(long, value_name = "NAME=VALUE", requires = "definitions")]
    pub set: Vec<String>,
}

/// Bytes of a file of definitions, at most; how many of them are read is for those who read them.
const LONGEST_DEFINITIONS: u64 = 1 << 20;

impl Derived {
    /// What they ask for. The file is read once.
    ///
    /// # Errors
    /// If the file cannot be read, or a parameter is no name and value.
    pub fn options(&self) -> Result<recording::Derived> {
        let mut derived = recording::Derived::default();
        derived.filters.clone_from(&self.filter);
        derived.aggregates.clone_from(&self.aggregate);
        derived.triggers.clone_from(&self.trigger);
        derived.definitions = self.definitions.as_deref().map(|path| self.file(path)).transpose()?;
        Ok(derived)
    }

    fn file(&self, path: &Path) -> Result<DefinitionsFile> {
        let text = read_text(path, LONGEST_DEFINITIONS).with_context(|| format!("cannot read {}", path.display()))?;
        let mut values: Vec<(String, String)> = Vec::new();
        for set in &self.set {
            let (name, value) = set.split_once('=').ok_or_else(|| anyhow!("--set is NAME=VALUE, not '{set}'"))?;
            values.push((name.to_owned(), value.to_owned()));
        }
        let twice = (1..values.len()).find(|at| values[..*at].iter().any(|(name, _)| *name == values[*at].0));
        if let Some(at) = twice {
            bail!("--set gives '{}' twice: leave one out", values[at].0);
        }
        Ok(DefinitionsFile { name: path.display().to_string(), text, values })
    }
}

/// Arguments of `watch`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 when recording has ended, 2 if it is no folder of a log.\n\n\
                        Examples: queuescope watch traffic\n          queuescope watch traffic --all | jq .trigger")]
pub struct Watch {
    /// The folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// Tell those that fired before, too
    #[arg(long)]
    pub all: bool,
}

/// `1/100` is one of a hundred.
fn sample(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix("1/").and_then(|number| number.parse().ok());
    number.filter(|number| *number > 0).ok_or_else(|| "a sample is one of so many, such as 1/100".to_owned())
}

/// A folder for what became of each packet, beside a report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Queued {
    /// Put each packet that left the queue or was dropped into a folder, with its headers and what the queue did to it; the folder is
    /// made, or gone on with if it has a log of such (queuescope query DIR asks it)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub log: Option<PathBuf>,

    /// How packets are kept.
    #[command(flatten)]
    pub keeping: Keeping,
}

/// How packets are kept in a folder.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Keeping {
    /// When a packet counts as kept, and the next is read
    #[arg(long, value_enum, default_value_t = DurabilityName::Relaxed, requires = "log")]
    pub durability: DurabilityName,

    /// Memory at most: three eighths of it for packets that came last, as much for writing them in Parquet
    #[arg(long, value_name = "BYTES", default_value = "1GB", requires = "log")]
    pub log_memory: ByteCount,

    /// What becomes of packets when memory is full, since the disk does not keep up
    #[arg(long, value_enum, default_value_t = WhenFull::Wait, requires = "log")]
    pub when_full: WhenFull,

    /// Take old packets away while recording, by volumes: those that are older than the newest of any volume by more than this, such as 7d
    #[arg(long, value_name = "TIME", value_parser = Nanos::read_long, requires = "log")]
    pub keep_for: Option<Nanos>,

    /// Take the oldest packets away while recording, so that volumes have at most so many bytes, such as
    /// 100GB; the newest stays
    #[arg(long, value_name = "BYTES", requires = "log")]
    pub keep_size: Option<ByteCount>,

    /// Make indexes of these attributes, so that few packets with a value are found fast among many
    #[arg(long, value_name = "LIST", requires = "log")]
    pub log_index: Option<String>,
}

impl Keeping {
    /// How records of a schema are kept.
    ///
    /// # Errors
    /// If there is no attribute that an index is asked of.
    pub fn options(&self, schema: &Schema) -> Result<recording::Keeping> {
        let mut keeping = recording::Keeping::default();
        keeping.durability = self.durability.into();
        keeping.memory = self.log_memory;
        keeping.full = self.when_full.into();
        keeping.keep = Retention { age: self.keep_for.map(|age| age.0), bytes: self.keep_size.map(|size| size.0) };
        keeping.indexes = attributes("--index", self.log_index.as_deref(), schema)?;
        Ok(keeping)
    }
}

/// What becomes of packets when memory is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WhenFull {
    /// Reading waits for the disk
    Wait,
    /// New packets are left out, and counted
    LeaveOut,
    /// The oldest packets that are not written yet are lost, and counted; with --durability relaxed
    LoseOldest,
}

impl From<WhenFull> for Full {
    fn from(when: WhenFull) -> Self {
        match when {
            WhenFull::Wait => Self::Wait,
            WhenFull::LeaveOut => Self::LeaveOut,
            WhenFull::LoseOldest => Self::LoseOldest,
        }
    }
}

/// When a packet counts as kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DurabilityName {
    /// At once; written a moment later
    Relaxed,
    /// When the system has it: it survives kill -9
    Written,
    /// When the disk has it: it survives a loss of power
    Synced,
}

impl From<DurabilityName> for Durability {
    fn from(name: DurabilityName) -> Self {
        match name {
            DurabilityName::Relaxed => Self::Relaxed,
            DurabilityName::Written => Self::Written,
            DurabilityName::Synced => Self::Synced,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use queuescope_log::packet;

    fn record(options: &[&str]) -> Record {
        let words = ["queuescope", "record", "-", "--log", "unused"];
        match Cli::parse_from(words.iter().chain(options)).command {
            Command::Record(args) => *args,
            _ => panic!("it is `record`"),
        }
    }

    #[test]
    fn without_options_the_defaults_of_the_library_hold() {
        let args = record(&[]);
        assert_eq!(args.keeping.options(packet::schema()).unwrap(), recording::Keeping::default());
        assert_eq!(args.derived.options().unwrap(), recording::Derived::default());
    }
}
