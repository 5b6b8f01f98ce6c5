//! Arguments of `p4`.

use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueHint};
use queuescope_p4::algorithms::{self, Dimensions, Flows, Snapshots};
use queuescope_p4::ir::{Architecture, Forwarding};
use queuescope_p4::{Program, Target};
use std::path::PathBuf;

/// The subcommands of `p4`.
#[derive(Debug, Subcommand)]
pub enum P4 {
    /// Check whether an algorithm fits a switch. Print a reason for each part that does not, and a drawing of the stages.
    ///
    /// An algorithm is a program of steps: fields that travel with a packet, tables, and registers, each of which a packet
    /// accesses once, in one stage. What the queue did to a packet is known only in the egress pipeline, behind the queue.
    /// The verdict has four aspects: how congestion is measured, how the algorithm reacts, whether it needs in ingress what
    /// is known only in egress, and whether a packet accesses each register once.
    Fit(Fit),
    /// Write an algorithm as a P4 program for a switch.
    ///
    /// The program is made from the same description that `p4 fit` places, and that tests run packet by packet beside the
    /// discipline of the simulator. It parses Ethernet, VLAN, IPv4 and IPv6, and forwards by a table of Ethernet addresses;
    /// `conquest-legacy` forwards nothing, since its packets are copies from taps. An algorithm that does not fit the switch is refused with the reason.
    Generate(Generate),
    /// Show what the compiler for Tofino gave a program, beside the stages of `p4 fit`.
    ///
    /// Reads the logs that p4c writes with `-g` (`pipe/logs/resources.json` and `metrics.json`). The program is the P4 file beside the output, whose first
    /// line says how `p4 generate` made it.
    Report(P4Report),
}

/// Arguments of `p4 report`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if all went well, 2 if nothing could be done.\n\n\
                        Example: queuescope p4 generate pie-dp --target tna -o build\n         \
                        make -C build -f pie-dp.mk\n         \
                        queuescope p4 report build/pie-dp.tofino")]
pub struct P4Report {
    /// The output folder of p4c
    #[arg(value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// The program that was compiled [default: the folder's name with .p4 in place of its ending]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub program: Option<PathBuf>,

    /// Print JSON, in one line
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Arguments of `p4 generate`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if all went well, 2 if nothing could be done.\n\n\
                        Examples: queuescope p4 generate --list\n          \
                        queuescope p4 generate egress-pi --explain --set target=250us\n          \
                        queuescope p4 generate egress-pi --target tna > egress-pi.p4\n          \
                        queuescope p4 generate egress-pi --target v1model --set target=250us -o build")]
pub struct Generate {
    /// The algorithm
    #[arg(value_parser = PossibleValuesParser::new(algorithms::NAMES), required_unless_present = "list")]
    pub algorithm: Option<String>,

    /// What the program is compiled for: BMv2's `simple_switch` (v1model) or Tofino (tna)
    #[arg(long, value_parser = PossibleValuesParser::new(Architecture::ALL.map(Architecture::name)), required_unless_present_any = ["list", "explain"])]
    pub target: Option<String>,

    /// Replace a parameter of the algorithm, as in scenarios: target=250us. Can be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Put a port on the other side of the border of an ABC domain. The ports of abc-edge are outside of it, those of the other programs within. Can be
    /// given several times
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(0..=511))]
    pub border: Vec<u16>,

    /// For v1model, send frames to an Ethernet address out of a port: 02:00:00:00:00:01=3. Can be given several times
    #[arg(long, value_name = "ADDRESS=PORT", value_parser = forwarding, requires = "output")]
    pub forward: Vec<Forwarding>,

    /// Print which algorithms can be generated for which target
    #[arg(long, conflicts_with_all = ["algorithm", "target", "set", "border", "output"])]
    pub list: bool,

    /// Print in words what the program does: its parameters with their ranges, each statement, registers, tables and random numbers; what differs for the
    /// target, or for both if none is given; and the stages of Tofino
    #[arg(long, conflicts_with_all = ["list", "output"])]
    pub explain: bool,

    /// Write the program, the entries of its tables and a makefile to this folder, which is created. For v1model, also write a test: a build of the program with packets
    /// to send and packets to expect. For tna, there is no test, because its build is for BMv2 only [default: print the program]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub output: Option<PathBuf>,
}

/// Reads an Ethernet address and a port.
fn forwarding(text: &str) -> Result<Forwarding, &'static str> {
    const FORM: &str = "give an Ethernet address and a port below 512, such as 02:00:00:00:00:01=3";
    let (address, port) = text.split_once('=').ok_or(FORM)?;
    // Numbers may not have a sign.
    let is_plain = |text: &str| text.chars().all(|letter| letter.is_ascii_hexdigit());
    let byte = |text: &str| u8::from_str_radix(text, 16).ok().filter(|_| text.len() == 2 && is_plain(text));
    let bytes: Option<Vec<u8>> = address.split(':').map(byte).collect();
    let destination = bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(FORM)?;
    let port = Some(port).filter(|port| is_plain(port)).and_then(|port| port.parse().ok());
    let port = port.filter(|port| *port < 512).ok_or(FORM)?;
    Ok(Forwarding { destination, port })
}

/// Arguments of `p4 fit`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 whatever the verdict, 2 if nothing could be done.\n\n\
                        Examples: queuescope p4 fit\n          \
                        queuescope p4 fit pie-dp --target tofino\n          \
                        queuescope p4 fit conquest --snapshots 8 --rows 4\n          \
                        queuescope p4 fit p4air --flows 1024")]
pub struct Fit {
    /// The algorithm [default: a table of all]
    #[arg(value_parser = PossibleValuesParser::new(algorithms::NAMES))]
    pub algorithm: Option<String>,

    /// The switch [default: all]
    #[arg(long, value_parser = PossibleValuesParser::new(Target::all().into_iter().map(|target| target.name)))]
    pub target: Option<String>,

    /// Stages of the switch [default: its own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub stages: Option<u16>,

    /// Register accesses that a stage has for a packet [default: the switch's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub accesses: Option<u16>,

    /// Snapshots (h) of ConQuest [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=64))]
    pub snapshots: Option<u32>,

    /// Rows (R) of each snapshot [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub rows: Option<u32>,

    /// Columns (C) of each row [default: 2048]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub columns: Option<u64>,

    /// Flows that P4air keeps, 1024 to 16777216, rounded up to a power of two [default: 65536]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1024..=1 << 24))]
    pub flows: Option<u64>,

    /// Queues of a port with P4air, 6 to 128 [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(6..=128))]
    pub queues: Option<u32>,

    /// Ports with P4air, 1 to 1024 [default: 24]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub ports: Option<u64>,

    /// Print JSON, a line for each algorithm on each switch
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl Fit {
    /// The algorithms to check.
    ///
    /// # Errors
    /// Fails if dimensions are given for an algorithm that does not have them.
    pub fn programs(&self) -> Result<Vec<Program>> {
        let Self { snapshots, rows, columns, flows, queues, ports, .. } = *self;
        let of_snapshots =
            [("snapshots", snapshots.is_some()), ("rows", rows.is_some()), ("columns", columns.is_some())];
        let of_flows = [("flows", flows.is_some()), ("queues", queues.is_some()), ("ports", ports.is_some())];
        if let Some(name) = &self.algorithm {
            if let Some((option, _)) = of_snapshots.iter().find(|(_, given)| *given)
                && name == "conquest-legacy"
            {
                bail!(
                    "conquest-legacy is placed with the dimensions that its program has by default: leave --{option} out, or see \
                     queuescope p4 generate conquest-legacy --explain --set {option}=N"
                );
            }
            if let Some((option, _)) = of_snapshots.iter().find(|(_, given)| *given)
                && !name.starts_with("conquest")
            {
                bail!(
                    "--{option} is a dimension of ConQuest's snapshots, and {name} has none: leave it out, or check one of the conquest algorithms"
                );
            }
            if let Some((option, _)) = of_flows.iter().find(|(_, given)| *given)
                && name != "p4air"
            {
                bail!("--{option} is a dimension of P4air, and {name} does not have it: leave it out, or check p4air");
            }
        }
        let usual = Dimensions::default();
        let mut programs = algorithms::all(Dimensions {
            snapshots: Snapshots {
                snapshots: snapshots.unwrap_or(usual.snapshots.snapshots),
                rows: rows.unwrap_or(usual.snapshots.rows),
                columns: columns.unwrap_or(usual.snapshots.columns),
            },
            flows: Flows {
                flows: flows.unwrap_or(usual.flows.flows),
                queues: queues.unwrap_or(usual.flows.queues),
                ports: ports.unwrap_or(usual.flows.ports),
            },
        });
        programs.retain(|program| self.algorithm.as_deref().is_none_or(|name| name == program.name()));
        Ok(programs)
    }

    /// The switches to check them on.
    pub fn targets(&self) -> Vec<Target> {
        let mut targets = Target::all();
        targets.retain(|target| self.target.as_deref().is_none_or(|name| name == target.name));
        for target in &mut targets {
            target.stages = self.stages.map_or(target.stages, usize::from);
            target.per_stage.registers = self.accesses.map_or(target.per_stage.registers, u64::from);
        }
        targets
    }
}
