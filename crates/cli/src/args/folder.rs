//! Arguments of `log`.

use super::shared::Times;
use clap::{ArgGroup, Args, Subcommand, ValueHint};
use queuescope_wire::{ByteCount, Nanos};
use std::path::PathBuf;

/// What `log` does.
#[derive(Debug, Subcommand)]
pub enum Folder {
    /// Tell what a folder has.
    Info(FolderArgs),
    /// Look at every byte of a folder, and tell what is not as it was written.
    ///
    /// An end that is torn, as who is killed leaves it, is told and no damage: it is cut off when somebody records again.
    ///
    /// Exit status: 0 if all is whole, 1 if something is damaged or missing, 2 if it is no folder of a log.
    Verify(FolderArgs),
    /// Make few files of many, as short recordings leave them; what is asked has the same answers.
    ///
    /// Others may ask the folder meanwhile; while somebody records to it, it is refused.
    Compact(FolderArgs),
    /// Take old records away, and keep the newest of some time or size.
    ///
    /// Whole volumes go, those whose records came first before others. Others may ask the folder meanwhile; while somebody
    /// records to it, it is refused.
    Keep(KeepArgs),
    /// Write records to a file, with all their attributes: Parquet, CSV or JSON, by how the file's name ends.
    Export(Export),
}

/// Arguments of `log info`, `log verify` and `log compact`.
#[derive(Debug, Args)]
pub struct FolderArgs {
    /// The folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
}

/// Arguments of `log keep`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("kept").required(true).multiple(true).args(["age", "size"]))]
#[command(after_help = "Example: queuescope log keep traffic --for 7d --size 100GB")]
pub struct KeepArgs {
    /// The folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// Take volumes away of which all records are older than the newest of any volume by more than this, such as 7d, 12h or
    /// 30min
    #[arg(long = "for", value_name = "TIME", value_parser = Nanos::read_long)]
    pub age: Option<Nanos>,

    /// Take volumes away until all have at most so many bytes, such as 100GB; the newest stays
    #[arg(long, value_name = "BYTES")]
    pub size: Option<ByteCount>,
}

/// Arguments of `log export`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: as of analyze.\n\n\
                        Example: queuescope log export traffic web.parquet 'tcp port 443' --from 10s --to 20s")]
pub struct Export {
    /// The folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// The file; its name ends with .parquet, .csv or .jsonl
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Which records: `tcp and dst_port == 443`, or in pcap's words `tcp port 443` [default: every record]
    pub expression: Option<String>,

    /// Between which times.
    #[command(flatten)]
    pub times: Times,
}
