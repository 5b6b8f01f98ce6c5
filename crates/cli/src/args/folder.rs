//! Arguments of `log`.

use super::shared::Times;
use clap::{ArgGroup, Args, Subcommand, ValueHint};
use queuescope_wire::{ByteCount, Nanos};
use std::path::PathBuf;

/// The subcommands of `log`.
#[derive(Debug, Subcommand)]
pub enum Folder {
    /// Show what a folder holds.
    Info(FolderArgs),
    /// Check every byte of a folder, and print what is damaged or missing.
    ///
    /// A torn end, which a killed process leaves, is printed but is not damage: the next recording cuts it off.
    ///
    /// Exit status: 0 if everything is intact, 1 if something is damaged or missing, 2 if the folder has no log.
    Verify(FolderArgs),
    /// Merge the many files that short recordings leave into few. Queries give the same results.
    ///
    /// The folder can be queried meanwhile. The command fails while a process records to the folder.
    Compact(FolderArgs),
    /// Delete old records, and keep the newest, by time or size.
    ///
    /// Whole volumes are deleted, those with the oldest records first. The folder can be queried meanwhile. The command
    /// fails while a process records to the folder.
    Keep(KeepArgs),
    /// Write records to a file, with all their attributes: Parquet, CSV or JSON, by the ending of the file's name.
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

    /// Delete volumes whose records are all older than the newest record of the folder by more than this, such as 7d, 12h or
    /// 30min; times more than a day in the future do not count
    #[arg(long = "for", value_name = "TIME", value_parser = Nanos::read_long)]
    pub age: Option<Nanos>,

    /// Delete volumes until the rest have at most this many bytes, such as 100GB; the newest stays
    #[arg(long, value_name = "BYTES")]
    pub size: Option<ByteCount>,
}

/// Arguments of `log export`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: as for analyze.\n\n\
                        Example: queuescope log export traffic web.parquet 'tcp port 443' --from 10s --to 20s")]
pub struct Export {
    /// The folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// The file to write; its name ends with .parquet, .csv or .jsonl
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Records to write: `tcp and dst_port == 443`, or in pcap's syntax `tcp port 443` [default: every record]
    pub expression: Option<String>,

    /// The time range of the records.
    #[command(flatten)]
    pub times: Times,
}
