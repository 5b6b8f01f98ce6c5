//! Captures on both sides of a simulated router: a capture is replayed through a FIFO, and recorded as taps on the router's links would.
//!
//! The packets come in on three links, each with a clock of its own. The last link has no tap. Some packets are
//! routed to another link, some are dropped, and those that leave have been changed as routers change them.

#![allow(dead_code, reason = "tests and examples use a part each")]
#![allow(clippy::disallowed_methods, reason = "captures are written")]

use anyhow::{Result, bail};
use queuescope_meter::tap::{Clock, Feed, Matcher, Routes, Survey, SurveyParams, TapOutput, TapPacket, TapParams};
use queuescope_pcap::{CaptureReader, PcapWriter};
use queuescope_queue::{Dropped, Limit, MarkReason, Outlet, Sink, TailDrop, TailDropParams};
use queuescope_sim::{Output, Replay};
use queuescope_wire::parse::{Frame, InvariantParams, LinkType, Parser, Reach, Tunnel};
use queuescope_wire::{
    ByteCount, Class, Departure, Family, FlowId, Granularity, Nanos, Packet, PacketId, QueueId, Rate,
};
use std::convert::Infallible;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// The links into the router. The last has no tap.
pub const LINKS: usize = 3;
pub const TAPPED: usize = 2;
/// The LINKTYPE number of Ethernet.
const ETHERNET: u32 = 1;
/// The time through the router without a queue.
const TRANSIT: Nanos = Nanos(12_345);

/// How a pair of captures is made.
#[derive(Clone, Copy)]
pub struct PairParams {
    pub rate: Rate,
    pub limit: Limit,
    /// Converts true time, which is the first link's, to the clock behind the router.
    pub behind: Clock,
    /// Converts true time to the second link's clock.
    pub second: Clock,
    /// Timestamps are rounded down to multiples of this, nanoseconds.
    pub resolution: u64,
    /// The capture lengths before and behind the router, in bytes.
    pub snaplens: (usize, usize),
    /// One in this many destinations is behind another link.
    pub elsewhere: u64,
    /// The most packets to take from the capture.
    pub most: usize,
}

/// A frame in a capture.
#[derive(Clone)]
pub struct Record {
    pub time: Nanos,
    pub original_len: u32,
    pub data: Vec<u8>,
    /// The packet's index in the original capture.
    pub id: usize,
}

/// The truth about a packet.
#[derive(Clone, Copy)]
pub struct Truth {
    pub link: usize,
    pub size: u32,
    /// The digest of its five-tuple.
    pub digest: u64,
    pub is_ip: bool,
    pub elsewhere: bool,
    /// The true time of its arrival.
    pub enqueued: Nanos,
    /// The true time of its departure; `None` if it was dropped.
    pub dequeued: Option<Nanos>,
}

pub struct Pair {
    pub ingress: [Vec<Record>; LINKS],
    /// In the order of departures.
    pub egress: Vec<Record>,
    pub truth: Vec<Truth>,
    pub link: LinkType,
}

impl Pair {
    /// Replays the capture at `path`.
    pub fn make(path: &Path, pair_params: PairParams) -> Result<Self> {
        let mut reader = CaptureReader::open(path)?;
        let mut parser = Parser::new(Tunnel::Outer);
        let params = TailDropParams { limit: pair_params.limit };
        let outlet = Outlet { overhead: 0, rate: pair_params.rate, queue: QueueId(0), seed: 0 };
        let mut replay = Replay::new(TailDrop::new(params, outlet), &outlet);
        let mut pair =
            Self { ingress: Default::default(), egress: Vec::new(), truth: Vec::new(), link: LinkType::Ethernet };
        let (mut now, mut frames, mut left) = (Nanos::ZERO, Vec::new(), Departures::default());
        while let Some(record) = reader.next_record()?.filter(|_| pair.truth.len() < pair_params.most) {
            now = now.max(record.time.unwrap_or(now));
            pair.link = LinkType::from_dlt(record.link);
            let frame = parser.parse(pair.link, record.original_len, record.data);
            let (id, link) = (pair.truth.len(), (mixed(frame.key.src as u64) % LINKS as u64) as usize);
            let is_ip = frame.key.family != Family::Link;
            let elsewhere = mixed(frame.key.dst as u64 ^ 77).is_multiple_of(pair_params.elsewhere);
            let truth = Truth {
                link,
                size: frame.size,
                digest: Granularity::FiveTuple.project(&frame.key).digest(),
                is_ip,
                elsewhere,
                enqueued: now,
                dequeued: None,
            };
            pair.truth.push(truth);
            let data = record.data.get(..pair_params.snaplens.0).unwrap_or(record.data).to_vec();
            let time = round(if link == 1 { pair_params.second.convert(now) } else { now }, pair_params.resolution);
            frames.push((frame, record.data.to_vec()));
            pair.ingress[link].push(Record { time, original_len: record.original_len, data, id });
            if is_ip && !elsewhere {
                let (id, size) = (PacketId(id as u64), ByteCount(u64::from(frame.size)));
                replay.arrive(Packet { id, flow: FlowId(0), size, class: Class(0), ecn: frame.ecn }, now, &mut left);
            }
        }
        replay.finish(&mut left);
        for (id, dequeued) in left.0 {
            pair.truth[id].dequeued = Some(dequeued);
            let (frame, data) = &mut frames[id];
            forward(frame, data);
            data.truncate(pair_params.snaplens.1);
            let time = round(pair_params.behind.convert(dequeued + TRANSIT), pair_params.resolution);
            let original_len = frame.size;
            pair.egress.push(Record { time, original_len, data: std::mem::take(data), id });
        }
        Ok(pair)
    }

    /// Writes the captures of all links, `in1.pcap` and so on, and `out.pcap`. Returns their paths.
    pub fn write(&self, directory: &Path) -> Result<(Vec<PathBuf>, PathBuf)> {
        let LinkType::Ethernet = self.link else { bail!("only captures of Ethernet can be written") };
        let write = |name: String, records: &[Record]| {
            let path = directory.join(name);
            let mut writer = PcapWriter::new(BufWriter::new(File::create(&path)?), ETHERNET, 0)?;
            for record in records {
                writer.packet(record.time, record.original_len, &record.data)?;
            }
            writer.finish()?;
            Ok(path)
        };
        let ingress =
            self.ingress.iter().enumerate().map(|(link, records)| write(format!("in{}.pcap", link + 1), records));
        Ok((ingress.collect::<Result<_>>()?, write("out.pcap".to_owned(), &self.egress)?))
    }

    /// The shortest reach of the captured bytes, over all captures.
    pub fn reach(&self) -> u16 {
        let reach = |records: &Vec<Record>| {
            let (mut reach, mut parser) = (Reach::new(), Parser::new(Tunnel::Outer));
            for record in records {
                reach.observe(&parser.parse(self.link, record.original_len, &record.data), &record.data);
            }
            reach.bytes()
        };
        self.ingress[..TAPPED].iter().chain([&self.egress]).map(reach).min().unwrap_or(Reach::MOST)
    }

    pub fn seen(&self, records: &[Record], params: &InvariantParams) -> Vec<TapPacket> {
        let mut parser = Parser::new(Tunnel::Outer);
        let seen = |record: &Record| {
            let frame = parser.parse(self.link, record.original_len, &record.data);
            TapPacket::new(record.time, &frame, &record.data, params)
        };
        records.iter().map(seen).collect()
    }

    /// Estimates the clocks of the tapped links, then matches with them. The matcher returned has the counts and the improved clocks.
    pub fn tap(&self, params: TapParams, invariant: &InvariantParams, output: &mut impl TapOutput) -> Matcher {
        let ingress: Vec<_> = self.ingress[..TAPPED].iter().map(|records| self.seen(records, invariant)).collect();
        let egress = self.seen(&self.egress, invariant);
        let mut survey = Survey::new(SurveyParams { max_delay: params.max_delay, ..SurveyParams::default() }, TAPPED);
        for (link, packets) in ingress.iter().enumerate() {
            packets.iter().for_each(|seen| survey.ingress(link, seen));
        }
        egress.iter().for_each(|seen| survey.egress(seen));
        let clocks: Vec<_> = survey.finish().into_iter().map(|found| found.expect("a clock").estimate.clock).collect();
        let routes = {
            let mut matcher = Matcher::new(params, &clocks);
            run(&ingress, &egress, &mut matcher, &mut DiscardOutput);
            matcher.routes()
        };
        let mut matcher = Matcher::with_routes(params, &clocks, Routes::learnt(routes));
        run(&ingress, &egress, &mut matcher, output);
        matcher
    }
}

impl Pair {
    /// Matches where all taps are stamped by one clock, as that of a switch.
    pub fn tap_with_one_clock(
        &self,
        params: TapParams,
        invariant: &InvariantParams,
        output: &mut impl TapOutput,
    ) -> Matcher {
        let ingress: Vec<_> = self.ingress[..TAPPED].iter().map(|records| self.seen(records, invariant)).collect();
        let mut matcher = Matcher::new(params, &[Clock::default(); TAPPED]);
        run(&ingress, &self.seen(&self.egress, invariant), &mut matcher, output);
        matcher
    }
}

fn run(ingress: &[Vec<TapPacket>], egress: &[TapPacket], matcher: &mut Matcher, output: &mut impl TapOutput) {
    let mut ingress: Vec<_> = ingress.iter().map(|packets| Cursor(packets.iter())).collect();
    let Ok(()) = queuescope_meter::tap::drive(&mut ingress, &mut Cursor(egress.iter()), matcher, output);
}

struct Cursor<'a>(std::slice::Iter<'a, TapPacket>);

impl Feed for Cursor<'_> {
    type Error = Infallible;

    fn next(&mut self) -> Result<Option<TapPacket>, Infallible> {
        Ok(self.0.next().copied())
    }
}

struct DiscardOutput;

impl TapOutput for DiscardOutput {
    fn departed(&mut self, _departure: &queuescope_meter::tap::TapDeparture) {}
    fn lost(&mut self, _packet: &TapPacket, _link: usize, _enqueued: Nanos) {}
}

#[derive(Default)]
struct Departures(Vec<(usize, Nanos)>);

impl Sink for Departures {
    fn dropped(&mut self, _dropped: &Dropped) {}
    fn marked(&mut self, _packet: &Packet, _reason: MarkReason, _now: Nanos) {}
}

impl Output for Departures {
    fn departed(&mut self, departure: &Departure) {
        self.0.push((departure.packet.id.0 as usize, departure.dequeued));
    }
}

/// Changes a frame as a router does: MAC addresses, time to live, DSCP and header checksum.
fn forward(frame: &Frame, data: &mut [u8]) {
    let at = usize::from(frame.link_header);
    if at >= 12 {
        data[..12].iter_mut().for_each(|byte| *byte ^= 0x5a);
    }
    let Some(packet) = data.get_mut(at..) else { return };
    match (frame.key.family, packet) {
        (Family::V4, [_, tos, _, _, _, _, _, _, ttl, _, sum, ..]) => {
            (*tos, *ttl, *sum) = (*tos ^ 0x20, ttl.saturating_sub(1), sum.wrapping_add(1));
        }
        (Family::V6, [_, class, _, _, _, _, _, ttl, ..]) => (*class, *ttl) = (*class ^ 0x20, ttl.saturating_sub(1)),
        _ => {}
    }
}

fn round(time: Nanos, resolution: u64) -> Nanos {
    Nanos(time.0 / resolution * resolution)
}

/// Spreads addresses evenly.
fn mixed(address: u64) -> u64 {
    let mixed = (address ^ address >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
