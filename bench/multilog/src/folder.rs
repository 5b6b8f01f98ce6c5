//! Records a folder of packets to query: `folder.py` beside this crate asks the same questions of other programs.

use queuescope_archive::{Durability, Full, Recorder, RecorderOptions, Retention, VOLUME_RECORDS};
use queuescope_log::packet::{self, Known, Segment};
use queuescope_wire::{Ecn, Family, FlowKey, Nanos};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::RngCore;
use std::path::Path;

/// Records in a batch.
const BATCH: u64 = 1000;
/// Number of flows; the packets of a flow are inversely proportional to its rank.
const FLOWS: f64 = 1e6;
/// Number of sources and destinations.
const SOURCES: u64 = 1 << 16;
const DESTINATIONS: u64 = 1 << 12;
/// Nanoseconds between packets, on average.
const GAP: u64 = 2000;
/// When the first packet comes: in the middle of November 2026.
const START: u64 = 1_794_700_800_000_000_000;

/// Writes a folder of this many packets.
pub fn write(path: &Path, records: u64) {
    let options = RecorderOptions {
        memory: 1 << 30,
        full: Full::Wait,
        durability: Durability::Relaxed,
        journal_records: VOLUME_RECORDS,
        archive: true,
        indexes: Vec::new(),
        keep: Retention::default(),
    };
    let recorder = Recorder::open(path, packet::schema(), options).unwrap_or_else(|error| panic!("{error}")).0;
    let mut random = Pcg64::new(11, 12);
    let mut batch = vec![0; BATCH as usize * packet::SIZE];
    let mut at = START;
    for start in (0..records).step_by(BATCH as usize) {
        let count = BATCH.min(records - start) as usize;
        for record in batch.as_chunks_mut().0.iter_mut().take(count) {
            at += random.next_u64() % (2 * GAP);
            fill(record, at, start, &mut random);
        }
        let appended = recorder.append(&batch[..count * packet::SIZE]);
        assert_eq!(appended.expect("there is room").refused, 0);
    }
    recorder.finish().unwrap_or_else(|error| panic!("{error}"));
}

/// A packet of a random flow.
fn fill(record: &mut [u8; packet::SIZE], at: u64, number: u64, random: &mut impl RngCore) {
    let uniform = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let flow = FLOWS.powf(uniform) as u64;
    let hash = flow.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let is_tcp = !hash.is_multiple_of(8);
    let key = FlowKey {
        family: Family::V4,
        src: u128::from(0x0a00_0000 | ((hash >> 40) % SOURCES)),
        dst: u128::from(0xc0a8_0000 | ((hash >> 20) % DESTINATIONS)),
        src_port: 32_768 + (hash >> 7) as u16 % 28_000,
        dst_port: [443, 443, 80, 53, 22, 8080, 5201, 3306][(hash >> 33) as usize % 8],
        protocol: if is_tcp { 6 } else { 17 },
        ..FlowKey::default()
    };
    let length = [66, 66, 590, 1514, 1514, 1514][(random.next_u64() >> 32) as usize % 6];
    let segment = Segment {
        seq: (number as u32).wrapping_mul(1448) ^ hash as u32,
        ack: hash as u32,
        flags: if random.next_u64().is_multiple_of(100) { 0x02 } else { 0x10 },
        words: 5,
        payload: length - 54,
    };
    let tcp = is_tcp.then_some(segment);
    packet::fill_known(record, &Known { at: Nanos(at), length, key: &key, ecn: Ecn::NotEct, tcp });
}
