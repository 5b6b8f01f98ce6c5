use super::*;
use queuescope_queue::{P4airParams, ShareForm};

/// The words of the registers hold what the parameters ask for.
#[test]
fn the_defaults_fit_their_words() {
    let P4airParams { fingerprint, share, delay_passes, .. } = P4airParams::default();
    assert!(fingerprint.loss_delay_after.max(fingerprint.loss_based_after) < 1 << 5);
    assert!(fingerprint.model_based_after < 1 << 3);
    assert!(fingerprint.period < 1 << 6);
    assert!(fingerprint.pulse < 1 << 2);
    // The old count of round trips since a decrease is compared: it must reach `settled`.
    assert!(fingerprint.settled < 1 << 2);
    assert!(delay_passes < 1 << 12);
    assert_eq!(share, ShareForm::Shift { sensitivity: 0 });
    assert!(fingerprint.default_rtt.0 >> 10 < 1 << 20);
}

/// In each range of flows, the shift of `P4air` is the same, and so is that with one flow more; in the next range, one of
/// them differs.
#[test]
fn ranges_of_flows_have_one_shift() {
    let packet_time = packet_time();
    let shifts = |flows: u64| [flows.max(1), flows + 1].map(|flows| (packet_time * flows).ilog2());
    let ranges = shift_ranges(12);
    assert_eq!((ranges[0].0, ranges[ranges.len() - 1].1), (0, (1 << 12) - 1));
    for (n, (first, last)) in ranges.iter().copied().enumerate() {
        assert!((first..=last).all(|flows| shifts(flows) == shifts(first)), "{first} to {last}");
        let next = ranges.get(n + 1).copied();
        assert!(next.is_none_or(|(next, _)| next == last + 1 && shifts(next) != shifts(last)));
    }
}
