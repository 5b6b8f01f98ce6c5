//! The ConQuest snapshots (Chen et al., CoNEXT 2019, sections 3 and 4.1).

use crate::{Act, Aspect, Field, Gress, Micro, Op, Program};

/// Their dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshots {
    /// `h`: snapshots, of which one is written, one is cleaned, and the others are read. Three at least. Source: 4.
    pub snapshots: u32,
    /// `R`: rows of each. Source: 2.
    pub rows: u32,
    /// `C`: columns of a row. Source: 2048.
    pub columns: u64,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self { snapshots: 4, rows: 2, columns: 2048 }
    }
}

/// ConQuest behind the queue, with the mark for flows above a threshold (section 4.2).
///
/// Which snapshot is written, read or cleaned changes with time: each is reached once by each packet in any case, and the
/// sum may need any of them.
pub fn conquest(dimensions: Snapshots) -> Program {
    let mut program = Program::new("conquest", "marks flows that have too much of the queue");
    let p = &mut program;
    let Snapshots { snapshots, rows, columns } = dimensions;
    p.at(Gress::Egress).of(Aspect::Metric);
    let flow = p.header("five-tuple", 104);
    let left = p.queue_state("time of leaving the queue", 48);
    let size = p.header("length", 16);
    let window = p.slice(left, "window", 2);
    let indexes: Vec<_> =
        (0..rows).map(|row| p.compute(&format!("hash of row {}", row + 1), Op::Hash, &[flow], 16)).collect();
    let mut counts = Vec::new();
    for snapshot in 1..=snapshots {
        let of_rows: Vec<_> = (1..)
            .zip(&indexes)
            .map(|(row, index)| {
                let register = p.register(&format!("snapshot {snapshot} row {row}"), 32, columns);
                let name = format!("snapshot {snapshot} row {row}: add, read or clean");
                p.update(register, &name, &[Micro::Update], &[*index, window, size])
            })
            .collect();
        counts.push(of_rows);
    }
    // The least of the rows; of one row there is nothing to compare.
    let least: Vec<_> = counts
        .into_iter()
        .enumerate()
        .map(|(n, rows)| tree(p, rows, &format!("least of snapshot {}", n + 1)))
        .collect();
    let sum = sum_of_read(p, &least, window);
    p.of(Aspect::Reaction);
    let heavy = p.compare("bytes in the queue >= threshold", &[sum]);
    p.act("mark", Act::Mark, &[heavy]);
    program
}

/// The sum of all snapshots that are read. Which those are, the window says: so that the first sums may need any of them.
fn sum_of_read(p: &mut Program, counts: &[Field], window: Field) -> Field {
    let read = counts.len() - 2;
    let mut needs = counts.to_vec();
    needs.push(window);
    if read == 1 {
        return p.simple("the snapshot that is read", &needs, 32);
    }
    let pairs = (0..read.div_ceil(2)).map(|n| p.simple(&format!("sum of reads {}", n + 1), &needs, 32)).collect();
    tree(p, pairs, "sum")
}

/// All as one, two at a time.
fn tree(p: &mut Program, mut fields: Vec<Field>, name: &str) -> Field {
    while fields.len() > 1 {
        fields = fields.chunks(2).map(|two| if two.len() == 2 { p.simple(name, two, 32) } else { two[0] }).collect();
    }
    fields[0]
}
