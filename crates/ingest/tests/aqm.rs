//! Replays captures through every discipline and switch program, and checks what must hold for all of them.

use queuescope_ingest::{Listener, OpenedCapture, Queue, Source};
use queuescope_queue::{DisciplineParams, Dropped, Limit, MarkReason, PipelineParams, Sink};
use queuescope_sim::{Aqm, Output};
use queuescope_wire::{ByteCount, Departure, Ecn, FlowId, Flows, Granularity, KeyMask, MaskedKey, Nanos, Packet, Rate};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// Limit of each queue, in packets.
const LIMIT: u64 = 20;

/// All events of a queue, in order.
pub struct Log {
    flows: Flows,
    pub departures: Vec<Departure>,
    pub drops: Vec<Dropped>,
    /// When something left or was dropped.
    times: Vec<Nanos>,
    marked: Vec<Packet>,
}

impl Log {
    fn new() -> Self {
        let flows = Flows::masked(KeyMask::WHOLE, &[Granularity::FiveTuple], usize::MAX);
        Self { flows, departures: Vec::new(), drops: Vec::new(), times: Vec::new(), marked: Vec::new() }
    }

    /// The 99th percentile of the sojourn times of packets of a size.
    fn p99(&self, size: u64) -> Nanos {
        let of_size = self.departures.iter().filter(|departure| departure.packet.size == ByteCount(size));
        let mut waits: Vec<_> = of_size.map(Departure::sojourn).collect();
        waits.sort_unstable();
        waits[waits.len() * 99 / 100]
    }
}

impl Output for Log {
    fn departed(&mut self, departure: &Departure) {
        self.times.push(departure.dequeued);
        self.departures.push(*departure);
    }
}

impl Sink for Log {
    fn dropped(&mut self, dropped: &Dropped) {
        self.times.push(dropped.at);
        self.drops.push(*dropped);
    }

    fn marked(&mut self, packet: &Packet, _: MarkReason, _: Nanos) {
        self.marked.push(*packet);
    }
}

impl Listener for Log {
    type Key = MaskedKey;
    type Error = Infallible;

    fn intern(&mut self, key: &MaskedKey, now: Nanos) -> FlowId {
        self.flows.intern(key, now, |_, _| ())
    }
}

pub fn replay(capture: OpenedCapture, aqm: Option<Aqm>, limit: Limit) -> (Log, Source) {
    let (mut log, mut queue) = (Log::new(), Queue::default());
    (queue.aqm, queue.limit) = (aqm, limit);
    let Ok(source) = capture.replay(&queue, KeyMask::WHOLE, &mut log, &mut |_, _| ());
    (log, source)
}

fn open(path: &Path, rate: Rate) -> OpenedCapture {
    OpenedCapture::open(path, rate, None, None).unwrap()
}

/// Every discipline and switch program.
fn all() -> Vec<Aqm> {
    let disciplines = DisciplineParams::defaults().into_iter().map(Aqm::from);
    disciplines.chain(PipelineParams::defaults().into_iter().map(|params| params.try_into().unwrap())).collect()
}

/// Captures, each with a fifth of the rate at which its packets arrive.
fn captures() -> Vec<(PathBuf, Rate)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    let more = data.join("../../shared/data/pcap/l4s-prague-dualpi2-wifi.pcap.xz");
    let names = ["demo.pcap.xz", "formats/sll113.pcap", "formats/ipv6-http.pcap"];
    let paths = names.map(|name| data.join(name)).into_iter().chain(more.exists().then_some(more));
    let with_rate = |path: PathBuf| {
        let (_, source) = replay(open(&path, "1tbps".parse().unwrap()), None, Limit::None);
        let time = source.span.1.saturating_sub(source.span.0).as_secs_f64();
        let rate = (source.bytes as f64 * 8.0 / time / 5.0) as u64;
        (path, Rate::from_bits_per_second(rate).unwrap())
    };
    paths.map(with_rate).collect()
}

#[test]
fn every_discipline_conserves_packets_and_sends_at_the_link_rate() {
    for (path, rate) in captures() {
        for aqm in all() {
            let (name, is_fifo) = (format!("{aqm} of {}", path.display()), aqm.is_fifo());
            let (log, source) = replay(open(&path, rate), Some(aqm), Limit::Packets(LIMIT));
            is_conserved(&log, &source, &name);
            // P4air recirculates packets to delay them, so later ones overtake them.
            if !name.starts_with("p4air") {
                keeps_order(&log, is_fifo, &name);
            }
            assert!(fullest(&log) <= LIMIT, "{name} held {}", fullest(&log));
            // Each packet that left says what was in the queue as it came. FQ-CoDel takes a packet before it drops another.
            let met = log.departures.iter().map(|left| left.backlog_in.packets).max().unwrap_or(0);
            assert!(met <= LIMIT, "{name}: a packet met {met}");
            // Where packets are dropped only as they come, the one that made the queue fullest met all the others.
            let drops_later = log.drops.iter().any(|dropped| dropped.enqueued.is_some());
            let fullest = fullest(&log);
            assert!(drops_later || met + 1 >= fullest, "{name}: a packet met {met}, and there were {fullest}");
            assert!(log.times.is_sorted(), "{name}: time ran back");
            sends_one_by_one(&log, rate, &name);
            assert!(log.marked.iter().all(|packet| packet.ecn == Ecn::Ce), "{name}");
            assert!(!log.drops.is_empty(), "{name}: no limit is reached");
        }
    }
}

fn is_conserved(log: &Log, source: &Source, name: &str) {
    let out = || log.departures.iter().map(|left| left.packet).chain(log.drops.iter().map(|dropped| dropped.packet));
    let ids: BTreeSet<_> = out().map(|packet| packet.id).collect();
    assert_eq!((out().count() as u64, ids.len() as u64), (source.packets, source.packets), "{name}");
    assert_eq!(ids.last().map(|id| id.0 + 1), Some(source.packets), "{name}");
    assert_eq!(out().map(|packet| packet.size.0).sum::<u64>(), source.bytes, "{name}");
}

fn keeps_order(log: &Log, is_fifo: bool, name: &str) {
    let mut last = BTreeMap::new();
    for left in &log.departures {
        assert!(left.enqueued <= left.dequeued, "{name}: {left:?}");
        // The queue stands for the class, which can change within a flow.
        let whose = (!is_fifo).then(|| (log.flows.project(0, left.packet.flow), left.queue));
        let before = last.insert(whose, left.packet.id);
        assert!(before.is_none_or(|before| before < left.packet.id), "{name}: {left:?} was overtaken");
    }
}

/// The largest number of packets in the queue at once.
fn fullest(log: &Log) -> u64 {
    let left = log.departures.iter().map(|left| (left.enqueued, left.dequeued));
    let dropped = log.drops.iter().filter_map(|dropped| Some((dropped.enqueued?, dropped.at)));
    let mut changes: Vec<_> = left.chain(dropped).flat_map(|(from, to)| [(from, 1i64), (to, -1)]).collect();
    changes.sort_unstable();
    let there = changes.iter().scan(0, |there, (_, change)| {
        *there += change;
        Some(*there)
    });
    there.max().unwrap_or(0).try_into().unwrap()
}

/// Checks that the link sends one packet at a time, and is not idle while one waits.
fn sends_one_by_one(log: &Log, rate: Rate, name: &str) {
    let sent = log.departures.iter().map(|left| (left.dequeued, rate.time_for(left.packet.size), Some(left.enqueued)));
    let lost = log.drops.iter().map(|dropped| (dropped.at, dropped.link_time, dropped.enqueued));
    let mut turns: Vec<_> = sent.chain(lost).collect();
    // A drop at the same time as a departure comes first.
    turns.sort_by_key(|(at, time, _)| (*at, *time));
    let mut came_first = vec![Nanos::MAX; turns.len() + 1];
    for (place, (.., came)) in turns.iter().enumerate().rev() {
        came_first[place] = came_first[place + 1].min(came.unwrap_or(Nanos::MAX));
    }
    let mut free = Nanos::ZERO;
    for (place, (at, time, _)) in turns.iter().enumerate().filter(|(_, (_, time, _))| *time > Nanos::ZERO) {
        // Each of these times is rounded down; the link computes exactly.
        assert!(*at + Nanos(1) >= free, "{name}: sent at {at}, when the link was busy until {free}");
        let idle = *at > free + Nanos(1);
        assert!(!idle || came_first[place] >= *at, "{name}: idle from {free} to {at} while a packet waited");
        free = *at + *time;
    }
}

#[test]
fn one_queue_of_several_is_a_tail_drop_queue() {
    for (path, rate) in captures() {
        for limit in [Limit::Packets(LIMIT), Limit::Bytes(ByteCount(20_000)), Limit::Time(Nanos(50_000_000))] {
            let events = |aqm: Option<&str>| {
                let (log, _) = replay(open(&path, rate), aqm.map(|aqm| aqm.parse().unwrap()), limit);
                let left = log.departures.iter();
                let left: Vec<_> = left.map(|d| (d.packet.id, d.enqueued, d.dequeued, d.backlog_in)).collect();
                let dropped: Vec<_> = log.drops.iter().map(|dropped| (dropped.packet.id, dropped.at)).collect();
                (left, dropped)
            };
            assert!(events(Some("multi-queue,queues=1")) == events(None), "{} {limit:?}", path.display());
            assert!(events(Some("tail-drop")) == events(None), "{} {limit:?}", path.display());
        }
    }
}

/// A capture of IPv4 UDP packets, given by time (µs), source port, size and DSCP.
pub fn capture(packets: impl IntoIterator<Item = (u64, u16, u16, u8)>) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for (at, port, size, dscp) in packets {
        for word in [(at / 1_000_000) as u32, (at % 1_000_000) as u32, 28, size.into()] {
            file.extend(word.to_le_bytes());
        }
        let [high, low] = size.to_be_bytes();
        file.extend([0x45, dscp << 2, high, low, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let [long, short] = (size - 20).to_be_bytes();
        file.extend(port.to_be_bytes());
        file.extend([0, 9, long, short, 0, 0]);
    }
    file
}

/// A flow of packets of 1500 bytes at 30 Mb/s, and one of 100 bytes every 10 ms with this DSCP, for two seconds.
fn heavy_and_sparse(dscp: u8) -> Vec<u8> {
    let heavy = (0..5_000).map(|n| (n * 400, 1, 1_500, 0));
    let sparse = (0..200).map(|n| (n * 10_000 + 7, 2, 100, dscp));
    let mut packets: Vec<_> = heavy.chain(sparse).collect();
    packets.sort_unstable();
    capture(packets)
}

/// The link sends 10 Mb/s, and the queue holds 1000 packets: more than a second.
fn through(file: Vec<u8>, aqm: &str) -> Log {
    let rate = "10mbps".parse().unwrap();
    let capture = OpenedCapture::from_reader(Cursor::new(file), "made", rate, None).unwrap();
    replay(capture, Some(aqm.parse().unwrap()), Limit::Packets(1_000)).0
}

/// A sparse flow waits for the packet that is being sent, and for no more than a quantum of each other flow: with one
/// other, 2 x 1514 bytes at 10 Mb/s, 2.4 ms.
#[test]
fn fq_codel_isolates_a_heavy_flow() {
    let bound = Nanos(2 * 1_514 * 800);
    let isolated = through(heavy_and_sparse(0), "fq-codel");
    assert!(isolated.p99(100) <= bound, "{}", isolated.p99(100));
    assert!(isolated.p99(1_500) > Nanos(100 * bound.0), "{}", isolated.p99(1_500));
    assert!(isolated.drops.iter().all(|dropped| dropped.packet.size == ByteCount(1_500)));
    let together = through(heavy_and_sparse(0), "tail-drop");
    assert!(together.p99(100) > Nanos(100 * bound.0), "{}", together.p99(100));
}

/// The class follows from the DSCP: a packet of expedited forwarding waits only for the packet that is being sent.
#[test]
fn strict_priority_serves_by_precedence() {
    let aqm = "multi-queue,scheduler=strict-priority";
    let being_sent = Nanos(1_500 * 800);
    assert!(through(heavy_and_sparse(46), aqm).p99(100) <= being_sent);
    assert!(through(heavy_and_sparse(0), aqm).p99(100) > Nanos(100 * being_sent.0));
}

/// Without skipping, timers would fire every few milliseconds for thirty years.
#[test]
fn idle_years_are_skipped() {
    let years = 30 * 365 * 86_400 * 1_000_000u64;
    for aqm in all() {
        let file = capture([(5, 1, 1_500, 0), (5, 2, 1_500, 0), (years, 1, 1_500, 0), (years, 2, 1_500, 0)]);
        let log = through(file, &aqm.to_string());
        // The second packet of each pair waits for the first. Some programs drop by the state at the last departure.
        let of_pair = |time: &Nanos| {
            [5_000, years * 1_000].iter().any(|came| [0, 1_200_000].contains(&time.0.wrapping_sub(*came)))
        };
        assert!(log.times.iter().all(of_pair), "{aqm}: {:?}", log.times);
        assert!(log.departures.iter().all(|left| left.sojourn() <= Nanos(1_200_000)), "{aqm}");
        assert_eq!(log.departures.len() + log.drops.len(), 4, "{aqm}");
    }
}
