//! Whole simulations compared with ns-3 3.37: every drop and every mark, to the nanosecond.
//!
//! The table holds the drops and marks of Debian's ns-3 3.37 in the first interval of cells of `bench/ns3/cells.csv`:
//! the numbers of both, and the sum of the hashes of a drop's time, flow and sequence number, and of a mark's
//! time, flow and size in bytes. The same cells are run here with ns-3's random numbers: the phases of BBR, and the draws of
//! PIE and RED for each packet. A packet that leaves a nanosecond earlier, an ACK with another SACK block, or
//! one more random number changes all later results.

use queuescope_queue::{Dropped, Headers, MarkReason};
use queuescope_scenario::Scenario;
use queuescope_sim::{Files, InFlight, LinkId, Observer, build};
use queuescope_wire::{Nanos, Packet};
use std::fmt::Write;

struct Cell {
    /// In `cells.csv`; zero for Illinois, which is not in it.
    number: u32,
    seed: u64,
    discipline: &'static str,
    control: &'static str,
    flows: u64,
    /// Rate of the bottleneck in Mb/s.
    rate: u64,
    /// Round-trip time of the path without its queue, in milliseconds.
    rtt: u64,
    /// Limit of the queue in packets.
    limit: u64,
    /// How much of the cell is run, in milliseconds.
    end: u64,
    drops: u64,
    marks: u64,
    hashes: u64,
}

macro_rules! cells {
    ($($number:literal $seed:literal $discipline:literal $control:literal $flows:literal $rate:literal $rtt:literal
       $limit:literal $end:literal $drops:literal $marks:literal $hashes:literal;)*) => {
        &[$(Cell {
            number: $number,
            seed: $seed,
            discipline: $discipline,
            control: $control,
            flows: $flows,
            rate: $rate,
            rtt: $rtt,
            limit: $limit,
            end: $end,
            drops: $drops,
            marks: $marks,
            hashes: $hashes,
        }),*]
    };
}

/// By discipline. ns-3 reports a packet that RED marks and its full queue drops as both, queuescope as a drop only: for RED
/// with DCTCP the cell is one whose queue does not fill.
const CELLS: &[Cell] = cells! {
  //cell seed                      flows rate  rtt limit   end drops marks  hashes
    20 2  "tail-drop"  "bbr"       1   10   40   17  12000    95     0  0x7062942374734104;
    32 1  "tail-drop"  "bbr"      10   10   10    8   6000   413     0  0xa3f59cf1cff281a1;
    32 2  "tail-drop"  "bbr"      10   10   10    8  12000   693     0  0x66aff568c0bb1cc2;
    32 3  "tail-drop"  "bbr"      10   10   10    8   9000   641     0  0x42f5e29914e68d68;
    32 6  "tail-drop"  "bbr"      10   10   10    8  15200   833     0  0x2d2be551c5ab9ccd;
    40 1  "tail-drop"  "newreno"  50   10   10    8   6000  1094     0  0x2b32e03ac4458853;
    81 1  "tail-drop"  "hstcp"    10   10   40   17  30000  1697     0  0x07c7b59896f5f460;
    94 1  "tail-drop"  "scalable" 10   10   10    8  20000  2755     0  0x8dce014b23dc37c4;
    99 1  "tail-drop"  "htcp"     10   10   10    4  20000  1523     0  0x4d0b7961de90e830;
   104 1  "tail-drop"  "bic"      10   10   10    4  20000  2413     0  0x43be8ab1b12d069c;
   109 1  "tail-drop"  "hybla"    10   10   40   17  20000  1301     0  0x867e09523d0d4377;
   118 1  "tail-drop"  "yeah"     10   10   40  133  30000   173     0  0x18bfb9e0ad736dab;
   122 1  "tail-drop"  "yeah"     10  100   40  333   4000   482     0  0x5fd74b338bdb6663;
   123 1  "tail-drop"  "veno"     10   10   40   17  20000   459     0  0xc2198ce99d915874;
   129 1  "tail-drop"  "veno"     10   10   10   33  60000  1665     0  0x3e25df183bd87bc9;
   130 1  "tail-drop"  "westwood" 10   10   40   17  20000  1264     0  0x55ca4663adc7c256;
     0 1  "tail-drop"  "illinois" 10   10   10   33  60000   147     0  0x09349ba665b9f93a;
     0 1  "tail-drop"  "illinois" 10   10   40   17  60000  1644     0  0x90650eb77bd0527a;
     3 1  "codel"      "bbr"      50   10   40   33  22000  4423     0  0x2d0067b7d40ab63f;
     3 3  "codel"      "bbr"      50   10   40   33   6000  1912     0  0xabe186ce587554c2;
     3 9  "codel"      "bbr"      50   10   40   33  22500  4997     0  0xbe638bfff2dcb7b9;
    34 1  "codel"      "newreno"  50   10  100  333  10000   875     0  0x32953765b39761e0;
    37 1  "codel"      "cubic"    10  100   40  333   1500  1021     0  0x65c44c97d32fc2e5;
    98 1  "codel"      "htcp"     10   10  100  333  20000   163     0  0xac8ae1d382fe05f0;
   126 1  "codel"      "veno"     10  100   10   42   3000   209     0  0x628bfab3f3defb1f;
   133 1  "codel"      "westwood" 10   10   10    8  20000  1463     0  0xcaafa47a57f6c01d;
     0 1  "codel"      "illinois" 10   10  100   83  60000  1103     0  0x2ac5cbdcfaf81116;
    50 2  "fq-codel"   "newreno"  10   10  100   83  15000   160     0  0x5a363fb18480d062;
    42 3  "fq-codel"   "bbr"      50  100  100  833   3000  4011     0  0x55f3df373985d208;
    61 1  "fq-codel"   "dctcp"    10   10   40  133   6000     0  1891  0x7030342544b3ebac;
    86 1  "fq-codel"   "hstcp"    10   10   10   33  20000  1842     0  0x09a7f4fc613123f9;
     9 1  "pie"        "cubic"    10   10  100   83  12000  1040     0  0xb78c3ad4122a50f3;
    18 1  "pie"        "bbr"      50   10   10   33   5000  1533     0  0xa97b263139352d1c;
    23 1  "pie"        "dctcp"    50  100  100  833   1000  1851    93  0x46227354db44e582;
    24 1  "pie"        "newreno"   1   10   40   33  20000    43     0  0x9eae3042b6982b42;
    35 2  "pie"        "bbr"      10  100   40 1333   1500   552     0  0xcccd62c089db814a;
    45 2  "pie"        "dctcp"    50   10   40   17  12000  2696   317  0x8a124f616a4281b5;
    48 1  "pie"        "vegas"    10   10  100   83  12000   179     0  0x8cf16a471f7b04cc;
    65 2  "pie"        "bbr"       1  100  100 3333   4100  2111     0  0x57d670cf61eb007d;
   103 1  "pie"        "bic"      10   10   40   33  20000   644     0  0x38ba7fefeb3d9db4;
   117 1  "pie"        "yeah"     10  100  100  417  12000  1106     0  0xb180fa3fdc400559;
    11 1  "red"        "vegas"    50   10   10    8   4000   906     0  0xbf0e4e2ce9c34573;
    19 1  "red"        "dctcp"    10  100   40  333   1000     0   796  0xf5256b5545352363;
    33 1  "red"        "bbr"       1   10  100   83   6000   192     0  0xdc740f95427a5f27;
    68 1  "red"        "bbr"      10 1000   10  417    200  3503     0  0x367889a4b88e5a4a;
    49 2  "red"        "bbr"      50  100   40  167   1000  2998     0  0xc88387b41a436f51;
    56 1  "red"        "cubic"    50  100  100  833   2000  1054     0  0x831b1f3b379cbf73;
   112 1  "red"        "hybla"    10   10   10   33  20000  1232     0  0x5eb92afb1e691a3d;
};

#[test]
fn every_drop_and_mark_is_that_of_ns3() {
    for cell in CELLS {
        let scenario = Scenario::parse("cell", &text(cell), &[]).unwrap_or_else(|error| panic!("{error}"));
        let mut simulation = build(&scenario, &Files::default()).unwrap().simulation;
        let mut counts = DropsAndMarks::default();
        simulation.run_until(Nanos(cell.end * 1_000_000), &mut counts);
        let place = (cell.number, cell.seed);
        assert_eq!((place, counts.drops, counts.marks), (place, cell.drops, cell.marks));
        assert_eq!((place, counts.hashes), (place, cell.hashes), "the same numbers, but other packets");
    }
}

#[derive(Default)]
struct DropsAndMarks {
    drops: u64,
    marks: u64,
    hashes: u64,
}

impl DropsAndMarks {
    /// FNV-1a of three numbers.
    fn add(&mut self, numbers: [u64; 3]) {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in numbers.into_iter().flat_map(u64::to_le_bytes) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.hashes = self.hashes.wrapping_add(hash);
    }
}

impl Observer for DropsAndMarks {
    fn dropped(&mut self, _link: LinkId, dropped: &Dropped, packet: &InFlight, headers: &Headers) {
        self.drops += 1;
        self.add([dropped.at.0, packet.number.into(), headers.tcp.as_ref().map_or(0, |segment| segment.seq)]);
    }

    fn marked(&mut self, _link: LinkId, _marked: &Packet, _reason: MarkReason, now: Nanos, packet: &InFlight) {
        self.marks += 1;
        self.add([now.0, packet.number.into(), packet.bytes.into()]);
    }
}

/// The scenario, as `bench/ns3/scenario.py` writes it.
fn text(cell: &Cell) -> String {
    let Cell { seed, control, rate, rtt, limit, .. } = cell;
    // 4 s of the bottleneck, and four times the capacity of path and queue.
    let window = rate * 500_000 + 500 * rate * rtt + 6_000 * limit;
    let mut text = format!(
        "profile = \"ns3\"\nseed = {seed}\nduration = \"60s\"\n\n[stack]\nreceive-window = {window}\n\
         send-buffer = {}\napplication-writes = 92672\n\n[link]\nrate = \"{rate}000000bps\"\ndelay = \"{}ns\"\nlimit = \"{limit}packets\"\n\
         overhead = \"2B\"\n{}\n\n[access]\nrate = \"{}000000bps\"\ndelay = \"{}ns\"\n",
        window + 4 * 92_672,
        rtt * 250_000,
        discipline(cell),
        (10 * rate).max(100),
        rtt * 125_000
    );
    for flow in 0..cell.flows {
        let start = flow * 10_000_000 + splitmix(seed * 1_000_003 + flow) % 10_000_000;
        let tcp = match *control {
            "bbr" => format!("{{ bbr = {{ draws = {{ ns3 = {{ run = {seed} }} }} }} }}"),
            other => format!("\"{other}\""),
        };
        write!(text, "\n[[flows]]\nstart = \"{start}ns\"\ntcp = {tcp}\n").unwrap();
    }
    text
}

/// The lines of `[link.discipline...]`.
fn discipline(cell: &Cell) -> String {
    let Cell { seed, discipline, rate, rtt, .. } = cell;
    let ecn = cell.control == "dctcp";
    // DCTCP's K is a seventh of the path's capacity, in packets of 1500 bytes.
    let threshold = (rate * rtt).div_ceil(84).max(2);
    let ce = if ecn { format!("\nce-threshold = \"{}ns\"", threshold * 12_000_000 / rate) } else { String::new() };
    let draws = format!("draws = {{ ns3 = {{ run = {seed} }} }}");
    let lines = match *discipline {
        "tail-drop" => String::new(),
        "codel" => format!("\nflavour = \"ns3\"\necn = {ecn}{ce}"),
        "fq-codel" => {
            format!("\nflavour = \"ns3\"\necn = {ecn}{ce}\nquantum = \"1500B\"\nplacement = \"number\"\nqueues = 1019")
        }
        "pie" => format!(
            "\nfirst-update = \"0ns\"\nderandomise = false\nburst = \"ns3\"\n\
             short-queue = {{ packets = {{ count = 2 }} }}\nmark-below = {}\n{draws}",
            if ecn { "0.1" } else { "\"none\"" }
        ),
        "red" if ecn => format!(
            "\nmean-packet = \"1500B\"\necn = true\n{draws}\nhard-drop = false\ngentle = false\nweight = 1.0\n\
             thresholds = {{ min = {threshold}.0, max = {threshold}.0 }}"
        ),
        "red" => format!(
            "\nmean-packet = \"1500B\"\necn = false\n{draws}\nweight = 0.002\nmax-probability = 0.02\n\
             thresholds = {{ min = 5.0, max = 15.0 }}"
        ),
        other => panic!("no discipline of the comparison: {other}"),
    };
    format!("[link.discipline.{discipline}]{lines}")
}

/// One step of Vigna's splitmix64.
fn splitmix(number: u64) -> u64 {
    let x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
