//! A sweep as text.

use crate::swept;

use queuescope_report::model::Sweep;
use queuescope_report::text;

fn written(sweep: &Sweep) -> String {
    let mut out = Vec::new();
    text::write_sweep(sweep, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    // Without styles.
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, style)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = style.split_once('m').expect("a style ends").1;
    }
    plain + rest
}

#[test]
fn each_combination_has_a_line_and_its_intervals_below() {
    let expected = "\
made up  sweep
   about  Rates and congestion controls.
   swept  link.rate: 10mbps, 2500kbps
          flows.0.tcp: cubic, bbr
   cells  12, of which 10 are here; 3 seeds from 5 on
          means over the seeds, ± half of the 95 % confidence interval (Student's t)
   queue  that of bottleneck; goodput and Jain's index are of all flows

    goodput    busy     delay     95 %     99 %  dropped   marked   Jain  link.rate  flows.0.tcp
  9.51 Mb/s  98.7 %   12.3 ms  24.7 ms  30.9 ms    1.2 %        -  0.913  10mbps     cubic
 ±12.3 kb/s  ±0.4 %  ±1.37 ms ±2.47 ms ±3.09 ms  ±0.040 %      ±0 ±0.050
";
    let text = written(&swept::sweep());
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&text)[..10], lines(expected)[..10], "{text}");
    assert!(text.contains("bbr  1 of 3 seeds\n"), "{text}");
    let (queue, flows) = text.split_once("\nFlow completion times\n").expect("flows end");
    // A combination with one cell has no interval.
    assert_eq!(queue.matches('±').count(), 1 + 8 + 8 + 7, "{queue}");
    assert_eq!(flows.lines().count(), 1 + 2 + 2 + 1 + 1, "{flows}");
    // If flows do not end there is nothing below either.
    assert!(flows.ends_with("         -         -         -         -  2500kbps   bbr  1 of 3 seeds\n"), "{flows}");
}

#[test]
fn no_name_reaches_the_terminal_with_control_characters() {
    let text = written(&swept::hostile());
    assert!(!text.contains(['\u{1b}', '\u{202e}']));
    assert_eq!(text.lines().count(), written(&swept::sweep()).lines().count() + 2, "a note, and a line before it");
}

#[test]
fn long_lists_are_shortened() {
    let mut sweep = swept::sweep();
    sweep.parameters[0].values = (0..20).map(|n| format!("{n}mbps")).collect();
    let text = written(&sweep);
    assert!(text.contains("link.rate: 0mbps, 1mbps, 2mbps, 3mbps, 4mbps, 5mbps, …, 19mbps\n"), "{text}");
}
