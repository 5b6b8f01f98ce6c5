//! Time windows: rings of cells.

use super::{PrintQueueError, within};
use queuescope_wire::Nanos;
use std::collections::BTreeMap;

/// Windows of cells: which flows left a queue, with fewer and fewer records of the distant past.
///
/// A window is a ring of 2^k cells. A cell of window i covers 2^(m0 + alpha i) ns of each cycle, and keeps the last packet of that time. Each
/// packet goes into its cell of window 0. The record that it evicts moves to the next window if it is exactly one cycle old there, and is lost
/// otherwise: it is then either of the same cell, or too old.
///
/// A record keeps its time in cells of window 0, modulo 2^32. PrintQueue shifts it right by alpha at each window, which gives the same
/// evictions, except where the shifted time wraps.
///
/// ```
/// use queuescope_sketch::{CellWindows, CellWindowsParams};
/// use queuescope_wire::Nanos;
///
/// let mut windows = CellWindows::new(CellWindowsParams::default())?;
/// // Flow 1 sends in the first 5 ms, and flow 2 thereafter: a packet for each cell.
/// for cell in 1..10_000_u64 {
///     windows.record(if cell < 4_883 { 1 } else { 2 }, Nanos(cell * 1024));
/// }
/// let passed = windows.passed(Nanos(2_000_000), Nanos(4_000_000), 1.0);
/// assert!((passed[&1] - 1953.0).abs() < 2.0);
/// # Ok::<(), queuescope_sketch::PrintQueueError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CellWindows<F> {
    params: CellWindowsParams,
    windows: Vec<Vec<(u32, F)>>,
    /// The cell of time of the last packet, counted from time zero.
    latest: u64,
}

/// The dimensions of [`CellWindows`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellWindowsParams {
    /// m0: a cell of window 0 covers 2^m0 ns. 0 to 16.
    pub cell_bits: u32,
    /// k: a window has 2^k cells. 1 to 16.
    pub index_bits: u32,
    /// A cell of a window covers 2^alpha cells of the window before it. 1 to 8.
    pub alpha: u32,
    /// T: the number of windows. 1 to 16, and at most 1 + (31 - k) / alpha, so that a time of 32 bits has a cycle in each.
    pub windows: u32,
}

/// Cells of 1 us, and four windows of 4096 cells with an alpha of 1, which reach back 63 ms at most. Versions of the published program differ: the
/// first cells have 64 ns or 1 us, and alpha is 1 or 2.
impl Default for CellWindowsParams {
    fn default() -> Self {
        Self { cell_bits: 10, index_bits: 12, alpha: 1, windows: 4 }
    }
}

impl CellWindowsParams {
    /// Checks the ranges.
    ///
    /// # Errors
    /// Names the first dimension that is out of range.
    pub fn check(&self) -> Result<(), PrintQueueError> {
        within("cell-bits", self.cell_bits, 0, 16)?;
        within("index-bits", self.index_bits, 1, 16)?;
        within("alpha", self.alpha, 1, 8)?;
        within("windows", self.windows, 1, (1 + (31 - self.index_bits) / self.alpha).min(16))
    }

    /// For each window, the probability that a packet's record has reached it.
    ///
    /// `z` is the probability, above 0, that a packet leaves during a cell of window 0. A record is evicted into the next window with the probability
    /// that the cell is used again in the next cycle, and is there the last of 2^alpha cells.
    pub fn coefficients(&self, z: f64) -> Vec<f64> {
        let merged = f64::from(1u32 << self.alpha);
        let (mut z, mut coefficient) = (z, 1.0);
        let next = |_| {
            let current = coefficient;
            // One of these cells has a record that moves on.
            let moves = 1.0 - (1.0 - z * z).powf(merged);
            coefficient *= moves / (merged * z);
            z = moves;
            current
        };
        (0..self.windows).map(next).collect()
    }

    /// How many times as long as a cell of window 0 a cell of a window is, as a power of two.
    fn shift(&self, window: usize) -> u32 {
        self.alpha * window as u32
    }

    /// The cell of a time in a window.
    fn index(&self, time: u32, window: usize) -> usize {
        (time >> self.shift(window)) as usize % (1 << self.index_bits)
    }

    /// Whether the cycle of one time in a window is the one before that of another.
    fn is_one_cycle_older(&self, old: u32, new: u32, window: usize) -> bool {
        let before = self.shift(window) + self.index_bits;
        let cycles = 1u32 << (32 - before);
        (new >> before).wrapping_sub(old >> before) % cycles == 1
    }
}

impl<F: Copy + Default + Ord> CellWindows<F> {
    /// Empty windows. The time 0 stands for an empty cell.
    ///
    /// # Errors
    /// Fails if a dimension is out of range.
    pub fn new(params: CellWindowsParams) -> Result<Self, PrintQueueError> {
        params.check()?;
        let window = vec![(0, F::default()); 1 << params.index_bits];
        Ok(Self { params, windows: vec![window; params.windows as usize], latest: 0 })
    }

    /// The windows of a switch, by the words of its registers: of each window, the time and the flow of each cell. They were read at `now`, at most
    /// 2^32 cells of window 0 after the last packet.
    ///
    /// # Errors
    /// Fails if a dimension is out of range, or if there are not as many windows and cells.
    pub fn from_cells(
        params: CellWindowsParams,
        windows: Vec<Vec<(u32, F)>>,
        now: Nanos,
    ) -> Result<Self, PrintQueueError> {
        params.check()?;
        within("number of windows", windows.len() as u32, params.windows, params.windows)?;
        let cells = 1 << params.index_bits;
        windows.iter().try_for_each(|window| within("number of cells", window.len() as u32, cells, cells))?;
        // The last packet is in window 0.
        let read = now.0 >> params.cell_bits;
        let used = windows.iter().take(1).flatten().filter(|(time, _)| *time != 0);
        let age = used.map(|(time, _)| (read as u32).wrapping_sub(*time)).min().unwrap_or(0);
        Ok(Self { params, latest: read.saturating_sub(age.into()), windows })
    }

    /// A packet of a flow leaves the queue.
    pub fn record(&mut self, flow: F, now: Nanos) {
        self.latest = now.0 >> self.params.cell_bits;
        let mut record = (self.latest as u32, flow);
        for (number, window) in self.windows.iter_mut().enumerate() {
            let index = self.params.index(record.0, number);
            let evicted = std::mem::replace(&mut window[index], record);
            let moves_on = evicted.0 != 0 && self.params.is_one_cycle_older(evicted.0, record.0, number);
            if !moves_on {
                return;
            }
            record = evicted;
        }
    }

    /// The record in a cell of a window: its time in cells of window 0, modulo 2^32, and its flow. The time 0 stands for an empty cell.
    pub fn cell(&self, window: usize, index: usize) -> Option<(u32, F)> {
        self.windows.get(window)?.get(index).copied()
    }

    /// The estimated number of packets of each flow that left in `[from, to)`, where `z` is the probability, above 0, that a packet leaves
    /// during a cell of window 0 while the queue is busy: the length of the cell divided by the time between packets, at most 1.
    ///
    /// Each window has the records of the time before that of the window before it. Their number is divided by the
    /// [probability](CellWindowsParams::coefficients) that a record is still there.
    pub fn passed(&self, from: Nanos, to: Nanos, z: f64) -> BTreeMap<F, f64> {
        let mut passed = BTreeMap::new();
        let latest = self.latest as u32;
        let length = 1u64 << self.params.cell_bits;
        // The age of the newest record that a window may have, in cells of window 0.
        let mut newest = 0;
        for (number, (window, coefficient)) in self.windows.iter().zip(self.params.coefficients(z)).enumerate() {
            let reach = 1u64 << (self.params.index_bits + self.params.shift(number));
            for (time, flow) in window.iter().filter(|(time, _)| *time != 0) {
                let age = u64::from(latest.wrapping_sub(*time));
                let middle = self.latest.saturating_sub(age) * length + length / 2;
                if (newest..newest + reach).contains(&age) && (from.0..to.0).contains(&middle) {
                    *passed.entry(*flow).or_default() += 1.0 / coefficient;
                }
            }
            newest += reach;
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of a window, by time.
    fn records(windows: &CellWindows<u32>, window: usize) -> Vec<(u32, u32)> {
        let mut records: Vec<_> = (0..).map_while(|index| windows.cell(window, index)).collect();
        records.retain(|(time, _)| *time != 0);
        records.sort_unstable();
        records
    }

    /// Two windows of two cells, of 1 and 2 ns.
    fn small() -> CellWindows<u32> {
        let params = CellWindowsParams { cell_bits: 0, index_bits: 1, alpha: 1, windows: 2 };
        CellWindows::new(params).expect("they are valid")
    }

    #[test]
    fn a_record_moves_on_if_it_is_one_cycle_old() {
        let mut windows = small();
        for (flow, time) in [(1, 4), (2, 5), (3, 6), (4, 7)] {
            windows.record(flow, Nanos(time));
        }
        assert_eq!(records(&windows, 0), [(6, 3), (7, 4)]);
        // The times 4 and 5 have one cell.
        assert_eq!(records(&windows, 1), [(5, 2)]);
        // In the same cell, the last packet stays, and the other is lost. So is one that is two cycles old.
        windows.record(5, Nanos(7));
        windows.record(6, Nanos(10));
        assert_eq!(records(&windows, 0), [(7, 5), (10, 6)]);
        assert_eq!(records(&windows, 1), [(5, 2)]);
    }

    #[test]
    fn times_wrap() {
        let mut windows = small();
        let start = (1 << 32) - 2;
        for (flow, time) in [(1, start), (2, start + 1), (3, start + 2), (4, start + 3)] {
            windows.record(flow, Nanos(time));
        }
        assert_eq!(records(&windows, 1), [(start as u32 + 1, 2)]);
        assert_eq!(windows.cell(0, 0), Some((0, 3)), "the time 0 stands for an empty cell");
    }

    #[test]
    fn each_window_has_its_newest_records() {
        let mut windows = small();
        (1..=100).for_each(|time| windows.record(time as u32, Nanos(time)));
        assert_eq!(records(&windows, 0), [(99, 99), (100, 100)]);
        assert_eq!(records(&windows, 1), [(97, 97), (98, 98)]);
    }

    /// With a packet in each cell, one of 2^alpha moves on at each window.
    #[test]
    fn coefficients_are_those_of_full_cells_and_less_if_cells_are_empty() {
        let params = CellWindowsParams { alpha: 2, windows: 3, ..CellWindowsParams::default() };
        assert_eq!(params.coefficients(1.0), [1.0, 0.25, 0.0625]);
        let sparse = params.coefficients(0.5);
        // 1 - (3/4)^4 of four cells move on, of the two that have a record.
        assert!((sparse[1] - (1.0 - 0.75f64.powi(4)) / 2.0).abs() < 1e-12 && sparse[2] < sparse[1], "{sparse:?}");
    }

    /// A packet leaves in a cell with probability z, three quarters of them of flow 1: the numbers of the past are close to the estimates, in each
    /// window.
    #[test]
    fn estimates_are_close_to_what_passed() {
        for (z, alpha) in [(1.0, 1), (0.8, 1), (0.6, 2)] {
            let params = CellWindowsParams { alpha, ..CellWindowsParams::default() };
            let mut windows = CellWindows::new(params).expect("they are valid");
            let mut random = 1u64;
            let mut next = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 11) as f64 / (1u64 << 53) as f64
            };
            let cells = 1_000_000u64;
            let mut passed = Vec::new();
            for cell in 1..=cells {
                if next() < z {
                    let flow = if next() < 0.75 { 1 } else { 2 };
                    windows.record(flow, Nanos(cell * 1024));
                    passed.push((cell, flow));
                }
            }
            let mut end = cells;
            for window in 0..4 {
                let reach = 4096 << (alpha * window);
                let (from, to) = (end - reach * 3 / 4, end - reach / 4);
                end -= reach;
                let estimates = windows.passed(Nanos(from * 1024), Nanos(to * 1024), z);
                for flow in [1, 2] {
                    let exact =
                        passed.iter().filter(|(cell, it)| (from..to).contains(cell) && *it == flow).count() as f64;
                    let ratio = estimates[&flow] / exact;
                    assert!((0.85..1.15).contains(&ratio), "z {z} window {window} flow {flow}: {ratio} of {exact}");
                }
            }
        }
    }

    #[test]
    fn words_of_a_switch_give_the_same_answers() {
        let params = CellWindowsParams { index_bits: 4, ..CellWindowsParams::default() };
        let mut windows = CellWindows::new(params).expect("they are valid");
        (1..1_000u64).for_each(|cell| windows.record(cell % 3, Nanos(5_000_000_000 + cell * 1024)));
        let cells = |window| (0..).map_while(|index| windows.cell(window, index)).collect::<Vec<_>>();
        let all: Vec<_> = (0..4).map(cells).collect();
        let read = Nanos(5_000_000_000 + 1_000_000 + 77_777_777);
        let again = CellWindows::from_cells(params, all.clone(), read).expect("they are complete");
        let [from, to] = [5_000_900_000, 5_001_010_000].map(Nanos);
        assert_eq!(again.passed(from, to, 1.0), windows.passed(from, to, 1.0));
        assert_eq!(again.passed(from, to, 1.0).len(), 3);
        let error = CellWindows::from_cells(params, all[..3].to_vec(), read).expect_err("one is missing");
        assert_eq!(error.to_string(), "number of windows must be 4, not 3");
    }

    #[test]
    fn dimensions_are_checked() {
        let usual = CellWindowsParams::default();
        for (params, text) in [
            (CellWindowsParams { cell_bits: 17, ..usual }, "cell-bits must be 0 to 16, not 17"),
            (CellWindowsParams { index_bits: 0, ..usual }, "index-bits must be 1 to 16, not 0"),
            (CellWindowsParams { alpha: 0, ..usual }, "alpha must be 1 to 8, not 0"),
            (CellWindowsParams { alpha: 8, ..usual }, "windows must be 1 to 3, not 4"),
            (CellWindowsParams { windows: 17, ..usual }, "windows must be 1 to 16, not 17"),
        ] {
            assert_eq!(params.check().expect_err("it is out of range").to_string(), text);
        }
    }
}
