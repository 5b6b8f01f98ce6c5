//! PIE_TABLE: PIE in the data plane, with tables for products (Kunze et al., section VI.D).

use super::pie_data_plane::{Change, UNITS, check_target, pie_in_the_data_plane};
use crate::Program;
use crate::ir::{Builder, InvalidProgram, MatchTable, Operation, SwitchProgram, TableEntries, Unit, Variable};
use queuescope_queue::{PieDp, PieDpParams, PieRange, PieTable, PieTableLayout, PieTableParams, Trend};

/// PIE_TABLE with its default parameters, as steps.
pub fn pie_table() -> Program {
    pie_table_with(&PieTableParams::default()).expect("the default parameters fit").steps()
}

/// PIE_TABLE: [PIE_DP](super::pie_dp_with) with tables for the products: two map the distance of the delay to its target, and its change, to
/// numbered ranges; the third maps both numbers to the step.
///
/// Models [`PieTable`], with its tables.
///
/// # Errors
/// Fails if a parameter does not fit its register.
pub fn pie_table_with(params: &PieTableParams) -> Result<SwitchProgram, InvalidProgram> {
    check_target("pie-table", params.target)?;
    let source = "Kunze et al., Tofino + P4, IM 2021, section VI.D (PIE_TABLE)";
    let p = Builder::new("pie-table", "PIE in the data plane, with tables for products", source);
    pie_in_the_data_plane(p, (params.act, params.update), |p, delays, amount| step(p, params, delays, amount))
}

/// The step of the probability.
fn step(p: &mut Builder, params: &PieTableParams, [delay, before]: [Variable; 2], amount: Variable) -> Change {
    let tables = PieTable::new(*params, 1, 0);
    let tables = tables.table();
    p.comment("The register's unit of 1024 ns counts as a microsecond.");
    let target = PieDp::new(PieDpParams { target: params.target, ..PieDpParams::default() }, 1, 0).target_register();
    let difference = Operation::Subtract(delay.into(), u64::from(target).into());
    let distance = p.compute("distance", 16, UNITS, difference);
    let (new, old) = match params.trend {
        Trend::AsStated => (delay, before),
        Trend::AsPublished => (before, delay),
    };
    let change = p.compute("change", 16, UNITS, Operation::Subtract(new.into(), old.into()));
    let (ranges, changes) = (tables.distance_ranges(), tables.change_ranges());
    let about = "The range of the distance to the target, in two's complement";
    let row = range(p, ["distance_range", "row"], about, distance, ranges, params.layout);
    let about = "The range of the change, in two's complement";
    let column = range(p, ["change_range", "column"], about, change, changes, params.layout);
    let up = p.variable("up", 1, Unit::Number);
    let entries = tables.entries().map(|(row, column, step)| {
        (vec![row as u64, column as u64], vec![u64::from(step.change), u64::from(step.increase)])
    });
    p.look_up(MatchTable {
        name: "steps".into(),
        about: "The step of the probability for both ranges, and whether it is upwards".into(),
        keys: vec![row.into(), column.into()],
        entries: TableEntries::Exact(entries.collect()),
        results: vec![amount, up],
        otherwise: vec![0, 0],
    });
    Change { down: amount, is_up: (up, 1) }
}

/// The number of the range that a difference is in. As stated in the paper, the outermost ranges reach to the ends of 16 bits. In the published
/// tables, what is outside of all ranges counts as the first.
fn range(
    p: &mut Builder,
    names: [&'static str; 2],
    about: &'static str,
    difference: Variable,
    ranges: &[PieRange],
    layout: PieTableLayout,
) -> Variable {
    let last = ranges.len().saturating_sub(1);
    let number = p.variable(names[1], last.max(1).ilog2() + 1, Unit::Number);
    let reaches_out = layout == PieTableLayout::AsStated;
    let ends = |(number, range): (usize, &PieRange)| {
        let low = if reaches_out && number == 0 { i16::MIN } else { range.low };
        let high = if reaches_out && number == last { i16::MAX } else { range.high };
        // As unsigned numbers, the negative ones come last, so that a range with numbers of both signs is two.
        let parts = if low < 0 && high >= 0 { vec![(low, -1), (0, high)] } else { vec![(low, high)] };
        parts.into_iter().map(move |(low, high)| (low, high, number as u64))
    };
    let mut entries: Vec<_> = ranges
        .iter()
        .enumerate()
        .flat_map(ends)
        .map(|(low, high, number)| ((u64::from(low.cast_unsigned()), u64::from(high.cast_unsigned())), vec![number]))
        .collect();
    entries.sort_unstable();
    p.look_up(MatchTable {
        name: names[0].into(),
        about: about.into(),
        keys: vec![difference.into()],
        entries: TableEntries::Ranges(entries),
        results: vec![number],
        otherwise: vec![0],
    });
    number
}
