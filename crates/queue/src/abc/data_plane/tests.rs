//! How far the integers are from the real numbers, and what they are by hand.

use super::super::{ActivityAqm, RateMeter, activity};
use super::*;
use proptest::prelude::*;
use queuescope_wire::ByteCount;

/// The largest difference of activities between both meters, and that in the first second.
fn distance(packets: impl IntoIterator<Item = (u64, u16)>) -> [f64; 2] {
    let (params, exact) = (SwitchMeterParams::default(), MeterParams::default());
    let (mut meter, mut real) = (SwitchMeter::default(), RateMeter::default());
    let mut first = None;
    let differences = packets.into_iter().map(|(time, length)| {
        let is_new = time - *first.get_or_insert(time) < 1_000_000_000;
        let rate = real.record(ByteCount(length.into()), Nanos(time), &exact);
        (is_new, (meter.record(length, Nanos(time), &params).value() - activity(rate, params.reference)).abs())
    });
    differences.fold([0.0; 2], |[old, new], (is_new, it)| if is_new { [old, new.max(it)] } else { [old.max(it), new] })
}

#[test]
fn logarithms_are_those_of_the_table() {
    let mut next = 1u64;
    let mut worst = 0.0f64;
    for (low, high, log) in switch_log2_blocks() {
        assert_eq!(u64::from(low), next);
        // A block is a prefix: one entry of a ternary memory.
        let size = u64::from(high) - u64::from(low) + 1;
        assert!(size.is_power_of_two() && u64::from(low).is_multiple_of(size));
        for number in [low, low.midpoint(high), high] {
            assert_eq!(switch_log2(number), log, "{number}");
            worst = worst.max((f64::from(log) / 256.0 - f64::from(number).log2()).abs());
        }
        next = u64::from(high) + 1;
    }
    assert_eq!(next, 1 << 32);
    assert_eq!(switch_log2_blocks().count(), 255 + 24 * 128);
    assert_eq!((switch_log2(0), switch_log2(1), switch_log2(256), switch_log2(u32::MAX)), (0, 0, 2049, 8191));
    println!("the logarithm is off by at most {worst:.4}");
    // Half a step for rounding, and half a block of 1/128.
    assert!(worst < 0.5 / 256.0 + 0.5 / 128.0 * std::f64::consts::LOG2_E, "{worst}");
}

/// By hand: 100 bytes in window 0 of epoch 2, 200 in its window 3, and 300 in window 1 of epoch 3.
#[test]
fn sums_by_hand() {
    let params = SwitchMeterParams { least_time: Nanos(1), ..SwitchMeterParams::default() };
    let mut meter = SwitchMeter::default();
    let window = 1u64 << 31;
    let first = meter.record(100, Nanos(8 * window), &params);
    assert_eq!(meter.words(), [2, 100, 0, 1 << 20, 16 << 20]);
    // 800 bits in a tick of 2048 ns: log2(800 / 2.048e-6 / 1e4).
    assert!((first.value() - 39_062.5f64.log2()).abs() < 0.01, "{first:?}");
    meter.record(200, Nanos(11 * window + window / 2), &params);
    assert_eq!(meter.words(), [2, 1700, 0, 1 << 20, 16 << 20]);
    let last = meter.record(300, Nanos(13 * window), &params);
    assert_eq!(meter.words(), [3, 1700, 600, 1 << 20, 1 << 20]);
    // 600 + 1700 / 16 bytes of weight, in 1 + 15/16 windows of weight, of which the last counts 2.
    let bits = 8.0 * (600.0 + 106.25) / (window as f64 * 1e-9 * 1.9375);
    assert!((last.value() - (bits / 1e4).log2()).abs() < 0.01, "{last:?}");
    // After an epoch without a packet, it starts without history.
    let after_silence = meter.record(100, Nanos(20 * window), &params);
    assert_eq!((meter.words(), after_silence), ([5, 0, 100, 16 << 20, 1 << 20], first));
}

/// From the first packet on, whatever the phase of the windows. `docs/explanation/abc.md` has the number.
#[test]
fn constant_rates_are_those_of_the_real_meter() {
    let mut worst = [0.0f64; 2];
    for (gap, length) in [(300_000, 1500), (1_000_000, 64), (20_000, 1500), (6_000_000, 1000)] {
        for start in [34_359_738_368, 47_000_000_000, 51_539_000_000] {
            let here = distance((0..60_000_000_000 / gap).map(|n| (start + n * gap, length)));
            worst = [worst[0].max(here[0]), worst[1].max(here[1])];
        }
    }
    println!("constant rates: off by at most {:.4}, in the first second by {:.4}", worst[0], worst[1]);
    // Where the first window ends in the first 30 ms, what is divided by these has half its weight.
    assert!(worst[0] < 0.025 && worst[1] < 1.025, "{worst:?}");
}

/// Halving the weight at the end of a window is not an exponential decay: after a change of the rate, the activities
/// differ for some windows.
/// The clock of a switch starts at zero. Epochs of 8.6 s end at 8.6, 17.2 and 25.8 s.
#[test]
fn a_first_packet_is_measured_the_same_at_any_time() {
    let first = |milliseconds: u64| {
        let time = Nanos(milliseconds * 1_000_000);
        SwitchMeter::default().record(1250, time, &SwitchMeterParams::default())
    };
    for time in [0, 1, 1_000, 8_500, 8_600, 16_900, 17_200, 25_800] {
        let distance = (first(time).value() - first(40_000).value()).abs();
        assert!(distance < 0.01, "at {time} ms: {distance}");
    }
}

#[test]
fn changes_of_the_rate_are_followed() {
    let mut worst = 0.0f64;
    for phase in 0..16u64 {
        let start = 34_359_738_368 + phase * (1 << 29);
        // 40 Mb/s for 20 s, 4 Mb/s for 10 s, and again.
        let mut time = start;
        let packets = std::iter::from_fn(|| {
            let gap = if (time - start) / 10_000_000_000 % 3 == 2 { 3_000_000 } else { 300_000 };
            time += gap;
            (time - start < 90_000_000_000).then_some((time, 1500))
        });
        worst = worst.max(distance(packets)[0]);
    }
    println!("changes by a factor of ten: off by at most {worst:.3}");
    assert!(worst < 0.65, "{worst}");
}

/// The decisions of both AQMs for the packets of two senders, and the averages. The real one has the same memory at this
/// rate.
#[test]
fn averages_and_decisions_are_those_of_the_real_aqm() {
    for (average, bound, most) in [(SwitchAverage::MEAN, 0.05, 0.01), (SwitchAverage::MEDIAN, 0.3, 0.08)] {
        let params = SwitchAqmParams { average, ..SwitchAqmParams::default() };
        let exact = ActivityAqmParams { memory: Nanos(1024 * 240_000), ..ActivityAqmParams::default() };
        let (mut aqm, mut real) = (SwitchAqm::new(&params), ActivityAqm::default());
        let (mut random, mut different, mut worst) = (1u64, 0, 0.0f64);
        let packets = 200_000;
        for n in 0..packets {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let activity = Activity::nearest(
                if random >> 63 == 0 { 11.5 } else { 12.0 } + (random >> 40 & 0xff) as f64 / 1024.0,
                8,
            );
            let queue = (random >> 32 & 31).min(24);
            let expected = real.accepts(activity.value(), queue, &exact);
            if expected {
                real.accepted(activity.value(), Nanos(n * 240_000), &exact);
            }
            let accepted = aqm.accepts(activity, queue as u32, &params);
            if n > 20_000 {
                different += usize::from(accepted != expected);
                let [ours, its] =
                    [aqm.average(), real.average()].map(|average| average.expect("packets were accepted"));
                worst = worst.max((ours - its).abs());
            }
        }
        let share = different as f64 / packets as f64;
        println!("{average:?}: averages are off by at most {worst:.3}, decisions differ for {:.3} %", share * 100.0);
        assert!(worst < bound && share < most, "{average:?}: {worst}, {share}");
    }
}

#[test]
fn thresholds_are_the_papers() {
    let params = SwitchAqmParams::default();
    let average = Activity(11 * 256);
    for (activity, threshold) in [(11.0, 20), (11.5, 12), (12.0, 6), (99.0, 6), (10.0, 36)] {
        let aqm = SwitchAqm { average: above_lowest(average.0) };
        let accepts = |queue| aqm.clone().accepts(Activity::nearest(activity, 8), queue, &params);
        assert!(accepts(threshold) && !accepts(threshold + 1), "{activity}");
    }
    assert!(SwitchAqm::accepts_unmetered(20, &params) && !SwitchAqm::accepts_unmetered(21, &params));
    assert_eq!(SwitchAqmParams::nearest(&ActivityAqmParams::default()), Some(params));
    let odd = [(6.5, 20.0, 16.0), (6.0, 512.0, 16.0), (6.0, 20.0, 15.0), (6.0, 20.0, 2.0), (-1.0, 20.0, 16.0)];
    for (least, base, gamma) in odd {
        let params = ActivityAqmParams { least, base, gamma, ..ActivityAqmParams::default() };
        assert_eq!(SwitchAqmParams::nearest(&params), None, "{params:?}");
    }
}

#[test]
fn the_nearest_window_of_the_papers_memory_is_the_default() {
    let params = SwitchMeterParams::default();
    assert_eq!(SwitchMeterParams::nearest(&MeterParams::default(), params.reference), params);
    assert_eq!((params.tick(), params.least_ticks(), params.reference_steps()), (11, 14_648, -2204));
}

proptest! {
    /// Rates that change at random: the weights of both meters differ by a factor of at most about two.
    #[test]
    fn meters_are_close(packets in prop::collection::vec((1..400_000_000u64, 40..=1500u16), 1..400), start in 1u64 << 36..1 << 40) {
        let mut time = start;
        let packets = packets.into_iter().map(|(gap, length)| { time += gap; (time, length) });
        let [old, new] = distance(packets.collect::<Vec<_>>());
        prop_assert!(old < 1.0 && new < 1.025, "{old}, {new}");
    }

    /// A packet that is accepted would also be accepted by a shorter queue, or with less activity.
    #[test]
    fn the_less_active_is_accepted_where_the_more_active_is(
        [average, a, b] in prop::array::uniform3(any::<i16>()), queue in 0..600u32, median in any::<bool>()
    ) {
        let average_of = if median { SwitchAverage::MEDIAN } else { SwitchAverage::MEAN };
        let params = SwitchAqmParams { average: average_of, ..SwitchAqmParams::default() };
        let aqm = SwitchAqm { average: above_lowest(average) };
        let accepts = |activity, queue| aqm.clone().accepts(Activity(activity), queue, &params);
        prop_assert!(queue > 6 || accepts(a, queue));
        prop_assert!(!accepts(a.max(b), queue) || accepts(a.min(b), queue));
        prop_assert!(!accepts(a, queue + 1) || accepts(a, queue));
    }
}
