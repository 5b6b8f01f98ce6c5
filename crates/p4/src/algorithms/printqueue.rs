//! PrintQueue's two programs (Lei et al., SIGCOMM 2022): time windows, and the queue monitor.
//!
//! The published programs (for a Tofino, in P4_14) also do what these leave out:
//!
//! - Each register has four parts. The control plane reads one while packets write another, at fixed times, and also when a packet finds the queue
//!   longer than a threshold and sends a copy to the control plane (a *data-plane query*). Here, each register has one part, and the control plane reads it while packets write.
//! - Several ports have windows of their own, in one register. Here, one port is measured; a control plane chooses it.
//! - Departing packets carry their times to the receiver, to compare with exact results.

use crate::ir::{
    AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Comparison, Condition, Input, InvalidProgram,
    MatchTable, Operand, Operation, RegisterAction, RegisterArray, SwitchProgram, TableEntries, Unit, Variable, When,
};
use crate::{Aspect, Program};
use queuescope_sketch::{CellWindowsParams, DepthStackParams, PrintQueueError};

const WINDOWS: &str = "printqueue-windows";
const MONITOR: &str = "printqueue-monitor";
const SOURCE: &str =
    "Lei et al., PrintQueue: Performance Diagnosis via Queue Measurement in the Data Plane, SIGCOMM 2022";
/// The bits of a record's time.
const TIME_BITS: u32 = 32;

/// PrintQueue's time windows with their default dimensions, as steps.
pub fn printqueue_windows() -> Program {
    printqueue_windows_with(&CellWindowsParams::default(), 0).expect("the defaults fit").steps()
}

/// PrintQueue's queue monitor with its default dimensions, as steps.
pub fn printqueue_monitor() -> Program {
    printqueue_monitor_with(&DepthStackParams::default(), 0).expect("the defaults fit").steps()
}

/// PrintQueue's time windows of a port: behind the queue, each packet writes its time, addresses and ports into a cell, and evicted records move
/// to coarser windows.
///
/// Models [`CellWindows`](queuescope_sketch::CellWindows). A window takes one stage: since records keep their time in cells of window 0, the
/// entry in the next window is a slice of it, and so is the cycle that is compared. The published program shifts the time in between, and takes two.
///
/// # Errors
/// Names the dimension that is out of range, or the port.
pub fn printqueue_windows_with(params: &CellWindowsParams, port: u16) -> Result<SwitchProgram, InvalidProgram> {
    params.check().map_err(|error| invalid(WINDOWS, error))?;
    let about = "records which flows left the queue when, with fewer and fewer records of the past";
    let mut p = Builder::new(WINDOWS, about, SOURCE);
    let is_measured = is_measured(&mut p, WINDOWS, port)?;
    let dequeued = p.input(Input::Dequeued);
    let flow = FLOW.map(|(input, _)| p.input(input));
    p.comment("The time in cells of the first window.");
    let unit = Unit::Nanos { shift: params.cell_bits };
    let time = Operation::Gather(dequeued.slice(params.cell_bits, TIME_BITS), 0);
    let time = p.compute("time", TIME_BITS, unit, time);
    p.when(is_measured, |p| window(p, params, 0, Record { time, flow }));
    p.build()
}

/// PrintQueue's queue monitor of a port: for each level of the queue, the addresses and the number of the packet that last changed the queue to
/// it.
///
/// Models [`DepthStack`](queuescope_sketch::DepthStack). The depth is that at enqueuing. BMv2 counts packets instead of cells.
///
/// # Errors
/// Names the dimension that is out of range, or the port.
pub fn printqueue_monitor_with(params: &DepthStackParams, port: u16) -> Result<SwitchProgram, InvalidProgram> {
    params.check().map_err(|error| invalid(MONITOR, error))?;
    let about = "records which flow last brought the queue to each of its levels";
    let mut p = Builder::new(MONITOR, about, SOURCE);
    let is_measured = is_measured(&mut p, MONITOR, port)?;
    let depth = p.input(Input::Depth);
    let flow = [Input::Source, Input::Destination].map(|input| p.input(input));
    p.comment("The level that the packet found. A deeper queue is at the last level.");
    let steps = Operation::Copy(depth.slice(params.step_bits, Input::Depth.bits() - params.step_bits));
    let steps = p.compute("steps", 32, Unit::Cells, steps);
    let highest = u64::from(params.highest());
    let level = p.compute("level", 32, Unit::Cells, Operation::Minimum(steps.into(), highest.into()));
    p.when(is_measured, |p| stack(p, params, level, flow));
    p.build()
}

fn invalid(program: &'static str, error: PrintQueueError) -> InvalidProgram {
    let text = error.to_string();
    let why = text.strip_prefix(error.key).unwrap_or(&text);
    InvalidProgram::of_parameter(program, error.key, why.trim_start())
}

/// Whether a packet leaves by the port that is measured.
fn is_measured(p: &mut Builder, program: &'static str, measured: u16) -> Result<Condition, InvalidProgram> {
    let port = p.input(Input::Port);
    if measured >= 1 << Input::Port.bits() {
        let why = format!("must be 0 to {}, not {measured}", (1 << Input::Port.bits()) - 1);
        return Err(InvalidProgram::of_parameter(program, "port", &why));
    }
    p.of(Aspect::Metric);
    let chosen = p.variable("measured", Input::Port.bits(), Unit::Number);
    p.look_up(MatchTable {
        name: "parameters".into(),
        about: "The port that is measured".into(),
        keys: Vec::new(),
        entries: TableEntries::Exact(Vec::new()),
        results: vec![chosen],
        otherwise: vec![measured.into()],
    });
    Ok(Condition::compare(port, Comparison::Equal, chosen))
}

/// What identifies a flow, and the names of the registers with it.
const FLOW: [(Input, &str); 3] =
    [(Input::Source, "sources"), (Input::Destination, "destinations"), (Input::Ports, "flow_ports")];

/// What goes into a cell.
#[derive(Clone, Copy)]
struct Record {
    time: Variable,
    flow: [Variable; 3],
}

/// Puts a record into a window, and what it evicts into the next.
fn window(p: &mut Builder, params: &CellWindowsParams, number: u32, record: Record) {
    let shift = params.alpha * number;
    let is_last = number + 1 == params.windows;
    let unit = Unit::Nanos { shift: params.cell_bits };
    let index = record.time.slice(shift, params.index_bits);
    let mut exchange = |name: String, about: &str, unit, value: Variable| {
        let entries = 1 << params.index_bits;
        let about = format!("{about} of the records in window {number}").into();
        let register =
            p.register(RegisterArray { name: name.clone().into(), about, bits: 32, unit, entries, initial: 0 });
        let action = RegisterAction {
            name: format!("exchange_{name}").into(),
            conditions: Vec::new(),
            updates: vec![AluUpdate { when: When::Always, value: AluExpression::Term(AluTerm::Value(value.into())) }],
            output: if is_last { AluOutput::Nothing } else { AluOutput::Before },
        };
        let evicted = (!is_last).then(|| p.variable(format!("old_{name}"), 32, unit));
        p.access(register, index, action, evicted);
        evicted
    };
    let time = exchange(format!("times_{number}"), "The times", unit, record.time);
    let mut flow = FLOW.into_iter().zip(record.flow).map(|((input, name), value)| {
        let about = match input {
            Input::Source => "The source addresses",
            Input::Destination => "The destination addresses",
            _ => "The ports",
        };
        exchange(format!("{name}_{number}"), about, Unit::Number, value)
    });
    let flow = [flow.next(), flow.next(), flow.next()].map(Option::flatten);
    let (Some(time), [Some(source), Some(destination), Some(ports)]) = (time, flow) else { return };
    let cycle = 1u64 << (shift + params.index_bits);
    let before = Operation::Subtract(record.time.into(), cycle.into());
    let before = p.compute(format!("cycle_before_{number}"), TIME_BITS, unit, before);
    // The time 0 stands for an empty cell. The lowest bits are below the resolution of the window.
    let cell = |time: Variable| if shift == 0 { time.into() } else { time.slice(shift, TIME_BITS - shift) };
    let evicted = Record { time, flow: [source, destination, ports] };
    // One gateway does not compare 64 bits.
    p.when(Condition::compare(time, Comparison::NotEqual, 0), |p| {
        let is_one_cycle_older = Condition::compare(cell(time), Comparison::Equal, cell(before));
        p.when(is_one_cycle_older, |p| window(p, params, number + 1, evicted));
    });
}

/// Puts a packet on the stack, if it finds another level than the packet before it.
fn stack(p: &mut Builder, params: &DepthStackParams, level: Variable, [source, destination]: [Variable; 2]) {
    let mut register = |name: &'static str, about: &'static str, unit, entries, initial| {
        p.register(RegisterArray { name: name.into(), about: about.into(), bits: 32, unit, entries, initial })
    };
    let entries = 1 << params.level_bits;
    // No level is the initial value, so that the first packet finds another one.
    let top = register("top", "The level that the last packet found", Unit::Cells, 1, u32::MAX.into());
    let packets = register("packets", "The number of packets", Unit::Packets, 1, 0);
    let sources = register("sources", "The source address of the packet at each level", Unit::Number, entries, 0);
    let destinations =
        register("destinations", "The destination address of the packet at each level", Unit::Number, entries, 0);
    let numbers = register("numbers", "The number of the packet at each level", Unit::Packets, entries, 0);
    let value = |variable: Variable| AluTerm::Value(variable.into());
    let store = |name: &'static str, variable: Variable| RegisterAction {
        name: name.into(),
        conditions: Vec::new(),
        updates: vec![AluUpdate { when: When::Always, value: AluExpression::Term(value(variable)) }],
        output: AluOutput::Nothing,
    };
    let other = AluCondition {
        left: AluExpression::Term(AluTerm::Word),
        comparison: Comparison::NotEqual,
        right: value(level),
    };
    let change = RegisterAction {
        name: "change_top".into(),
        conditions: vec![other],
        updates: vec![AluUpdate { when: When::Holds(0), value: AluExpression::Term(value(level)) }],
        output: AluOutput::Condition(0),
    };
    let changes = p.variable("changes", 1, Unit::Number);
    p.access(top, 0, change, Some(changes));
    let count = RegisterAction {
        name: "count_packet".into(),
        conditions: Vec::new(),
        updates: vec![AluUpdate {
            when: When::Always,
            value: AluExpression::Add(AluTerm::Word, AluTerm::Value(1.into())),
        }],
        output: AluOutput::After,
    };
    let number = p.variable("number", 32, Unit::Packets);
    p.access(packets, 0, count, Some(number));
    p.when(Condition::compare(changes, Comparison::Equal, 1), |p| {
        let index: Operand = level.slice(0, params.level_bits);
        p.access(sources, index, store("store_source", source), None);
        p.access(destinations, index, store("store_destination", destination), None);
        p.access(numbers, index, store("store_number", number), None);
    });
}
