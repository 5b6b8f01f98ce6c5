//! Arguments of `record` and `watch`, and those of all commands that record to folders.

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
    after_help = "Exit status: 0 if all went well; 1 if the capture is damaged (what came before the damage is recorded), or if packets were left out or lost because the disk was too slow, or if packets or alerts of earlier recordings are gone (they are counted); 2 if nothing could be done, or if not all acknowledged packets could be kept. SIGINT (Ctrl-C) and SIGTERM end the input, and what was read is kept; a second signal ends the command at once.\n\n\
                        Examples: queuescope record trace.pcap --log traffic --index src_ip,dst_ip\n          \
                        tcpdump -U -w - -s 128 | queuescope record - --log traffic --where 'tcp' --durability synced"
)]
pub struct Record {
    /// Capture file: pcap or pcapng, plain or compressed with gzip, zstd or xz; - is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The folder. It is created; if it has a log of packets, that is continued
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub log: PathBuf,

    /// Which packets are recorded.
    #[command(flatten)]
    pub recorded: Recorded,

    /// Record only one of N packets, drawn at random; the same capture gives the same packets
    #[arg(long, value_name = "1/N", value_parser = sample)]
    pub sample: Option<u64>,

    /// How packets are kept.
    #[command(flatten)]
    pub keeping: KeepOptions,

    /// What is computed from them.
    #[command(flatten)]
    pub derived: Derived,
}

/// What is computed from packets while they are recorded, and kept with the folder.
#[derive(Debug, Args)]
#[command(next_help_heading = "Computed while recording, and kept with the folder")]
pub struct Derived {
    /// Define a filter, which aggregates can use: `web=tcp port 443`
    #[arg(long, value_name = "NAME=EXPRESSION")]
    pub filter: Vec<String>,

    /// Define an aggregate, of all packets or of those that a filter matches: `bytes=sum(length)@web`
    #[arg(long, value_name = "NAME=FUNCTION[@FILTER]")]
    pub aggregate: Vec<String>,

    /// Define a trigger: a condition on an aggregate, of all packets or of a time window. `queuescope watch DIR` prints an
    /// alert when it fires: `busy=bytes > 100MB@10ms/1s`
    #[arg(long, value_name = "NAME=CONDITION[@PERIOD[/WINDOW]]")]
    pub trigger: Vec<String>,

    /// File (TOML) with filters, aggregates, triggers and indexes, such as a recipe
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub definitions: Option<PathBuf>,

    /// Set a parameter of that file: `switch=7`
    #[arg(long, value_name = "NAME=VALUE", requires = "definitions")]
    pub set: Vec<String>,
}

/// Largest size of a file of definitions, in bytes. The parser limits the number of definitions.
const LONGEST_DEFINITIONS: u64 = 1 << 20;

impl Derived {
    /// The definitions of the options and of the file, which is read once.
    ///
    /// # Errors
    /// Fails if the file cannot be read, if a `--set` is not `NAME=VALUE`, or if two set the same name.
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
        let values = parameter_values(&self.set)?;
        Ok(DefinitionsFile { name: path.display().to_string(), text, values })
    }
}

/// Arguments of `watch`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 when recording has ended, 2 if the folder has no log.\n\n\
                        Examples: queuescope watch traffic\n          queuescope watch traffic --all | jq .trigger")]
pub struct Watch {
    /// The folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// Also print triggers that fired before
    #[arg(long)]
    pub all: bool,
}

/// Parses a share such as `1/100`: one packet in a hundred.
fn sample(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix("1/").and_then(|number| number.parse().ok());
    number.filter(|number| *number > 0).ok_or_else(|| "a sample is written 1/N, such as 1/100".to_owned())
}

/// Arguments about a folder for what the queue did to each packet, beside a report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Queued {
    /// Record each packet that left the queue or was dropped in a folder, with its headers and what the queue did to it. The
    /// folder is created; if it has a log of this kind, that is continued (queuescope query DIR searches it)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub log: Option<PathBuf>,

    /// How packets are kept.
    #[command(flatten)]
    pub keeping: KeepOptions,
}

/// How packets are kept in a folder.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct KeepOptions {
    /// When a packet counts as kept, so that the next is read
    #[arg(long, value_enum, default_value_t = DurabilityName::Relaxed, requires = "log")]
    pub durability: DurabilityName,

    /// Largest memory: three eighths of it for the newest packets, and as much for writing them as Parquet
    #[arg(long, value_name = "BYTES", default_value = "1GB", requires = "log")]
    pub log_memory: ByteCount,

    /// What to do with packets when memory is full, because the disk is too slow
    #[arg(long, value_enum, default_value_t = WhenFull::Wait, requires = "log")]
    pub when_full: WhenFull,

    /// Delete old volumes while recording: those whose packets are older than the newest packet by more than this, such as
    /// 7d; times more than a day in the future do not count
    #[arg(long, value_name = "TIME", value_parser = Nanos::read_long, requires = "log")]
    pub keep_for: Option<Nanos>,

    /// Delete the oldest volumes while recording, so that all have at most this many bytes, such as 100GB; the newest stays
    #[arg(long, value_name = "BYTES", requires = "log")]
    pub keep_size: Option<ByteCount>,

    /// Index these attributes, so that the few packets with a value are found fast among many
    #[arg(long, value_name = "LIST", requires = "log")]
    pub log_index: Option<String>,
}

impl KeepOptions {
    /// How records of a schema are kept.
    ///
    /// # Errors
    /// Fails if an index names an attribute that the schema does not have.
    pub fn options(&self, schema: &Schema) -> Result<recording::KeepOptions> {
        let mut keeping = recording::KeepOptions::default();
        keeping.durability = self.durability.into();
        keeping.memory = self.log_memory;
        keeping.full = self.when_full.into();
        keeping.keep = Retention { age: self.keep_for.map(|age| age.0), bytes: self.keep_size.map(|size| size.0) };
        keeping.indexes = attributes("--index", self.log_index.as_deref(), schema)?;
        Ok(keeping)
    }
}

/// What to do with packets when memory is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WhenFull {
    /// Reading waits for the disk
    Wait,
    /// New packets are left out and counted
    LeaveOut,
    /// The oldest packets that are not written yet are lost and counted; needs --durability relaxed
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
    /// At once; it is written a moment later
    Relaxed,
    /// When the operating system has it: it survives kill -9
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

/// The values of parameters, written as `NAME=VALUE`.
///
/// # Errors
/// Fails if one is written otherwise, or if two set the same name.
pub fn parameter_values(sets: &[String]) -> Result<Vec<(String, String)>> {
    let mut values: Vec<(String, String)> = Vec::new();
    for set in sets {
        let (name, value) = set.split_once('=').ok_or_else(|| anyhow!("--set is NAME=VALUE, not '{set}'"))?;
        values.push((name.to_owned(), value.to_owned()));
    }
    let twice = (1..values.len()).find(|at| values[..*at].iter().any(|(name, _)| *name == values[*at].0));
    if let Some(at) = twice {
        bail!("--set gives '{}' twice: leave one out", values[at].0);
    }
    Ok(values)
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
    fn without_options_the_defaults_of_the_library_apply() {
        let args = record(&[]);
        assert_eq!(args.keeping.options(packet::schema()).unwrap(), recording::KeepOptions::default());
        assert_eq!(args.derived.options().unwrap(), recording::Derived::default());
    }
}
