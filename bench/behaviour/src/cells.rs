//! The cells: scenarios, and how their flows really behave.

use queuescope_meter::{Behaviour, FinerKind};
use std::fmt::Write;

/// A set of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// Those that the judge was made with.
    Design,
    /// Those that it is judged by.
    Test,
}

/// A run.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Its kind, for the table: alone, together, with an AQM, or with UDP.
    pub kind: &'static str,
    /// The scenario, with everything that the run depends on.
    pub scenario: String,
    /// Its flows, in the order of the scenario's groups.
    pub flows: Vec<Flow>,
}

/// A flow and its truth.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Its congestion control, or `udp`.
    pub control: &'static str,
    pub rtt_ms: u64,
    is_l4s: bool,
    is_ecn: bool,
    /// The rate of a constant-rate flow, in kb/s.
    kbps: u64,
}

impl Flow {
    /// How it behaves, with more marks than drops or without.
    pub fn truth(&self, is_marked: bool) -> Behaviour {
        match self.control {
            "udp" => Behaviour::Unresponsive,
            "vegas" | "lola" => Behaviour::DelayBased,
            "bbr" | "bbr3" => Behaviour::ModelBased,
            "dctcp" | "prague" if is_marked => Behaviour::Scalable,
            _ => Behaviour::LossDriven,
        }
    }

    /// Whether its control needs ECN.
    fn is_scalable(&self) -> bool {
        matches!(self.control, "dctcp" | "prague")
    }

    /// Its finer kind, if it is loss-driven: the groups of P4air's paper, table I.
    pub fn finer(&self, truth: Behaviour) -> Option<FinerKind> {
        (truth == Behaviour::LossDriven).then_some(match self.control {
            "yeah" | "illinois" | "veno" | "westwood" => FinerKind::LossDelay,
            _ => FinerKind::LossBased,
        })
    }
}

/// All congestion controls of the simulator.
pub const CONTROLS: [&str; 17] = [
    "newreno", "cubic", "bic", "hstcp", "scalable", "htcp", "hybla", "yeah", "illinois", "veno", "westwood", "dctcp",
    "prague", "vegas", "lola", "bbr", "bbr3",
];

/// Queues that are not FIFOs, with what they do to ECN-capable packets: the text of the discipline, and whether it marks.
const QUEUES: [(&str, bool); 8] = [
    ("\"codel\"", false),
    ("\"pie\"", false),
    ("{ red = { adaptation = \"adaptive\" } }", false),
    ("{ codel = { ecn = true, ce-threshold = \"1ms\" } }", true),
    ("{ codel = { ecn = true, ce-threshold = \"3ms\" } }", true),
    ("\"dual-pi2\"", true),
    ("{ fq-codel = { ce-threshold = \"2ms\" } }", true),
    ("\"fq-codel\"", true),
];

struct Plan {
    rtts_ms: [u64; 6],
    megabits: [u64; 3],
    /// In percent of the bandwidth-delay product.
    buffers: &'static [u64],
    seed: u64,
}

impl Set {
    fn plan(self) -> Plan {
        match self {
            Self::Design => {
                Plan { rtts_ms: [20, 32, 50, 75, 110, 150], megabits: [10, 40, 100], buffers: &[100, 60, 200], seed: 1 }
            }
            Self::Test => Plan {
                rtts_ms: [22, 36, 58, 85, 125, 145],
                megabits: [12, 30, 80],
                buffers: &[100, 80, 150],
                seed: 7_000,
            },
        }
    }

    /// All its cells.
    pub fn cells(self) -> Vec<Cell> {
        let plan = self.plan();
        let mut draws = Draws(plan.seed);
        let mut cells = plan.alone();
        (0..360).for_each(|_| cells.push(plan.together(&mut draws)));
        (0..160).for_each(|_| cells.push(plan.managed(&mut draws)));
        (0..60).for_each(|_| cells.push(plan.with_udp(&mut draws)));
        for (number, cell) in cells.iter_mut().enumerate() {
            cell.scenario = format!("seed = {}\n{}", plan.seed + number as u64, cell.scenario);
        }
        cells
    }
}

impl Plan {
    /// Each control alone, at each round-trip time and rate, in a FIFO.
    fn alone(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for control in CONTROLS {
            for (nth, rtt_ms) in self.rtts_ms.into_iter().enumerate() {
                for (other, megabits) in self.megabits.into_iter().enumerate() {
                    // One bandwidth-delay product mostly, others at times.
                    let buffer = if (nth + other) % 3 == 2 { self.buffers[1 + nth % 2] } else { self.buffers[0] };
                    cells.push(cell("alone", megabits, buffer, "\"tail-drop\"", vec![tcp(control, rtt_ms)]));
                }
            }
        }
        cells
    }

    /// Two to five flows in a FIFO: half with one control, half with one round-trip time.
    fn together(&self, draws: &mut Draws) -> Cell {
        let (count, megabits) = (2 + draws.below(4), *draws.one(&self.megabits));
        let (same_control, same_rtt) = (draws.below(2) == 0, draws.below(2) == 0);
        let (control, rtt_ms) = (*draws.one(&CONTROLS), *draws.one(&self.rtts_ms));
        let flow = |draws: &mut Draws| {
            let control = if same_control { control } else { *draws.one(&CONTROLS) };
            tcp(control, if same_rtt { rtt_ms } else { *draws.one(&self.rtts_ms) })
        };
        let flows = (0..count).map(|_| flow(draws)).collect();
        cell("together", megabits, *draws.one(self.buffers), "\"tail-drop\"", flows)
    }

    /// One to three flows in a queue with an AQM; those that can be are marked if it marks.
    fn managed(&self, draws: &mut Draws) -> Cell {
        let (count, megabits) = (1 + draws.below(3), *draws.one(&self.megabits));
        let (queue, marks) = *draws.one(&QUEUES);
        let rtt_ms = *draws.one(&self.rtts_ms);
        let flow = |draws: &mut Draws| {
            // Half of the flows are scalable where there are marks.
            let control =
                if marks && draws.below(2) == 0 { *draws.one(&["dctcp", "prague"]) } else { *draws.one(&CONTROLS) };
            let is_l4s = control == "prague" || (control == "dctcp" && queue.contains("dual"));
            let scalable = matches!(control, "dctcp" | "prague");
            let is_ecn =
                scalable || (marks && draws.below(3) == 0 && !matches!(control, "vegas" | "lola" | "bbr" | "bbr3"));
            Flow { is_l4s, is_ecn, ..tcp(control, rtt_ms) }
        };
        let flows = (0..count).map(|_| flow(draws)).collect();
        cell("AQM", megabits, 200, queue, flows)
    }

    /// A constant-rate flow, alone or with one to three others: less than the link's rate mostly.
    fn with_udp(&self, draws: &mut Draws) -> Cell {
        let (count, megabits) = (draws.below(4), *draws.one(&self.megabits));
        let share = [15, 30, 60, 110][draws.below(4) as usize];
        let udp = Flow { kbps: megabits * 10 * share, ..tcp("udp", 0) };
        let rtt_ms = *draws.one(&self.rtts_ms);
        let others = (0..count).map(|_| tcp(draws.one::<&'static str>(&CONTROLS), rtt_ms)).collect::<Vec<_>>();
        let queue = *draws.one(&["\"tail-drop\"", "\"tail-drop\"", "\"codel\"", "\"pie\""]);
        let flows: Vec<_> = std::iter::once(udp).chain(others).collect();
        Cell { kind: "with UDP", ..cell("", megabits, *draws.one(self.buffers), queue, flows) }
    }
}

fn tcp(control: &'static str, rtt_ms: u64) -> Flow {
    Flow { control, rtt_ms, is_l4s: false, is_ecn: false, kbps: 0 }
}

/// Round-trip times that a flow runs, at least.
const LENGTH: u64 = 360;

fn cell(kind: &'static str, megabits: u64, buffer: u64, queue: &str, flows: Vec<Flow>) -> Cell {
    let longest = flows.iter().map(|flow| flow.rtt_ms).max().filter(|longest| *longest > 0).unwrap_or(100);
    // Shared queues are of the mean round-trip time.
    let mean = (flows.iter().map(|flow| flow.rtt_ms).sum::<u64>() / flows.len() as u64).max(20);
    let packets = (megabits * 1_000 * mean * buffer / (100 * 1_500 * 8)).max(8);
    let mut scenario = format!(
        "duration = \"{}ms\"\n\n[link]\nrate = \"{megabits}mbps\"\ndelay = \"1ms\"\nlimit = \"{packets}packets\"\ndiscipline = {queue}\n",
        longest * LENGTH + 2_000
    );
    for flow in &flows {
        // Writing to a string does not fail.
        _ = match flow.control {
            "udp" => write!(scenario, "\n[[flows]]\nudp = {{ rate = \"{}kbps\" }}\nspread = \"1s\"\n", flow.kbps),
            control => write!(
                scenario,
                "\n[[flows]]\ntcp = \"{control}\"\nrtt = \"{}ms\"\nspread = \"1s\"\necn = {}\nl4s = {}\n",
                flow.rtt_ms,
                flow.is_ecn || flow.is_scalable(),
                flow.is_l4s
            ),
        };
    }
    let noise =
        format!("\n[[flows]]\nudp = {{ rate = \"{}kbps\", packet = \"100B\", spacing = \"poisson\" }}\n", 2 * megabits);
    Cell { kind, scenario: scenario + &noise, flows }
}

/// Random numbers (SplitMix64), of which a set's mixes are made.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn one<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}
