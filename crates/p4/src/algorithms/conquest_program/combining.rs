//! How the counts of a flow become its part of the queue.

use crate::ir::{Builder, Operand, Operation, Unit, Variable};

/// Accesses to registers in a stage of a Tofino.
const ACCESSES: usize = 4;
/// The most counts that share a group of containers with a threshold and the difference from it.
const MOST_IN_A_GROUP: usize = 14;

/// The least over the rows of each snapshot, and the sum over the snapshots. Each result takes the variable of a value that it combines: the units of a
/// group of containers read that group only, and [`MOST_IN_A_GROUP`] counts leave no room for more.
pub(super) fn combine(p: &mut Builder, unit: Unit, counts: &[Vec<Variable>]) -> Variable {
    let (snapshots, rows) = (counts.len(), counts.first().map_or(0, Vec::len));
    p.comment("The least over the rows, and the sum over the snapshots, in place.");
    let by_snapshot = Combining::new(counts, |snapshot, row| (snapshot * rows + row) / ACCESSES);
    let by_row = Combining::new(counts, |snapshot, row| (row * snapshots + snapshot) / ACCESSES);
    let Combining { steps, sum, .. } = if by_row.stage < by_snapshot.stage { by_row } else { by_snapshot };
    for (one, operation) in steps {
        p.set(one, operation);
    }
    if snapshots * rows <= MOST_IN_A_GROUP {
        return sum;
    }
    p.comment(
        "The counts fill a group of containers. The sum leaves it, so that there is room for what it is compared with.",
    );
    p.compute("weight", 32, unit, Operation::Gather(sum.into(), 0))
}

/// In which order values are combined.
struct Combining {
    /// The results and how each is computed.
    steps: Vec<(Variable, Operation)>,
    /// The variable that has the sum.
    sum: Variable,
    /// The stage of the sum, counted from that of the first counts.
    stage: usize,
}

impl Combining {
    /// The two values that are known first are combined next, so that counts of late stages pass few others. `stage` is that of the count of a snapshot and a row.
    fn new(counts: &[Vec<Variable>], stage: impl Fn(usize, usize) -> usize) -> Self {
        let mut steps = Vec::new();
        let mut join = |mut values: Vec<(usize, Variable)>, operation: fn(Operand, Operand) -> Operation| {
            while values.len() > 1 {
                values.sort_by_key(|(stage, _)| *stage);
                let ((_, one), (stage, other)) = (values[0], values.remove(1));
                steps.push((one, operation(one.into(), other.into())));
                values[0].0 = stage + 1;
            }
            values[0]
        };
        let least = counts.iter().enumerate().map(|(snapshot, rows)| {
            let rows = rows.iter().enumerate().map(|(row, count)| (stage(snapshot, row), *count));
            join(rows.collect(), Operation::Minimum)
        });
        let least = least.collect();
        let (stage, sum) = join(least, Operation::AddSaturating);
        Self { steps, sum, stage }
    }
}
