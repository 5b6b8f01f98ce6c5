//! The kernel runs the program on frames that the tests make, and a simple model says what has to come of them.

use super::*;
use crate::{Condition, Field, now};
use aya::programs::{TestRun, TestRunOptions};
use proptest::prelude::*;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{FlowKey, Granularity};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The verdicts of a classifier: go on with the packet, and drop it.
const NEXT: u32 = u32::MAX;
const SHOT: u32 = 2;

/// The program, attached nowhere.
fn detached(name: &str, framed: bool, never: &Never, only: &Never) -> Option<FlowActs> {
    let made = types().and_then(|types| {
        let bpf = loaded(&types)?;
        let interface = String::new();
        let mut acts = FlowActs { bpf, interface, framed, link: None, used: [false; FlowActs::MOST], lease: Nanos(0) };
        acts.set_lists(never, only)?;
        Ok(acts)
    });
    match made {
        Ok(acts) => Some(acts),
        Err(why) => {
            #[allow(clippy::disallowed_methods, reason = "the environment lists what tests must not skip")]
            let required = std::env::var("QUEUESCOPE_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|required| required == "tcx"), "{name}: {why}");
            println!("skipped: {name}: {why}");
            None
        }
    }
}

fn run(acts: &mut FlowActs, frame: &[u8]) -> (u32, Vec<u8>) {
    let mut out = vec![0; frame.len() + 64];
    let options = TestRunOptions { data_in: Some(frame), data_out: Some(&mut out), repeat: 1, ..TestRunOptions::new() };
    let result = program(&mut acts.bpf).expect("it is there").test_run(options).expect("it runs");
    out.truncate(result.data_size_out as usize);
    (result.return_value, out)
}

/// A packet of one of a few flows, with these ECN bits, and a correct checksum.
#[derive(Debug, Clone, Copy)]
struct Sent {
    v6: bool,
    hosts: (u8, u8),
    ports: (u8, u8),
    protocol: u8,
    ecn: u8,
}

impl Sent {
    fn frame(&self) -> Vec<u8> {
        let Self { v6, hosts: (src, dst), ports, protocol, ecn } = *self;
        let mut frame = vec![2; 12];
        if v6 {
            frame.extend([0x86, 0xdd, 0x60, ecn << 4, 0, 0, 0, 20, protocol, 64]);
            for host in [src, dst] {
                frame.extend([0xfd; 15]);
                frame.push(host);
            }
        } else {
            frame.extend([8, 0, 0x45, ecn, 0, 40, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 9, 0, src, 10, 9, 0, dst]);
            let sum = !sum(&frame[14..]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        frame.extend([0, ports.0, 0, ports.1]);
        frame.extend([0; 16]);
        frame
    }
}

fn host(v6: bool, last: u8) -> IpAddr {
    let mut bytes = [0xfd; 16];
    bytes[15] = last;
    if v6 { Ipv6Addr::from(bytes).into() } else { Ipv4Addr::new(10, 9, 0, last).into() }
}

/// The sum of a header in ones' complement.
fn sum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

/// The flow of a frame, by the parser of captures.
fn key(frame: &[u8]) -> FlowKey {
    let parsed = Parser::new(Tunnel::Outer).parse(LinkType::Ethernet, frame.len() as u32, frame);
    Granularity::FiveTuple.project(&parsed.key)
}

/// Whether a packet belongs to a flow, in the simplest way.
fn belongs(sent: &Sent, flow: &FlowMatch) -> bool {
    let has_ports = sent.protocol == 17 || sent.protocol == 6;
    let port = |port: u8| if has_ports { u16::from(port) } else { 0 };
    flow.src.is_none_or(|src| src == host(sent.v6, sent.hosts.0))
        && flow.dst.is_none_or(|dst| dst == host(sent.v6, sent.hosts.1))
        && flow.src_port.is_none_or(|value| value == port(sent.ports.0))
        && flow.dst_port.is_none_or(|value| value == port(sent.ports.1))
        && flow.protocol.is_none_or(|value| value == sent.protocol)
}

fn small() -> impl Strategy<Value = u8> {
    1u8..4
}

fn sent() -> impl Strategy<Value = Sent> {
    let protocol = prop::sample::select(vec![1u8, 6, 17]);
    (any::<bool>(), (small(), small()), (small(), small()), protocol, 0u8..4)
        .prop_map(|(v6, hosts, ports, protocol, ecn)| Sent { v6, hosts, ports, protocol, ecn })
}

fn flow() -> impl Strategy<Value = FlowMatch> {
    let part = || prop::option::of(small());
    (any::<bool>(), part(), part(), part(), part(), prop::option::of(prop::sample::select(vec![1u8, 6, 17]))).prop_map(
        |(v6, src, dst, src_port, dst_port, protocol)| FlowMatch {
            src: src.map(|last| host(v6, last)),
            dst: dst.map(|last| host(v6, last)),
            src_port: src_port.map(u16::from),
            dst_port: dst_port.map(u16::from),
            protocol,
        },
    )
}

fn order() -> impl Strategy<Value = (FlowOrder, bool)> {
    let action = prop::sample::select(vec![FlowAction::Mark, FlowAction::Drop]);
    // Whether its time is over.
    (flow(), action, any::<bool>(), prop::bool::weighted(0.2)).prop_map(|(flow, action, dry, is_over)| {
        let until = if is_over { Nanos(1) } else { Nanos::MAX };
        (FlowOrder { flow, action, until, dry }, is_over)
    })
}

#[test]
fn the_kernel_does_what_the_model_says() {
    let port = |field, port: u8| vec![Condition::Within(field, vec![(port.into(), port.into())])];
    let never = Never::new([port(Field::SourcePort, 3)]).unwrap();
    let only = Never::new([port(Field::DestinationPort, 1), port(Field::DestinationPort, 2), port(Field::Protocol, 1)])
        .unwrap();
    let Some(acts) = detached("the_kernel_does_what_the_model_says", true, &never, &only) else { return };
    let acts = RefCell::new(acts);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig { cases: 300, ..ProptestConfig::default() });
    let strategy =
        (prop::collection::vec(order(), 0..6), prop::collection::vec(sent(), 1..8), prop::bool::weighted(0.9));
    let result = runner.run(&strategy, |(orders, packets, is_renewed)| {
        let acts = &mut *acts.borrow_mut();
        // What a failed case left.
        (0..FlowActs::MOST).for_each(|place| acts.end(place).unwrap());
        acts.lease = if is_renewed { now().saturating_add(Nanos(600_000_000_000)) } else { Nanos(1) };
        for (place, (order, _)) in orders.iter().enumerate() {
            // As `begin`, without an interface.
            acts.fill(place, order).unwrap();
        }
        let mut expected = vec![FlowOutcome::default(); orders.len()];
        for sent in &packets {
            let before = sent.frame();
            let allowed = only.holds(&key(&before)) && !never.holds(&key(&before));
            let (mut verdict, mut ecn) = (NEXT, sent.ecn);
            for ((order, is_over), count) in orders.iter().zip(&mut expected) {
                if *is_over || !is_renewed || verdict == SHOT || !belongs(sent, &order.flow) {
                    continue;
                }
                if !allowed {
                    count.exempt += 1;
                    continue;
                }
                count.met += 1;
                match (order.action, ecn) {
                    (FlowAction::Mark, 0) => count.unmarkable += 1,
                    (FlowAction::Mark, 3) => count.marked_before += 1,
                    (FlowAction::Mark, _) => {
                        count.marked += 1;
                        ecn = if order.dry { ecn } else { 3 };
                    }
                    _ => {
                        count.dropped += 1;
                        verdict = if order.dry { NEXT } else { SHOT };
                    }
                }
            }
            let (was, after) = run(acts, &before);
            prop_assert_eq!(was, verdict, "{:?} {:?}", sent, orders);
            prop_assert_eq!(after, Sent { ecn, ..*sent }.frame(), "{:?} {:?}", sent, orders);
        }
        for (place, count) in expected.iter().enumerate() {
            prop_assert_eq!(&acts.outcome(place).unwrap(), count, "{:?}", orders);
            acts.end(place).unwrap();
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn frames_that_are_not_ip_or_cut_off_pass() {
    let all = Never::new([vec![]]).unwrap();
    let Some(mut acts) = detached("frames_that_are_not_ip_or_cut_off_pass", true, &Never::default(), &all) else {
        return;
    };
    acts.lease = Nanos::MAX;
    // An order about everything, which user space never gives.
    let order = FlowOrder { action: FlowAction::Drop, until: Nanos::MAX, dry: false, ..FlowOrder::default() };
    acts.fill(0, &order).unwrap();
    let whole = Sent { v6: false, hosts: (1, 2), ports: (1, 2), protocol: 6, ecn: 1 }.frame();
    let mut arp = whole.clone();
    arp[12..14].copy_from_slice(&[8, 6]);
    assert_eq!(run(&mut acts, &arp).0, NEXT);
    assert_eq!(run(&mut acts, &whole).0, SHOT);
    // The kernel runs no program on a frame that does not have its whole IP header.
    for length in 34..whole.len() {
        let (verdict, after) = run(&mut acts, &whole[..length]);
        assert!([NEXT, SHOT].contains(&verdict) && after.len() == length, "{length}");
    }
}
