//! Writes, buffers and chains of routers compared with ns-3 3.37: every departure and drop of a queue between routers, to
//! the nanosecond.
//!
//! `bench/ns3/chains.csv` holds the cells and the results of Debian's ns-3 3.37 for each: for each queue, how many packets left and
//! were dropped, and the sums of the hashes of their time, flow, number and size. `bench/ns3/chains.py` writes it.

use queuescope_queue::{Dropped, Headers};
use queuescope_scenario::Scenario;
use queuescope_sim::{Files, InFlight, LinkId, Observer, build};
use queuescope_wire::{Departure, Nanos};
use std::collections::BTreeMap;
use std::fmt::Write;

const CELLS: &str = include_str!("../../../bench/ns3/chains.csv");

#[test]
fn every_packet_of_every_chain_is_that_of_ns3() {
    let mut differ = Vec::new();
    let cells = cells();
    assert!(cells.len() >= 20, "{}", cells.len());
    for cell in &cells {
        let scenario = Scenario::parse("cell", &text(cell), &[]).unwrap_or_else(|error| panic!("{error}"));
        let mut simulation = build(&scenario, &Files::default()).unwrap().simulation;
        let queues = 2 * number(cell, "hops") as usize;
        let mut seen = Seen(vec![Queue::default(); queues]);
        simulation.run_until(Nanos(number(cell, "end_ms") * 1_000_000), &mut seen);
        let expected = expected(cell);
        assert_eq!(expected.len(), queues);
        if seen.0 != expected {
            differ.push(format!("cell {}, {}: {:?}, in ns-3 {expected:?}", cell["cell"], cell["about"], seen.0));
        }
    }
    assert!(differ.is_empty(), "{} of {}:\n{}", differ.len(), cells.len(), differ.join("\n"));
}

/// Departures and drops of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Queue {
    departed: u64,
    dropped: u64,
    hash: u64,
    drop_hash: u64,
}

/// The queues between routers, in both directions, hop by hop: they belong to the first links.
struct Seen(Vec<Queue>);

impl Observer for Seen {
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &InFlight, headers: &Headers) {
        if let Some(queue) = self.0.get_mut(link.index()) {
            queue.departed += 1;
            queue.hash = queue.hash.wrapping_add(hash(departure.dequeued, packet, headers));
        }
    }

    fn dropped(&mut self, link: LinkId, dropped: &Dropped, packet: &InFlight, headers: &Headers) {
        if let Some(queue) = self.0.get_mut(link.index()) {
            queue.dropped += 1;
            queue.drop_hash = queue.drop_hash.wrapping_add(hash(dropped.at, packet, headers));
        }
    }
}

/// FNV-1a of the time, the flow, the number and the size.
fn hash(at: Nanos, packet: &InFlight, headers: &Headers) -> u64 {
    let segment = headers.tcp.as_ref().unwrap();
    // Segments with data are hashed with their sequence number, others with their acknowledgement number.
    let number = if segment.length > 0 { segment.seq } else { segment.ack };
    let numbers = [at.0, packet.number.into(), number, packet.bytes.into()];
    numbers
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

type Cell = BTreeMap<&'static str, &'static str>;

fn cells() -> Vec<Cell> {
    let mut lines = CELLS.lines().map(fields);
    let names = lines.next().unwrap();
    lines.map(|values| names.iter().copied().zip(values).collect()).collect()
}

/// The fields of a line of CSV; fields with a comma are quoted.
fn fields(mut line: &'static str) -> Vec<&'static str> {
    let mut fields = Vec::new();
    loop {
        let (field, rest) = match line.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap(),
            None => line.split_at(line.find(',').unwrap_or(line.len())),
        };
        fields.push(field);
        match rest.strip_prefix(',') {
            Some(rest) => line = rest,
            None => return fields,
        }
    }
}

fn number(cell: &Cell, key: &str) -> u64 {
    cell[key].parse().unwrap_or_else(|_| panic!("{key}: {}", cell[key]))
}

fn expected(cell: &Cell) -> Vec<Queue> {
    let list = |key: &str| cell[key].split(';').map(|value| value.parse::<u64>().unwrap()).collect::<Vec<_>>();
    let (departed, dropped, hashes, drop_hashes) = (list("departed"), list("dropped"), list("hash"), list("drop_hash"));
    let queue = |place: usize| Queue {
        departed: departed[place],
        dropped: dropped[place],
        hash: hashes[place],
        drop_hash: drop_hashes[place],
    };
    (0..departed.len()).map(queue).collect()
}

/// The scenario of a cell, with the parameters that `command` in `chains.py` passes to ns-3.
fn text(cell: &Cell) -> String {
    let (hops, rate) = (number(cell, "hops"), number(cell, "rate_mbps") * 1_000_000);
    let rtt = number(cell, "rtt_ms") * 1_000_000;
    let (delay, access) = (rtt / 4 / hops, rtt / 8);
    let mut text = format!(
        "profile = \"ns3\"\nduration = \"60s\"\ntopology = {{ parking-lot = {{ hops = {hops} }} }}\n\n[stack]\n\
         receive-window = {}\nsend-buffer = {}\napplication-writes = {}\n\n[link]\nrate = \"{rate}bps\"\n\
         delay = \"{delay}ns\"\nlimit = \"{}packets\"\noverhead = \"2B\"\nboth-ways = {}\n{}\n\n\
         [access]\nrate = \"{}bps\"\ndelay = \"{access}ns\"\n",
        cell["receive_buffer"],
        cell["send_buffer"],
        cell["writes"],
        cell["limit"],
        cell["both_ways"] == "1",
        discipline(cell["aqm"]),
        10 * rate,
    );
    for (flow, ends) in (0..).zip(cell["flows"].split(' ')) {
        let (ends, farther) = ends.split_once('+').unwrap_or((ends, "0"));
        let (from, to) = ends.split_once('-').unwrap();
        let [from, to]: [u64; 2] = [from, to].map(|router| router.parse().unwrap());
        let rtt = 2 * (from.abs_diff(to) * delay + 2 * access + farther.parse::<u64>().unwrap() * 1_000_000);
        let start = flow * 10_000_000 + splitmix(1_000_003 + flow) % 10_000_000;
        let tcp = match cell["cc"] {
            "bbr" => "{ bbr = { draws = { ns3 = { run = 1 } } } }".to_owned(),
            other => format!("\"{other}\""),
        };
        write!(
            text,
            "\n[[flows]]\nfrom = \"r{}\"\nto = \"r{}\"\nrtt = \"{rtt}ns\"\nstart = \"{start}ns\"\ntcp = {tcp}\n",
            from + 1,
            to + 1
        )
        .unwrap();
    }
    text
}

fn discipline(aqm: &str) -> &'static str {
    match aqm {
        "taildrop" => "[link.discipline.tail-drop]",
        "codel" => "[link.discipline.codel]\nflavour = \"ns3\"\necn = false",
        "fqcodel" => {
            "[link.discipline.fq-codel]\nflavour = \"ns3\"\necn = false\nquantum = \"1500B\"\nplacement = \"number\"\nqueues = 1019"
        }
        other => panic!("no discipline of the chains: {other}"),
    }
}

/// One step of Vigna's splitmix64.
fn splitmix(number: u64) -> u64 {
    let x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
