//! Arguments of `experiment`.

use super::shared::Parallel;
use clap::{Args, ValueEnum, ValueHint};
use queuescope_sim::Speedup;
use queuescope_wire::Rate;
use std::path::PathBuf;

/// Arguments of `experiment`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if the experiment was run, 2 if nothing could be done.\n\n\
                        Examples: queuescope experiment abc --small\n          \
                        queuescope experiment abc --out figures\n          \
                        queuescope experiment conquest --capture trace.pcap.gz --rate 10gbps --speedup 50")]
pub struct Experiment {
    /// The paper
    pub paper: Paper,

    /// Run a few points with few seeds, and for a shorter time: for a first look, not for results
    #[arg(long)]
    pub small: bool,

    /// Run only the first N seeds. A later run with more seeds continues from there
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,

    /// Make only these figures and tables, by the names of their files: figure-4,figure-5
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub figures: Vec<String>,

    /// Run on real hosts (Linux, as root), each scenario in real time, and one after the other unless --jobs says
    /// otherwise. Tables and plots go into a separate folder
    #[arg(long)]
    pub real: bool,

    /// For conquest: a capture file in place of the workload. Its packets pass a queue without a limit
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "rate")]
    pub capture: Option<PathBuf>,

    /// Rate at which the link drains the queue that the capture passes, such as 10gbps
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, requires = "capture")]
    pub rate: Option<Rate>,

    /// Factor by which the packets of the capture are sent faster than they were captured
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true, default_value = "1", requires = "capture")]
    pub speedup: Speedup,

    /// Folder for tables and plots. Results of cells are kept beside them, and are not run again
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, default_value = "experiments")]
    pub out: PathBuf,

    /// How many cells run at once.
    #[command(flatten)]
    pub parallel: Parallel,
}

/// The papers whose figures can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Paper {
    /// ABC (Menth et al., Future Internet 2019): figures 4, 5 and 6, what they depend on, a domain of three bottlenecks
    Abc,
    /// ConQuest (Chen et al., CoNEXT 2019), its accuracy: figures 6 to 9 and 15, on a workload or a capture
    Conquest,
    /// ConQuest's AQM (Chen et al., CoNEXT 2019): figures 10 and 11, and a better marking function
    ConquestAqm,
    /// Not a paper: Egress PI, made for switches, beside all other disciplines
    EgressPi,
    /// P4air (Turkovic and Kuipers, ICNP 2020): figures 1, 6, 7(d) and 7(e), and the options of section V
    P4air,
    /// PIE on a switch (Kunze et al., IM 2021): figures 5 and 6
    PieTofino,
    /// Not a paper: the simulator beside the kernel's TCP on real hosts (Linux, as root), on 60 links
    TwoWorlds,
}
