//! PrintQueue's time windows and queue monitor.

use super::{Leaving, wandering};
use proptest::prelude::*;
use queuescope_p4::algorithms::{printqueue_monitor_with, printqueue_windows_with};
use queuescope_p4::ir::{Input, Interpreter};
use queuescope_sketch::{CellWindows, CellWindowsParams, DepthStack, DepthStackParams};
use queuescope_wire::Nanos;

/// The port that is measured. Three of four packets leave by it.
const PORT: u16 = 5;

/// Packets that follow more closely: 1 us apart on average.
fn close(seed: u64, count: usize) -> impl Iterator<Item = Leaving> {
    wandering(seed, count).map(|packet| {
        let port = if packet.port == 3 { 3 } else { PORT };
        Leaving { port, now: Nanos(10_000_000_000 + (packet.now.0 - 10_000_000_000) / 8), ..packet }
    })
}

/// How many packets show a difference, and how many records went from each window to the next. All words are compared at the end, and after
/// each packet those that it may have changed.
fn compare_windows(params: CellWindowsParams, packets: impl Iterator<Item = Leaving>) -> (usize, Vec<usize>) {
    let program = printqueue_windows_with(&params, PORT).expect("they fit");
    let mut interpreter = Interpreter::new(&program, 1 << params.index_bits);
    let mut rust = CellWindows::new(params).expect("they are valid");
    let windows = params.windows as usize;
    let (mut different, mut moved) = (0, vec![0; windows]);
    let words = |interpreter: &Interpreter<'_>, window: usize, index: usize| {
        [0, 1, 2, 3].map(|part| interpreter.words(window * 4 + part).expect("there are four registers")[index])
    };
    let same = |rust: &CellWindows<[u64; 3]>, interpreter: &Interpreter<'_>, window: usize, index: usize| {
        let (time, [source, destination, ports]) = rust.cell(window, index).expect("it is there");
        words(interpreter, window, index) == [u64::from(time), source, destination, ports]
    };
    for packet in packets {
        // The cells that the packet may change: its own, and those of the records that it evicts one after the other.
        let mut changed = Vec::new();
        let mut time = (packet.now.0 >> params.cell_bits) as u32;
        for window in 0..windows {
            let index = (time >> (params.alpha * window as u32)) as usize % (1 << params.index_bits);
            changed.push((index, rust.cell(window, index)));
            time = rust.cell(window, index).expect("it is there").0;
        }
        if packet.port == PORT {
            let flow = [Input::Source, Input::Destination, Input::Ports].map(|input| packet.input(input));
            rust.record(flow, packet.now);
        }
        let fate = interpreter.run(&|input| packet.input(input), &mut |_bits| 0);
        let is_same = changed.iter().enumerate().all(|(window, (index, before))| {
            moved[window] += usize::from(rust.cell(window, *index) != *before);
            same(&rust, &interpreter, window, *index)
        });
        different += usize::from(!is_same || fate.dropped || fate.marked);
    }
    for window in 0..windows {
        different += (0..1 << params.index_bits).filter(|index| !same(&rust, &interpreter, window, *index)).count();
    }
    (different, moved)
}

/// How many packets show a difference, and how many changed the stack.
fn compare_stack(params: DepthStackParams, packets: impl Iterator<Item = Leaving>) -> (usize, usize) {
    let program = printqueue_monitor_with(&params, PORT).expect("they fit");
    let mut interpreter = Interpreter::new(&program, 1 << params.level_bits);
    let mut rust = DepthStack::new(params).expect("they are valid");
    let (mut different, mut changes) = (0, 0);
    let same = |rust: &DepthStack<[u64; 2]>, interpreter: &Interpreter<'_>, level: usize| {
        let (number, [source, destination]) = rust.entry(level).expect("it is there");
        let words = [2, 3, 4].map(|register| interpreter.words(register).expect("there are five registers")[level]);
        words == [source, destination, number.into()]
    };
    for packet in packets {
        if packet.port == PORT {
            let before = rust.top();
            rust.record(
                [Input::Source, Input::Destination].map(|input| packet.input(input)),
                packet.input(Input::Depth) as u32,
            );
            changes += usize::from(rust.top() != before);
        }
        let fate = interpreter.run(&|input| packet.input(input), &mut |_bits| 0);
        let [top, packets] = [0, 1].map(|register| interpreter.words(register).expect("there are five registers")[0]);
        let is_same = top == u64::from(rust.top().unwrap_or(u32::MAX))
            && packets == u64::from(rust.packets())
            && rust.top().is_none_or(|top| same(&rust, &interpreter, top as usize));
        different += usize::from(!is_same || fate.dropped || fate.marked);
    }
    different += (0..1 << params.level_bits).filter(|level| !same(&rust, &interpreter, *level)).count();
    (different, changes)
}

#[test]
fn cells_are_those_of_the_rust_type() {
    for seed in 1..=3 {
        let (different, moved) = compare_windows(CellWindowsParams::default(), close(seed, crate::packets()));
        assert!(different == 0 && moved.iter().all(|count| *count > 1_000), "seed {seed}: {different}, {moved:?}");
    }
}

#[test]
fn the_stack_is_that_of_the_rust_type() {
    for seed in 1..=3 {
        let (different, changes) = compare_stack(DepthStackParams::default(), close(seed, crate::packets()));
        assert!(different == 0 && changes > 10_000, "seed {seed}: {different}, {changes}");
    }
}

/// The estimate for an interval of the past, by the words of the program's registers, is close to the number of packets that left.
#[test]
fn estimates_are_close_to_what_passed() {
    let params = CellWindowsParams { alpha: 2, ..CellWindowsParams::default() };
    let program = printqueue_windows_with(&params, PORT).expect("they fit");
    let mut interpreter = Interpreter::new(&program, 1 << params.index_bits);
    let packets: Vec<_> = close(1, 200_000).filter(|packet| packet.port == PORT).collect();
    for packet in &packets {
        interpreter.run(&|input| packet.input(input), &mut |_bits| 0);
    }
    let words = |register| interpreter.words(register).expect("there are four registers for each window").iter();
    let window = |number: usize| {
        words(number * 4).zip(words(number * 4 + 1)).map(|(time, source)| (*time as u32, *source)).collect()
    };
    let last = packets.last().expect("there are some").now.0;
    // From 15 ms to 5 ms before the last packet: in the second window.
    let [from, to] = [last - 15_000_000, last - 5_000_000].map(Nanos);
    let windows = (0..4).map(window).collect();
    let rust = CellWindows::from_cells(params, windows, Nanos(last)).expect("they are complete");
    let within: Vec<_> = packets.iter().filter(|packet| (from..to).contains(&packet.now)).collect();
    let passed = rust.passed(from, to, occupancy(&packets, params));
    for flow in [0, 1] {
        let exact = within.iter().filter(|packet| u64::from(packet.flow) == flow).count() as f64;
        let ratio = passed[&(0x0a00_0000 | flow)] / exact;
        assert!(exact > 1_000.0 && (0.8..1.2).contains(&ratio), "flow {flow}: {ratio} of {exact}");
    }
}

/// The share of the cells of the first window in which a packet left.
fn occupancy(packets: &[Leaving], params: CellWindowsParams) -> f64 {
    let mut cells: Vec<_> = packets.iter().map(|packet| packet.now.0 >> params.cell_bits).collect();
    let all = cells.last().zip(cells.first()).map_or(0, |(last, first)| last - first + 1);
    cells.dedup();
    cells.len() as f64 / all as f64
}

fn windows_params() -> impl Strategy<Value = CellWindowsParams> {
    let of = |(cell_bits, index_bits, alpha): (u32, u32, u32)| {
        let most = (1 + (31 - index_bits) / alpha).min(16);
        (1..=most).prop_map(move |windows| CellWindowsParams { cell_bits, index_bits, alpha, windows })
    };
    (0u32..=16, 1u32..=6, 1u32..=8).prop_flat_map(of)
}

proptest! {
    #[test]
    fn any_dimensions_give_the_same_cells(params in windows_params(), seed in any::<u64>()) {
        prop_assert_eq!(compare_windows(params, close(seed, 3_000)).0, 0);
    }

    #[test]
    fn any_dimensions_give_the_same_stack(step_bits in 0u32..=10, level_bits in 1u32..=8, seed in any::<u64>()) {
        prop_assert_eq!(compare_stack(DepthStackParams { step_bits, level_bits }, close(seed, 3_000)).0, 0);
    }

    /// Also where times of 32 bits wrap, at 2^(32 + m0) ns.
    #[test]
    fn times_wrap_in_both(params in windows_params(), seed in any::<u64>()) {
        let start = (1u64 << (32 + params.cell_bits)) - 1_500_000;
        let packets = close(seed, 3_000).map(|packet| Leaving { now: Nanos(start + packet.now.0 - 10_000_000_000), ..packet });
        prop_assert_eq!(compare_windows(params, packets).0, 0);
    }
}
