//! PIE as a switch can run it (Kunze et al., section VI).

use super::pie::{drops_at_the_door, sampled};
use super::{PORTS, sojourn_time};
use crate::{Act, Aspect, Field, Gress, Match, Micro, Op, Packets, Program, Register};
use queuescope_queue::{PieDpParams, PieTable, PieTableParams};

/// PIE_CP: the control plane computes the probability.
///
/// Models [`PieCp`](queuescope_queue::PieCp): the part that handles packets. Its rounds run in the control plane.
pub fn pie_cp() -> Program {
    let mut program = Program::new("pie-cp", "PIE whose probability the control plane computes");
    let p = &mut program;
    drops_at_the_door(p);
    p.control_plane("drop_prob from delay", true);
    p.at(Gress::Egress).of(Aspect::Metric);
    let sojourn = sojourn_time(p);
    let delay = p.register("delay", 32, PORTS);
    p.write(delay, "delay of the last packet", &[sojourn]);
    program
}

/// PIE_DP: entirely in the data plane, with shifts for products, and without scaling and decay.
///
/// Models [`PieDp`](queuescope_queue::PieDp), step for step, except that generated packets draw no random number.
pub fn pie_dp() -> Program {
    let mut program = Program::new("pie-dp", "PIE in the data plane, with shifts for products");
    let p = &mut program;
    let (probability, delay) = measured(p);
    let (distance, change) = magnitudes(p, delay);
    let PieDpParams { alpha_shift, beta_shift, .. } = PieDpParams::default();
    let alpha = p.simple(&format!("|delay - target| << {alpha_shift}"), &[distance[0]], 32);
    let beta = p.simple(&format!("|delay - delay before| << {beta_shift}"), &[change[0]], 32);
    // If the signs differ, the smaller is subtracted from the larger.
    let larger = p.compare("which part is larger", &[alpha, beta]);
    let update = p.simple("sum or difference of both", &[alpha, beta, larger, distance[1], change[1]], 32);
    decided(p, probability, update);
    program
}

/// PIE_TABLE: PIE_DP with tables for the products.
///
/// Models [`PieTable`](queuescope_queue::PieTable), with its tables.
pub fn pie_table() -> Program {
    let mut program = Program::new("pie-table", "PIE in the data plane, with tables for products");
    let p = &mut program;
    let (probability, delay) = measured(p);
    let tables = PieTable::new(PieTableParams::default(), 1, 0);
    let tables = tables.table();
    let old = p.register("delay before", 16, PORTS);
    let distance = p.simple("delay - target", &[delay], 16);
    let old = p.write(old, "delay before, now delay", &[delay]);
    let change = p.simple("delay - delay before", &[delay, old], 16);
    // Keys are in two's complement of 16 bits.
    let of = |ranges: &[queuescope_queue::PieRange]| {
        let key = |value: i16| u64::from(value.cast_unsigned());
        Op::Table(Match::of_ranges(ranges.iter().map(|range| (key(range.low), key(range.high))), 16, 9))
    };
    let distance = p.compute("range of delay - target", of(tables.distance_ranges()), &[distance], 9);
    let change = p.compute("range of delay - delay before", of(tables.change_ranges()), &[change], 9);
    let entries = Match::Exact { entries: tables.size() as u64, key_bits: 18, value_bits: 33 };
    let update = p.compute("update by both ranges", Op::Table(entries), &[distance, change], 33);
    decided(p, probability, update);
    program
}

/// Behind the queue, traffic stores its delay, and generated packets read it: in units of 1024 ns, 16 bits.
fn measured(p: &mut Program) -> (Register, Field) {
    p.at(Gress::Egress).of(Aspect::Metric);
    let sojourn = sojourn_time(p);
    let sojourn = p.slice(sojourn, "sojourn / 1024", 16);
    let delay = sampled(p, sojourn, 16);
    (p.register("drop_prob", 32, PORTS), delay)
}

/// Both differences as magnitude and sign, so a comparison comes before the subtraction.
fn magnitudes(p: &mut Program, delay: Field) -> ([Field; 2], [Field; 2]) {
    let old = p.register("delay before", 16, PORTS);
    let above = p.compare("delay >= target", &[delay]);
    let distance = p.simple("|delay - target|", &[delay, above], 32);
    let old = p.write(old, "delay before, now delay", &[delay]);
    let grows = p.compare("delay >= delay before", &[delay, old]);
    let change = p.simple("|delay - delay before|", &[delay, old, grows], 32);
    ([distance, above], [change, grows])
}

/// Generated packets add the update to the probability, or subtract it. Traffic is dropped by the probability, with the
/// random number that was drawn for the previous packet.
fn decided(p: &mut Program, probability: Register, update: Field) {
    p.update(probability, "drop_prob +- update", &[Micro::Update], &[update]);
    p.by(Packets::Traffic);
    let read = p.read(probability, "drop_prob", &[]);
    let drawn = p.compute("random number", Op::Random, &[], 32);
    let kept = p.register("random number", 32, PORTS);
    let random = p.write(kept, "random number before, now this", &[drawn]);
    let chosen = p.compare("random < drop_prob", &[random, read]);
    p.act("drop", Act::Drop, &[chosen]);
}
