//! Figure 6 at its highest rate, with one thing changed at a time.

use super::{HEAVY, LIGHT, Size, constant, start, tcp};
use crate::outcome::Table;
use crate::results::{Point, Results};
use crate::study::Cell;

pub const CAUSES: &str = "figure-6-causes";

/// What is changed: how fast the switch reads in Mb/s, if that is changed; `[stack]`; the program's own lines; client
/// 1's congestion control.
struct Change {
    name: &'static str,
    reads: Option<u32>,
    stack: &'static str,
    program: &'static str,
    control: &'static str,
}

const NONE: Change = Change { name: "nothing", reads: None, stack: "", program: "", control: "cubic" };
const CHANGES: [Change; 7] = [
    NONE,
    Change { name: "no selective acknowledgements", stack: "[stack]\nsack = false\n", ..NONE },
    Change { name: "NewReno", control: "newreno", ..NONE },
    Change {
        name: "a register for the queue's length (section 5.1)",
        program: "queue-length = \"register\"\n",
        ..NONE
    },
    Change { name: "the switch reads 110 Mb/s at most", reads: Some(110), ..NONE },
    Change { name: "the switch reads 90 Mb/s at most", reads: Some(90), ..NONE },
    Change { name: "the switch reads 75 Mb/s at most", reads: Some(75), ..NONE },
];

/// A client at 80 Mb/s, and one with a single flow.
pub fn cells(size: Size, cells: &mut Vec<Cell>) {
    for seed in 1..=size.seeds {
        for change in &CHANGES {
            let parameters = vec![("changed", change.name.to_owned())];
            cells.push(Cell { figure: CAUSES, parameters, seed, scenario: change.scenario(size, seed) });
        }
    }
}

impl Change {
    /// What the switch cannot read is dropped before it, from both clients; 50 packets can wait.
    fn scenario(&self, size: Size, seed: u64) -> String {
        let Self { reads, stack, program, control, .. } = self;
        let [first, second] = [0, 1].map(|number| start(seed, number));
        let reads = reads.unwrap_or(1000);
        let light = tcp(1).replace("cubic", control);
        format!(
            "seed = {seed}\nduration = \"{}s\"\ntopology = \"graph\"\n\n[access]\nrate = \"100mbps\"\ndelay = \"2.5ms\"\n\n{stack}\n\
             [[meters]]\nlink = \"bottleneck\"\n\n[[wires]]\nname = \"reads\"\nfrom = \"left\"\nto = \"switch\"\nrate = \"{reads}mbps\"\n\
             delay = \"0ms\"\nlimit = \"50packets\"\n\n[[wires]]\nname = \"bottleneck\"\nfrom = \"switch\"\nto = \"right\"\n\
             rate = \"50040kbps\"\ndelay = \"5ms\"\nlimit = \"24packets\"\n[wires.pipeline.abc]\n{program}\n\
             [[flows]]\nname = \"client 0\"\nfrom = \"left\"\nto = \"right\"\nstart = \"{first}ms\"\n{}\n\
             [[flows]]\nname = \"client 1\"\nfrom = \"left\"\nto = \"right\"\nstart = \"{second}ms\"\n{light}",
            size.seconds,
            constant(80),
        )
    }
}

/// Both goodputs for each change.
pub fn table(results: &Results) -> Table {
    let row = |point: &Point| {
        let shown = |value| point.shown(value, 1);
        vec![point.parameter("changed").to_owned(), shown(HEAVY), shown(LIGHT)]
    };
    Table {
        title: "Figure 6: client 0 at 80 Mb/s, client 1 with one TCP flow, with one thing changed".to_owned(),
        columns: ["changed", "client 0 (Mb/s)", "client 1 (Mb/s)"].map(str::to_owned).into(),
        rows: results.of(CAUSES).map(row).collect(),
    }
}
