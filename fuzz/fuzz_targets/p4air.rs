//! Runs P4air on a small switch with any parameters and any TCP headers: floods of SYN, FIN and RST, packets without
//! data, ACKs of unknown flows, clocks that stand still and jump.
//!
//! Each packet is sent or dropped once. The groups count the flows that are in them, their queues are disjoint, and all
//! flows end after a silence. A window is only lowered, and nothing else in a header changes.
//!
//! The first [`PARAMS`] bytes are the parameters, and each following [`PACKET`] bytes are a packet. Missing bytes are 0.

#![no_main]

#[allow(dead_code, reason = "the driver of the tests of switch programs, which has a program of its own to test it")]
#[path = "../../crates/queue/tests/pipelines/driver.rs"]
mod driver;

use driver::{Switch, headers, outlets, packet};
use libfuzzer_sys::fuzz_target;
use queuescope_queue::{
    ActEvery, ActOn, Assignment, DropReason, FlowAction, FlowTable, GroupActions, Headers, Limit, Newest, P4air,
    P4airParams, Pipeline, Port, Queueing, RttFilter, RttSource, ShareForm, Start, TailDropParams,
};
use queuescope_sketch::{FingerprintParams, FlowGroup, RatePattern, Rise};
use queuescope_tcp::{Flags, Segment};
use queuescope_wire::{ByteCount, Class, FlowId, Nanos};
use std::collections::BTreeMap;

/// Bytes of the parameters, and of a packet.
const PARAMS: usize = 32;
const PACKET: usize = 16;

/// The most passes of recirculation in a run.
const PASSES: usize = 20_000;

/// The clock of the flow table wraps after this time, 73 minutes.
const WRAP: u64 = 1 << 42;

fuzz_target!(|data: &[u8]| {
    let (params, packets) = data.split_at(data.len().min(PARAMS));
    let Setup { params, rates, recirculation } = Setup::from_bytes(params);
    let mut numbers = outlets(&rates, 1);
    let program = P4air::new(params.clone(), &numbers).expect("the ports exist");
    let queues = program.queues(params.queue.limit).queues.get();
    for (port, outlet) in (0..).zip(&mut numbers) {
        outlet.queue.0 = port * queues;
    }
    let mut switch = Switch::new(program, &numbers, queues, params.queue.limit, recirculation);
    let mut offered = Vec::new();
    let mut now = 0;
    let most = PASSES / usize::from(params.delay_passes.max(1));
    for bytes in packets.chunks(PACKET).take(most) {
        let arrival = Arrival::from_bytes(bytes, rates.len());
        now += arrival.later;
        switch.offer(
            Nanos(now),
            arrival.port,
            packet(offered.len() as u64, arrival.flow, arrival.size),
            arrival.headers,
        );
        offered.push(arrival);
        // Half-way, packets are still in queues.
        if arrival.pause {
            switch.run_until(Nanos(now));
            switch.check();
            check_groups(&switch.program, &params);
        }
    }
    switch.run_out();
    check_groups(&switch.program, &params);
    check_headers(&switch, &params, &offered);
    if params.idle.0 < WRAP / 4 {
        let silence = 4 * params.idle.0.max(1 << 11);
        let end = switch.log.sent.iter().map(|sent| sent.departure.dequeued.0).max().unwrap_or(0).max(now);
        switch.run_until(Nanos(end + silence));
        assert_eq!(switch.program.next_timer(), None, "all flows have ended");
        for (port, group) in managed(&params) {
            assert_eq!(switch.program.queues_of(port, group).map(|(_, flows)| flows), Some(0));
        }
    }
});

/// Each managed port with each group of long-lived flows.
fn managed(params: &P4airParams) -> impl Iterator<Item = (Port, FlowGroup)> {
    params.ports.iter().flat_map(|port| FlowGroup::LONG_LIVED.map(|group| (*port, group)))
}

/// The groups divide the queues behind the first two, and count the flows that are in them.
fn check_groups(program: &P4air, params: &P4airParams) {
    let mut counted: BTreeMap<FlowGroup, u32> = BTreeMap::new();
    for port in &params.ports {
        let mut next = 2;
        for group in FlowGroup::LONG_LIVED {
            let (queues, flows) = program.queues_of(*port, group).expect("a managed port has all groups");
            if params.queueing == Queueing::Divided {
                assert!(queues.start == next && !queues.is_empty(), "{queues:?} of {group:?} follow {next}");
            }
            next = queues.end;
            *counted.entry(group).or_default() += flows;
        }
        if params.queueing == Queueing::Divided {
            assert_eq!(next, params.queues.max(6));
        }
    }
    for (group, flows) in counted {
        let members = (0..FLOWS).filter(|flow| program.group(FlowId(*flow)) == Some(group)).count() as u32;
        match params.table {
            FlowTable::Exact => assert_eq!(flows, members, "{group:?}"),
            // Flows with the same hash are one flow.
            FlowTable::Hashed { .. } => assert!(flows <= members && (flows > 0) == (members > 0), "{group:?}"),
        }
    }
}

/// Headers leave as they came, but for windows that the program lowered; the counters agree with what happened.
fn check_headers(switch: &Switch<P4air>, params: &P4airParams, offered: &[Arrival]) {
    let mut lowered = 0;
    for sent in &switch.log.sent {
        let came = &offered[sent.departure.packet.id.0 as usize];
        assert_eq!(sent.port, Port(came.port));
        let (Some(before), Some(after)) = (came.headers.tcp, sent.headers.tcp) else {
            assert_eq!((came.headers.tcp, came.headers.reverse), (sent.headers.tcp, sent.headers.reverse));
            continue;
        };
        assert_eq!(Segment { window: before.window, ..after }, before);
        if after.window != before.window {
            assert!(before.flags.contains(Flags::ACK));
            assert!(params.least_window.0 <= after.window && after.window < before.window);
            lowered += 1;
        }
    }
    let (stats, log) = (switch.program.stats(), &switch.log);
    assert!(lowered <= stats.lowered && stats.lowered <= lowered + log.dropped.len() as u64);
    assert_eq!(stats.dropped, log.dropped_for(DropReason::FairShare) as u64);
    assert!(log.dropped_for(DropReason::SlowStart) as u64 <= stats.slow_start_share);
    assert_eq!(stats.fed_back, log.fed_back);
    assert_eq!(log.recirculated, stats.delayed * u64::from(params.delay_passes.min(0xfff)));
    assert!(stats.tracked + stats.ants <= offered.len() as u64);
    assert!(log.marked.is_empty());
}

struct Setup {
    params: P4airParams,
    /// Of the links, bit/s.
    rates: Vec<u64>,
    recirculation: Nanos,
}

impl Setup {
    fn from_bytes(given: &[u8]) -> Self {
        let mut bytes = [0; PARAMS];
        bytes[..given.len()].copy_from_slice(given);
        let [bits, actions, after @ .., options] = bytes;
        let bit = |number: u8| bits >> number & 1 == 1;
        let option = |number: u8| options >> number & 1 == 1;
        let short = |at: usize| u16::from_le_bytes([after[at], after[at + 1]]);
        let power = |at: usize| 1u64 << (after[at] & 63);
        let action = |number: u8| match actions >> (2 * number) & 3 {
            0 => FlowAction::Delay,
            1 => FlowAction::Drop,
            2 => FlowAction::Window,
            _ => FlowAction::Nothing,
        };
        let rates: Vec<u64> = (0..1 + usize::from(after[7] & 3)).map(|port| power(8 + port)).collect();
        let ports = (0..rates.len() as u16).filter(|port| after[7] >> (4 + port) & 1 == 0).map(Port).collect();
        let fingerprint = FingerprintParams {
            loss_delay_after: after[0],
            loss_based_after: after[1],
            model_based_after: after[2],
            restarts: bit(0),
            rise: if after[3] < 128 {
                Rise::OfPrevious { shift: after[3] }
            } else {
                Rise::Packets(u32::from(after[3]) - 128)
            },
            reduction_shift: after[4],
            pattern: if bit(1) { RatePattern::Increases } else { RatePattern::Pulses },
            pulse: after[5],
            settled: after[6] & 15,
            period: after[6] >> 4,
            default_rtt: Nanos(power(12)),
            least_change: if option(5) { 0 } else { 4 },
            repeated_syn_restarts: !option(6),
        };
        let queues = match after[13] {
            few @ ..250 => u16::from(few),
            many => 1 << (many - 245),
        };
        let limit = match after[20] {
            0 => Limit::None,
            few @ ..128 => Limit::Packets(u64::from(few)),
            bytes => Limit::Bytes(ByteCount(u64::from(bytes - 128) * 500)),
        };
        // What is left of the byte for the newest flow.
        let more = |number: u8| (after[21] / 3) >> number & 1 == 1;
        let params = P4airParams {
            ports,
            queues,
            queue: TailDropParams { limit },
            fingerprint,
            table: match after[14] {
                0 => FlowTable::Exact,
                entries => FlowTable::Hashed { entries: u32::from(entries) - 1, seed: u64::from(after[15]) },
            },
            newest: match after[21] % 3 {
                0 => Newest::OfQueue,
                1 => Newest::OfGroup,
                _ => Newest::Any,
            },
            start: if bit(2) { Start::Even } else { Start::NewFlows },
            assignment: match (more(0), option(1)) {
                (true, _) => Assignment::ByRtt,
                (false, true) => Assignment::Counted,
                (false, false) => Assignment::InTurn,
            },
            rank_interval: Nanos(power(23)),
            scalable: more(1),
            queueing: if option(0) { Queueing::Weighted } else { Queueing::Divided },
            rtt: match options >> 2 & 3 {
                0 => RttSource::Handshake,
                1 => RttSource::Timestamps(RttFilter::Least),
                2 => RttSource::Sequence(RttFilter::Smoothed { shift: 3 }),
                _ => RttSource::LessQueueing,
            },
            // A group of shaped flows is in the property test of any headers.
            mark: Class(0),
            share: match (more(2), bit(3)) {
                (true, _) => ShareForm::Parts,
                (false, true) => ShareForm::Shift { sensitivity: after[15] as i8 },
                (false, false) => ShareForm::Exact,
            },
            packet: ByteCount(if bit(4) { power(16) } else { u64::from(short(16)) }),
            actions: GroupActions {
                delay_based: action(0),
                loss_delay: action(1),
                loss_based: action(2),
                model_based: action(3),
                scalable: if more(3) { FlowAction::Mark } else { action(0) },
            },
            act_on: if option(4) { ActOn::Delay { target: Nanos(power(12)) } } else { ActOn::Share },
            act_every: if bit(5) { ActEvery::Packet } else { ActEvery::RoundTrip },
            delay_passes: if bit(6) { short(18) } else { u16::from(after[18]) },
            least_window: ByteCount(if bit(7) { 0 } else { power(22) }),
            idle: Nanos(power(23).saturating_sub(1)),
        };
        Self { params, rates, recirculation: Nanos(power(24) & ((1 << 36) - 1)) }
    }
}

/// Flows have numbers below this one.
const FLOWS: u32 = 16;

#[derive(Clone, Copy)]
struct Arrival {
    /// Nanoseconds after the packet before.
    later: u64,
    port: u16,
    flow: u32,
    size: u64,
    headers: Headers,
    /// Whether the switch is run up to this packet and checked.
    pause: bool,
}

impl Arrival {
    fn from_bytes(given: &[u8], ports: usize) -> Self {
        let mut bytes = [0; PACKET];
        bytes[..given.len()].copy_from_slice(given);
        let [flags, flows, kind, time, shift, size, payload, window, grown, rest @ ..] = bytes;
        let short = |at: usize| u64::from(u16::from_le_bytes([rest[at], rest[at + 1]]));
        let size = u64::from(size) << (kind >> 4 & 7);
        let segment = Segment {
            seq: short(0) << (rest[6] & 31),
            ack: short(2) << (rest[6] >> 3),
            window: u64::from(window) << (grown & 63),
            length: if payload & 1 == 0 { size as u32 } else { u32::from(payload >> 1) },
            flags: Flags::from_bits(flags),
            ..Segment::default()
        };
        let (flow, reverse) = (u32::from(flows & 15), u32::from(flows >> 4));
        let tcp = (kind & 4 == 0).then_some(segment);
        Self {
            later: u64::from(time) << shift.min(40),
            port: u16::from(kind & 3) % ports as u16,
            flow,
            size,
            headers: Headers { tcp, ..headers(flow, reverse) },
            pause: kind & 8 != 0,
        }
    }
}
