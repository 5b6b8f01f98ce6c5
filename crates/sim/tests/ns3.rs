//! Whole simulations against ns-3 3.37: every drop, to the nanosecond.
//!
//! The table holds how many packets Debian's ns-3 3.37 dropped in the first stretch of cells of `bench/ns3/cells.csv`, and
//! the sum of the hashes of each drop's time, flow and sequence number. Nothing is drawn in them but the phases of BBR, which
//! are those of ns-3. One packet that leaves a nanosecond earlier, or an ACK that tells of another block, changes all that
//! follows.

use queuescope_queue::{Dropped, Headers};
use queuescope_scenario::Scenario;
use queuescope_sim::{Files, LinkId, Observer, OnItsWay, build};
use queuescope_wire::Nanos;
use std::fmt::Write;

struct Cell {
    number: u32,
    seed: u64,
    discipline: &'static str,
    control: &'static str,
    flows: u64,
    /// In megabits per second, and in milliseconds.
    rate: u64,
    rtt: u64,
    limit: u64,
    /// In milliseconds.
    end: u64,
    drops: u64,
    hashes: u64,
}

const CODEL: &str = "codel]\nflavour = \"ns3\"\necn = false";

#[test]
fn every_drop_is_that_of_ns3() {
    for cell in CELLS {
        let scenario = Scenario::parse("cell", &text(cell), &[]).unwrap_or_else(|error| panic!("{error}"));
        let mut simulation = build(&scenario, &Files::default()).unwrap().simulation;
        let mut drops = Drops::default();
        simulation.run_until(Nanos(cell.end * 1_000_000), &mut drops);
        let place = (cell.number, cell.seed);
        assert_eq!((place, drops.count, drops.hashes), (place, cell.drops, cell.hashes));
    }
}

#[derive(Default)]
struct Drops {
    count: u64,
    hashes: u64,
}

impl Observer for Drops {
    fn dropped(&mut self, _link: LinkId, dropped: &Dropped, packet: &OnItsWay, headers: &Headers) {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let seq = headers.tcp.as_ref().map_or(0, |segment| segment.seq);
        for number in [dropped.at.0, u64::from(packet.number), seq] {
            for byte in number.to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        self.count += 1;
        self.hashes = self.hashes.wrapping_add(hash);
    }
}

/// As `bench/ns3/scenario.py` writes it.
fn text(cell: &Cell) -> String {
    let Cell { seed, discipline, control, rate, rtt, limit, .. } = cell;
    // 4 s of the bottleneck, and four times what path and queue hold.
    let window = rate * 500_000 + 500 * rate * rtt + 6_000 * limit;
    let mut text = format!(
        "profile = \"ns3\"\nseed = {seed}\nduration = \"60s\"\n[stack]\nreceive-window = {window}\nsend-buffer = {window}\n\
         [link]\nrate = \"{rate}mbps\"\ndelay = \"{}us\"\nlimit = \"{limit}packets\"\noverhead = \"2B\"\n\
         [link.discipline.{discipline}\n[access]\nrate = \"{}mbps\"\ndelay = \"{}us\"\n",
        rtt * 250,
        10 * rate,
        rtt * 125
    );
    for flow in 0..cell.flows {
        let start = flow * 10_000_000 + splitmix(seed * 1_000_003 + flow) % 10_000_000;
        let tcp = match *control {
            "bbr" => format!("{{ bbr = {{ draws = {{ ns3 = {{ run = {seed} }} }} }} }}"),
            other => format!("\"{other}\""),
        };
        write!(text, "[[flows]]\nstart = \"{start}ns\"\ntcp = {tcp}\n").unwrap();
    }
    text
}

/// One step of Vigna's splitmix64.
fn splitmix(number: u64) -> u64 {
    let x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

const CELLS: &[Cell] = &[
    Cell {
        number: 32,
        seed: 1,
        discipline: "tail-drop]",
        control: "bbr",
        flows: 10,
        rate: 10,
        rtt: 10,
        limit: 8,
        end: 6000,
        drops: 413,
        hashes: 0xa3f59cf1cff281a1,
    },
    Cell {
        number: 32,
        seed: 2,
        discipline: "tail-drop]",
        control: "bbr",
        flows: 10,
        rate: 10,
        rtt: 10,
        limit: 8,
        end: 12000,
        drops: 693,
        hashes: 0x66aff568c0bb1cc2,
    },
    Cell {
        number: 32,
        seed: 3,
        discipline: "tail-drop]",
        control: "bbr",
        flows: 10,
        rate: 10,
        rtt: 10,
        limit: 8,
        end: 9000,
        drops: 641,
        hashes: 0x42f5e29914e68d68,
    },
    Cell {
        number: 3,
        seed: 1,
        discipline: CODEL,
        control: "bbr",
        flows: 50,
        rate: 10,
        rtt: 40,
        limit: 33,
        end: 22000,
        drops: 4423,
        hashes: 0x2d0067b7d40ab63f,
    },
    Cell {
        number: 3,
        seed: 3,
        discipline: CODEL,
        control: "bbr",
        flows: 50,
        rate: 10,
        rtt: 40,
        limit: 33,
        end: 6000,
        drops: 1912,
        hashes: 0xabe186ce587554c2,
    },
    Cell {
        number: 37,
        seed: 1,
        discipline: CODEL,
        control: "cubic",
        flows: 10,
        rate: 100,
        rtt: 40,
        limit: 333,
        end: 1500,
        drops: 1021,
        hashes: 0x65c44c97d32fc2e5,
    },
    Cell {
        number: 20,
        seed: 2,
        discipline: "tail-drop]",
        control: "bbr",
        flows: 1,
        rate: 10,
        rtt: 40,
        limit: 17,
        end: 12000,
        drops: 95,
        hashes: 0x7062942374734104,
    },
];
