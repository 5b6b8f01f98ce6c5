//! Windows over time of every algorithm in every profile, on one path with a buffer, as a table that must not change.
//!
//! An intended change updates the table: run with `--nocapture` and replace it with the printed one.

use crate::congestion::link::{Flow, Path};
use crate::congestion::{MILLISECOND, MSS, SECOND};
use queuescope_tcp::{Algorithm, CongestionControl, Controller, Profile};
use queuescope_wire::Nanos;
use std::fmt::Write;

/// 12 Mb/s with segments of 1000 bytes, 60 ms, and a buffer of one bandwidth-delay product. Algorithms that count marks
/// get them above a sixth of it.
const PATH: Path = Path { segment_time: 666_667, delay: 60 * MILLISECOND, buffer: 91, mark_above: None };

fn table() -> String {
    let mut text = String::new();
    for algorithm in Algorithm::ALL {
        for profile in Profile::ALL {
            let mut control = Controller::new(&algorithm.params(*profile), MSS as u32, 10 * MSS, 7);
            control.on_established(Some(Nanos(PATH.delay)), Nanos::ZERO);
            let mark_above = control.ecn().counts().then_some(15);
            let mut flow = Flow::new(control, Path { mark_above, ..PATH });
            write!(text, "{:8} {:8}", algorithm.name(), profile.name()).unwrap();
            for step in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128] {
                flow.run(step * 250 * MILLISECOND, |_| {});
                write!(text, " {:5.1}", flow.control.window() as f64 / MSS as f64).unwrap();
            }
            assert_eq!(flow.now, 32 * SECOND);
            writeln!(text, " {:6} {:4}", flow.delivered / MSS, flow.lost / MSS).unwrap();
        }
    }
    text
}

#[test]
fn windows_over_time_have_not_changed() {
    let (expected, now) = (include_str!("windows.txt"), table());
    let body: String = expected.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect();
    if body != now {
        println!("{now}");
    }
    for (line, (was, is)) in body.lines().zip(now.lines()).enumerate() {
        assert_eq!(was, is, "line {}", line + 1);
    }
    assert_eq!(body.lines().count(), now.lines().count());
}
