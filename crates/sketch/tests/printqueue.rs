//! PrintQueue's cells keep what the published program keeps, which shifts times from window to window.

use proptest::prelude::*;
use queuescope_sketch::{CellWindows, CellWindowsParams};
use queuescope_wire::Nanos;

/// The published form: each window has its own times, and the flow of each cell.
struct Shifted {
    params: CellWindowsParams,
    windows: Vec<Vec<(u32, u32)>>,
}

impl Shifted {
    fn record(&mut self, flow: u32, now: Nanos) {
        let cells = 1 << self.params.index_bits;
        let mut record = ((now.0 >> self.params.cell_bits) as u32, flow);
        for window in &mut self.windows {
            let evicted = std::mem::replace(&mut window[(record.0 % cells) as usize], record);
            if evicted.0 == 0 || record.0.wrapping_sub(cells) != evicted.0 {
                return;
            }
            record = (evicted.0 >> self.params.alpha, evicted.1);
        }
    }
}

fn params() -> impl Strategy<Value = CellWindowsParams> {
    (0u32..=12, 1u32..=6, 1u32..=4, 1u32..=5).prop_map(|(cell_bits, index_bits, alpha, windows)| CellWindowsParams {
        cell_bits,
        index_bits,
        alpha,
        windows,
    })
}

proptest! {
    /// Times are far from zero and from the end of 32 bits, so that none is taken for an empty cell and none wraps.
    #[test]
    fn evictions_are_those_of_the_published_program(
        params in params(),
        gaps in prop::collection::vec(0u64..4, 1..2_000),
        slow in 1u64..3,
    ) {
        let window = vec![(0, 0); 1 << params.index_bits];
        let mut published = Shifted { params, windows: vec![window; params.windows as usize] };
        let mut ours = CellWindows::new(params).expect("they are valid");
        let mut time = 1 << (params.cell_bits + 24);
        for (flow, gap) in (1..).zip(gaps) {
            time += (gap << params.cell_bits) / slow;
            ours.record(flow, Nanos(time));
            published.record(flow, Nanos(time));
        }
        for (number, window) in published.windows.iter().enumerate() {
            for (index, (time, flow)) in window.iter().enumerate() {
                let (ours, same_flow) = ours.cell(number, index).expect("it is there");
                prop_assert_eq!((ours >> (params.alpha * number as u32), same_flow), (*time, *flow));
            }
        }
    }
}
