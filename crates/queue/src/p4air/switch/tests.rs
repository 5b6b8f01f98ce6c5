use super::registers::{FLOWS, ROOM};
use super::*;
use crate::{FlowTable, GroupActions, P4airParams};
use proptest::prelude::*;
use queuescope_sketch::FingerprintParams;
use queuescope_wire::Nanos;

/// A unit of time of the registers.
const TICK: u64 = 1 << 10;

fn params() -> SwitchP4airParams {
    let table = FlowTable::Hashed { entries: 1 << 7, seed: 0 };
    let p4air = P4airParams { queues: 8, table, ..P4airParams::default() };
    SwitchP4airParams { p4air, ..SwitchP4airParams::default() }
}

fn switch() -> SwitchP4air {
    SwitchP4air::new(params()).expect("a switch can have these")
}

fn data(flow: u32, ticks: u64) -> SwitchPacket {
    let tcp = Some(SwitchTcp { ack: true, ..SwitchTcp::default() });
    SwitchPacket {
        flow,
        reverse: flow + 1,
        arrived: Nanos(ticks * TICK),
        has_data: true,
        tcp,
        ..SwitchPacket::default()
    }
}

fn syn(flow: u32, ticks: u64) -> SwitchPacket {
    let tcp = Some(SwitchTcp { syn: true, ..SwitchTcp::default() });
    SwitchPacket { has_data: false, tcp, ..data(flow, ticks) }
}

/// A packet, and its copy if there is one, which comes back at once. Returns what happens to the packet, and its note.
fn pass(switch: &mut SwitchP4air, packet: SwitchPacket) -> (SwitchFate, SwitchNote) {
    let mut note = SwitchNote::default();
    let fate = switch.before_the_queue(&packet, &mut note, false);
    if fate.copied {
        come_back(switch, packet, note);
    }
    (fate, note)
}

/// A copy passes until it is consumed.
fn come_back(switch: &mut SwitchP4air, packet: SwitchPacket, mut note: SwitchNote) {
    while switch.before_the_queue(&packet, &mut note, true).recirculated {}
}

fn word(switch: &SwitchP4air, register: usize, index: usize) -> u32 {
    switch.words(register).expect("it is there")[index]
}

/// Puts a flow into a group, as copies do.
fn move_to(switch: &mut SwitchP4air, flow: u32, [from, to]: [u8; 2]) {
    let note = SwitchNote { entry: flow as u16, group: from, to, request: 1, queue: 0, ..SwitchNote::default() };
    come_back(switch, data(flow, 0), note);
}

#[test]
fn registers_are_in_their_places() {
    let names: Vec<_> = [RTT, QUEUE, FLOWS, ALL_FLOWS, NEWEST, BOUNDS, ROOM, GAINED, DEPTH, PULSES]
        .into_iter()
        .map(|place| SwitchRegister::ALL[place].name)
        .collect();
    let expected = [
        "round_trip_time",
        "flow_queue",
        "delay_based_flows",
        "long_lived_flows",
        "newest_flow",
        "first_loss_delay",
        "delay_based_room",
        "gained_takes",
        "depth",
        "pulses",
    ];
    assert_eq!(names, expected);
    let switch = switch();
    // Eight queues: two for short-lived flows, three for delay-based ones.
    assert_eq!([0, 1, 2].map(|bound| word(&switch, BOUNDS + bound, 5)), [5, 6, 7]);
    assert_eq!([0, 1, 2, 3].map(|group| word(&switch, ROOM + group, 5)), [2, 0, 0, 0], "less one");
    assert_eq!(word(&switch, RTT, 3), 97_656);
}

/// 1000 units from the SYN to the first packet of data; then each packet of data that comes a round trip later ends one.
#[test]
fn the_handshake_gives_the_round_trip_time() {
    let mut switch = switch();
    // Round trips go on where times wrap.
    let now = (1 << 32) - 1500;
    assert_eq!(pass(&mut switch, syn(9, now)).0.queue, Some(0));
    assert_eq!(word(&switch, RTT, 9), (now as u32) | 1 << 31);
    let rounds: Vec<_> = [1000, 1999, 2000, 2001, 3000]
        .into_iter()
        .map(|later| {
            let (_, note) = pass(&mut switch, data(9, now + later));
            (note.round, note.sent, note.before)
        })
        .collect();
    assert_eq!(word(&switch, RTT, 9), 1000);
    // The first packet ends an empty one.
    assert_eq!(rounds, [(2, 0, 0), (1, 2, 0), (2, 2, 0), (1, 2, 0), (2, 2, 2)]);
}

/// At 10 Gb/s, a packet of 1500 bytes takes 1200 ns, which the shift takes for 1024: the share of a flow alone is a packet for each unit.
#[test]
fn slow_start_ends_at_the_share() {
    let mut switch = switch();
    pass(&mut switch, syn(9, 0));
    pass(&mut switch, data(9, 4));
    let fates: Vec<_> = (0..3).map(|_| pass(&mut switch, data(9, 5))).collect();
    assert_eq!(
        fates.iter().map(|(fate, _)| (fate.dropped, fate.copied)).collect::<Vec<_>>(),
        [(false, false), (false, false), (true, true)]
    );
    assert_eq!(fates[0].0.queue, Some(1));
    assert_eq!(switch.group_and_queue(9), [1, 0]);
    assert_eq!((word(&switch, FLOWS, 0), word(&switch, ALL_FLOWS, 0), word(&switch, ROOM, 0)), (1, 1, 1));
    // A flow without TCP is not dropped.
    let mut other = |ticks| pass(&mut switch, SwitchPacket { tcp: None, ..data(40, ticks) }).0;
    let fates: Vec<_> = (0..97_656 / 2).map(|_| other(200_000)).collect();
    assert!(fates.iter().all(|fate| !fate.dropped && fate.queue == Some(0)), "{:?}", fates.last());
    assert_eq!(switch.group_and_queue(40), [1, 0]);
}

#[test]
fn slow_start_ends_when_a_flow_sends_less() {
    let mut switch = switch();
    pass(&mut switch, syn(9, 0));
    pass(&mut switch, data(9, 1000));
    for (round, packets) in [(1, 5), (2, 10), (3, 9)] {
        for _ in 0..packets {
            assert!(!pass(&mut switch, data(9, 1000 + round * 1000)).0.copied);
        }
    }
    let (fate, note) = pass(&mut switch, data(9, 5000));
    assert_eq!((fate.copied, fate.dropped, note.sent, note.before), (true, false, 9, 10));
    assert_eq!(switch.group_and_queue(9)[0], 1);
}

/// A flow without a queue gets one of its group by its hash, and is the newest one there until another comes.
#[test]
fn a_queue_is_written_by_a_copy() {
    let mut switch = switch();
    for flow in [0, 60, 127] {
        move_to(&mut switch, flow, [0, 1]);
        let (fate, note) = pass(&mut switch, data(flow, 1));
        // Three queues from 2 on; 60 is 0.47 of 128.
        let queue = 2 + (3 * flow / 128) as u8;
        assert_eq!((fate.queue, fate.copied, note.request, note.to), (Some(queue), true, 2, queue));
        assert_eq!(switch.group_and_queue(flow), [1, queue]);
        let (fate, note) = pass(&mut switch, data(flow, 2));
        assert_eq!((fate.queue, fate.copied, note.is_newest), (Some(queue), false, 1));
    }
    move_to(&mut switch, 61, [0, 1]);
    pass(&mut switch, data(61, 1));
    assert_eq!((pass(&mut switch, data(61, 2)).1.is_newest, pass(&mut switch, data(60, 2)).1.is_newest), (1, 0));
    // It leaves, and the next packet's flow is the newest.
    let note = SwitchNote { entry: 61, group: 1, to: 2, queue: 3, request: 1, ..SwitchNote::default() };
    come_back(&mut switch, data(61, 3), note);
    assert_eq!(pass(&mut switch, data(60, 4)).1.is_newest, 1);
}

/// The fourth flow that becomes loss-delay has no room there: a queue moves from the delay-based ones, and flows take it until it has as
/// many as the others.
#[test]
fn a_full_group_gains_a_queue() {
    let mut switch = switch();
    move_to(&mut switch, 1, [0, 1]);
    move_to(&mut switch, 1, [1, 2]);
    // Delay-based flows have room for three in three queues, and loss-delay ones for none in one.
    assert_eq!([0, 1, 2].map(|bound| word(&switch, BOUNDS + bound, 0)), [4, 6, 7]);
    assert_eq!([0, 1, 2, 3].map(|group| word(&switch, ROOM + group, 0)), [1, 0, 0, 0]);
    assert_eq!(word(&switch, GAINED, 2), 2, "one flow, to the first queue of the group");
    let (fate, note) = pass(&mut switch, data(1, 1));
    assert_eq!((fate.copied, note.request, note.to, switch.group_and_queue(1)), (true, 3, 4, [2, 4]));
    assert_eq!(word(&switch, GAINED, 2), 0);
    // The other way round, it is the last one.
    for flow in 2..5 {
        move_to(&mut switch, flow, [0, 1]);
    }
    assert_eq!(word(&switch, ROOM, 0).cast_signed(), -2, "no group has room for more than a queue");
    let mut moved = switch.clone();
    moved.words[ROOM + 1][0] = 1;
    move_to(&mut moved, 5, [0, 1]);
    assert_eq!([0, 1, 2].map(|bound| word(&moved, BOUNDS + bound, 0)), [5, 6, 7]);
    assert_eq!([0, 1].map(|group| word(&moved, ROOM + group, 0).cast_signed()), [-2, 0]);
    assert_eq!(word(&moved, GAINED, 1), 3, "to the last queue");
}

/// With eight queues and eight flows, each takes one flow more: rooms grow by the queues of their group.
#[test]
fn each_queue_takes_more_when_flows_exceed_the_queues() {
    let mut switch = switch();
    for flow in 0..7 {
        move_to(&mut switch, flow, [0, 1]);
    }
    assert_eq!(word(&switch, ROOM, 0).cast_signed(), 2 - 7);
    move_to(&mut switch, 7, [0, 1]);
    assert_eq!([0, 1, 2, 3].map(|group| word(&switch, ROOM + group, 0).cast_signed()), [2 - 8 + 3, 1, 1, 1]);
    // And less when the control plane removes them.
    let words = switch.words.clone();
    move_to(&mut switch, 8, [0, 1]);
    assert!(switch.remove(0, 8) && !switch.remove(0, 8));
    assert_eq!(switch.words, words);
    assert!(switch.remove(0, 7));
    assert_eq!([0, 1, 2, 3].map(|group| word(&switch, ROOM + group, 0).cast_signed()), [2 - 7, 0, 0, 0]);
    assert_eq!((word(&switch, FLOWS, 0), word(&switch, ALL_FLOWS, 0)), (7, 7));
}

fn above(group: u8) -> (SwitchP4air, Vec<SwitchFate>) {
    let mut switch = switch();
    pass(&mut switch, syn(9, 0));
    pass(&mut switch, data(9, 2));
    move_to(&mut switch, 9, [0, group]);
    pass(&mut switch, data(9, 4));
    let fates = (0..3).map(|_| pass(&mut switch, data(9, 4)).0).collect();
    (switch, fates)
}

#[test]
fn packets_above_the_share_are_dropped_or_delayed() {
    // A share of two packets.
    for (group, expected) in
        [(1, [(false, true); 2]), (2, [(true, false); 2]), (3, [(true, false); 2]), (4, [(false, false); 2])]
    {
        let (switch, fates) = above(group);
        assert_eq!((fates[0].dropped, fates[0].recirculated), (false, false), "{group}");
        let acts = [1, 2].map(|packet: usize| (fates[packet].dropped, fates[packet].recirculated));
        assert_eq!(acts, expected, "{group}");
        assert_eq!(word(&switch, ABOVE, 9), 1);
    }
    let mut idle = SwitchP4air::new(SwitchP4airParams {
        p4air: P4airParams { actions: GroupActions::IDLE, ..params().p4air },
        ..params()
    })
    .expect("a switch can have these");
    move_to(&mut idle, 9, [0, 2]);
    assert!((0..9).all(|_| !pass(&mut idle, data(9, 4)).0.dropped));
}

/// It comes again eight times.
#[test]
fn a_delayed_packet_enters_its_queue_in_the_end() {
    let (mut switch, _) = above(1);
    let mut note = SwitchNote::default();
    let first = switch.before_the_queue(&data(9, 4), &mut note, false);
    assert!(first.recirculated);
    let fates: Vec<_> = (0..8).map(|_| switch.before_the_queue(&data(9, 4), &mut note, true)).collect();
    assert!(fates[..7].iter().all(|fate| fate.recirculated && fate.queue.is_none()));
    assert_eq!((fates[7].recirculated, fates[7].queue), (false, Some(note.queue)));
}

/// An ACK leaves by another port than data. Two packets and a half are 3840 bytes, in units of 128 bytes.
#[test]
fn the_window_is_lowered_to_the_share() {
    let (mut switch, _) = above(4);
    let ack = |window| {
        let tcp = Some(SwitchTcp { ack: true, window, syn: false });
        SwitchPacket { flow: 10, reverse: 9, port: 6, has_data: false, tcp, ..data(9, 5) }
    };
    // The share of two packets is 3072 bytes.
    let windows = [23, 24, 25, 65_535].map(|window| pass(&mut switch, ack(window)).0.window);
    assert_eq!(windows, [None, None, Some(24), Some(24)]);
    // The round trip ends.
    pass(&mut switch, data(9, 50));
    assert_eq!(pass(&mut switch, ack(500)).0.window, None);
    // Others keep theirs, and at least 2896 bytes are written.
    let (mut other, _) = above(3);
    assert_eq!(pass(&mut other, ack(65_535)).0, enqueue(1));
    other.words[RTT][9] = 1;
    other.words[GROUP][9] = 4;
    assert_eq!(pass(&mut other, ack(65_535)).0.window, Some(23));
}

/// Four round trips in a row with a deeper queue, of the newest flow; twelve more.
#[test]
fn a_flow_whose_queue_grows_moves_on() {
    let mut switch = switch();
    let round = |switch: &mut SwitchP4air, group, depth, sent| {
        let note = SwitchNote { entry: 9, round: 1, group, is_newest: 1, ..SwitchNote::default() };
        assert!(!switch.behind_the_queue(depth, &mut note.clone()));
        let mut note = SwitchNote { round: 2, sent, before: 100, ..note };
        switch.behind_the_queue(0, &mut note).then_some(note.to)
    };
    let depths: Vec<u32> = (1..=4).map(|round| round * 20).collect();
    let found: Vec<_> = depths.iter().map(|depth| round(&mut switch, 1, *depth, 100)).collect();
    assert_eq!(found, [None, None, None, Some(2)]);
    assert_eq!(word(&switch, AGGRESSIVENESS, 9), 0);
    let found: Vec<_> = (5..=16).map(|depth| round(&mut switch, 2, depth * 20, 10)).collect();
    assert!(found[..11].iter().all(Option::is_none) && found[11] == Some(3));
    // Less than a 128th is no growth, and neither is a delay-based flow's that sends less than seven eighths.
    round(&mut switch, 1, 1280, 100);
    assert_eq!(word(&switch, AGGRESSIVENESS, 9), 1);
    for (depth, sent, expected) in [(1290, 100, 0), (1301, 100, 1), (1400, 88, 2), (1500, 87, 0)] {
        round(&mut switch, 1, depth, sent);
        assert_eq!(word(&switch, AGGRESSIVENESS, 9), expected, "{depth}, {sent}");
    }
    // A mouse forgets it.
    switch.behind_the_queue(7, &mut SwitchNote { entry: 9, round: 1, ..SwitchNote::default() });
    assert_eq!([DEPTH, DEPTH_BEFORE, SINCE_DECREASE].map(|register| word(&switch, register, 9)), [0; 3]);
}

/// A cycle of BBR: six round trips at 100 packets, one at 125, one at 75.
#[test]
fn pulses_make_a_flow_model_based() {
    let mut switch = switch();
    let rates = [100, 100, 100, 100, 100, 100, 125, 75].into_iter().cycle();
    let pairs = rates.clone().zip(rates.skip(1)).take(64);
    let moves: Vec<_> = pairs
        .enumerate()
        .filter_map(|(place, (before, sent))| {
            let mut note = SwitchNote { entry: 9, round: 2, group: 1, sent, before, ..SwitchNote::default() };
            switch.behind_the_queue(0, &mut note).then_some((place, note.to))
        })
        .collect();
    assert_eq!(moves[0], (6 + 3 * 8, 4), "with the fourth decrease");
    let params = FingerprintParams::default();
    assert_eq!(word(&switch, PERIOD_LEFT, 9), u32::from(params.period) - 1);
}

#[test]
fn parameters_that_a_switch_cannot_have_are_named() {
    let text = |p4air: P4airParams| {
        SwitchP4air::new(SwitchP4airParams { p4air, ..params() }).map(|_| ()).map_err(|why| why.to_string())
    };
    assert_eq!(text(params().p4air), Ok(()));
    let queues = text(P4airParams { queues: 12, ..params().p4air });
    assert_eq!(
        queues.unwrap_err(),
        "P4air on a switch: queues must be 8, 16 or 32: a switch divides by slices of bits"
    );
    let flows = text(P4airParams { table: FlowTable::Exact, ..params().p4air });
    assert!(flows.unwrap_err().contains("table.hashed.entries must be a power of two"));
}

proptest! {
    /// Notes of another program, or of one with other parameters, never panic.
    #[test]
    fn any_note_is_taken(
        notes in prop::collection::vec((any::<[u16; 4]>(), any::<[u8; 8]>(), 0u8..6, 0u32..300, any::<bool>()), 1..40)
    ) {
        let mut switch = switch();
        for (wide, narrow, request, depth, is_small) in notes {
            // Half of them have groups and entries that there are.
            let small = |value: u8| if is_small { value % 5 } else { value };
            let [entry, sent, before, each] = wide;
            let [round, group, queue, is_newest, to, giver, passes, _] = narrow;
            let entry = if is_small { entry % 128 } else { entry };
            let (group, to, giver) = (small(group), small(to), small(giver));
            let round = round % 3;
            let mut note =
                SwitchNote { entry, sent, before, each, round, group, queue, is_newest, request, to, giver, passes };
            switch.behind_the_queue(depth, &mut note.clone());
            switch.before_the_queue(&data(7, u64::from(depth)), &mut note, true);
            switch.before_the_queue(&data(7, u64::from(depth)), &mut SwitchNote::default(), false);
        }
    }
}
