//! ABC between network namespaces, with its header on real frames, as root: hosts see plain packets.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests run programs")]

mod bmv2;
pub mod chain;
mod figure_5;
pub mod node;

use crate::namespaces;
use bmv2::Bmv2;
use chain::{Chain, ChainParams, Copied, ETH, LEFT, MACS, RIGHT};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use node::{CORE, EDGE, EXIT, LinkNode};
use queuescope_live::capture::Direction;
use queuescope_live::{EthernetPort, Namespace, Transfer};
use queuescope_wire::ActivityHeader;
use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;

/// Whether the machine has what a test needs; otherwise prints why it is skipped.
pub fn can_run(test: &str) -> bool {
    let made = namespaces::alone(&["namespaces"]).map_err(|why| println!("skipped: {test}: {why}"));
    made.is_ok() && program(test, "ethtool").is_some()
}

/// The program of a name on `PATH`. Otherwise prints that a test is skipped, or fails if `QUEUESCOPE_REQUIRE` has the name.
pub fn program(test: &str, name: &str) -> Option<PathBuf> {
    let found = env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        let required = env::var("QUEUESCOPE_REQUIRE").unwrap_or_default();
        assert!(required.split(',').all(|required| required != name), "{test}: {name} is not installed");
        println!("skipped: {test}: {name} is not installed");
    }
    found
}

const PLAIN: ChainParams = ChainParams { nodes: 3, inner_mtu: 1504, senders: 1, is_plain: true };

/// A frame from the sending host whose bytes from the EtherType on are these.
fn frame(behind: &[u8]) -> Vec<u8> {
    [&MACS[1][..], &MACS[0], behind].concat()
}

/// Frames that an edge must refuse: one forged, two cut short, one doubled, one behind a tag.
fn hostile() -> Vec<Vec<u8>> {
    let plain = frame(&[&[0x08, 0x00, 0x45][..], &[0; 60]].concat());
    let forged = ActivityHeader(-0x8000).pushed(&plain);
    let behind_tag = frame(&[&[0x81, 0x00, 0, 5, 0x88, 0xb5, 0x80, 0, 0x08, 0x00][..], &[0; 60]].concat());
    vec![
        forged.clone(),
        frame(&[0x88, 0xb5, 0x80]),
        frame(&[0x88, 0xb5]),
        ActivityHeader(3).pushed(&forged),
        behind_tag,
    ]
}

/// Sends frames from a host.
fn send(host: &Namespace, frames: Vec<Vec<u8>>) {
    host.run(move || {
        let port = EthernetPort::open(ETH).expect("it is there");
        for frame in frames {
            assert_eq!(port.write([&frame, &[], &[]]).expect("it is up"), Transfer::Done);
        }
    });
}

/// Asserts that each frame of `left` is one of `entered`, and returns how many of these are missing. The kernel may deliver frames that two processors send at once
/// in another order than it copies them.
fn missing(entered: &[Vec<u8>], left: &[Vec<u8>]) -> usize {
    let mut counts = BTreeMap::<&[u8], usize>::new();
    entered.iter().for_each(|frame| *counts.entry(frame).or_default() += 1);
    for frame in left {
        let count = counts.get_mut(&frame[..]).filter(|count| **count > 0);
        *count.unwrap_or_else(|| panic!("a frame left that did not come in: {frame:02x?}")) -= 1;
    }
    counts.values().sum()
}

/// The copies of what passes a domain of three nodes.
struct Copies {
    entering: Copied,
    within: [Copied; 2],
    leaving: Copied,
}

impl Copies {
    fn begin(chain: &Chain) -> Self {
        Self {
            entering: Copied::begin(&chain.sender, ETH, Direction::Out),
            within: [LEFT, RIGHT].map(|side| {
                let direction = if side == LEFT { Direction::In } else { Direction::Out };
                Copied::begin(&chain.nodes[1], side, direction)
            }),
            leaving: Copied::begin(&chain.receiver, ETH, Direction::In),
        }
    }

    /// Ends the copies and compares them: what leaves the domain is what came into it, but for what was dropped, and all of it had an activity
    /// header within it. `refused` is how many of the frames that came into it first the edge refuses.
    fn compare(self, refused: usize) -> Passage {
        let (entered, left) = (self.entering.end(), self.leaving.end());
        let plain = |copied: Copied| copied.end().iter().map(|frame| without_header(frame)).collect::<Vec<_>>();
        let [before, behind] = self.within.map(plain);
        assert_eq!(missing(&behind, &left), 0, "of {} frames", behind.len());
        let dropped = [missing(&entered[refused..], &before), missing(&before, &behind)];
        Passage { dropped, arrived: left.len() }
    }
}

/// What became of the frames that came into a domain.
struct Passage {
    /// Those that the edge and the core dropped.
    dropped: [usize; 2],
    arrived: usize,
}

/// The frame without its activity header, which it must have.
fn without_header(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let (header, plain) = ActivityHeader::take(&mut frame).expect("a node sends valid headers");
    assert!(header.is_some(), "{plain:02x?}");
    plain.to_vec()
}

const BOTTLENECK: &str = "--rate 30mbit --limit 24packets";
const FAST: &str = "--rate 1gbit";
const BYTES: usize = 4_000_000;

/// The nodes of a domain, by links.
fn domain(chain: &Chain) -> [LinkNode; 3] {
    let nodes = [(0, FAST, EDGE), (1, BOTTLENECK, CORE), (2, FAST, EXIT)];
    nodes.map(|(place, link, role)| LinkNode::start(&chain.nodes[place], &format!("{link} --aqm {role}")))
}

#[test]
fn a_domain_of_links_carries_tcp_and_its_hosts_see_plain_frames() {
    const TEST: &str = "a_domain_of_links_carries_tcp_and_its_hosts_see_plain_frames";
    if !can_run(TEST) {
        return;
    }
    let chain = Chain::new(PLAIN);
    let [edge, core, exit] = domain(&chain);
    let copies = Copies::begin(&chain);
    send(&chain.sender, hostile());
    send(&chain.receiver, hostile());
    chain.transfer(BYTES);
    let Passage { dropped, arrived } = copies.compare(hostile().len());
    let [edge, core, exit] = [edge, core, exit].map(LinkNode::end);
    assert_eq!(REFUSED.map(|reason| edge.note(reason)), [1, 2, 1, 1], "{:?}", edge.lines);
    assert_eq!(REFUSED.map(|reason| core.note(reason)), [0; 4], "{:?}", core.lines);
    assert_eq!(REFUSED.map(|reason| exit.note(reason)), [1, 2, 1, 1], "{:?}", exit.lines);
    assert!(arrived > BYTES / 1500 && dropped[1] > 0, "{dropped:?} of {arrived}");
    assert_eq!([edge.dropped(), core.dropped()], dropped, "{:?}", core.lines);
}

/// The notes on refused frames.
const REFUSED: [&str; 4] = ["activity_forged", "activity_cut_short", "activity_doubled", "activity_behind_tag"];

#[test]
fn a_core_by_link_between_an_edge_and_an_exit_of_bmv2() {
    const TEST: &str = "a_core_by_link_between_an_edge_and_an_exit_of_bmv2";
    if !can_run(TEST) {
        return;
    }
    let Some(tools) = crate::bmv2::tools(TEST) else { return };
    let chain = Chain::new(PLAIN);
    // The core is behind port 1 of the edge, and the receiver, which is outside, behind port 1 of the exit.
    let edge = Bmv2::start(&tools, &chain.nodes[0], "abc-edge", Some(1));
    let exit = Bmv2::start(&tools, &chain.nodes[2], "abc-strip", Some(1));
    let core = LinkNode::start(&chain.nodes[1], &format!("--rate 20mbit --limit 24packets --aqm {CORE}"));
    let copies = Copies::begin(&chain);
    send(&chain.sender, hostile());
    chain.transfer(BYTES);
    let Passage { dropped, arrived } = copies.compare(hostile().len());
    assert_eq!([edge.refused(0), edge.refused(1), exit.refused(0), exit.refused(1)], [hostile().len() as u64, 0, 0, 0]);
    let core = core.end();
    assert_eq!(REFUSED.map(|reason| core.note(reason)), [0; 4], "{:?}", core.lines);
    assert!(arrived > BYTES / 1500 && dropped[1] > 0, "{dropped:?} of {arrived}");
    assert_eq!([0, core.dropped()], dropped, "{:?}", core.lines);
}

#[test]
fn a_core_of_bmv2_between_an_edge_and_an_exit_by_link() {
    const TEST: &str = "a_core_of_bmv2_between_an_edge_and_an_exit_by_link";
    if !can_run(TEST) {
        return;
    }
    let Some(tools) = crate::bmv2::tools(TEST) else { return };
    let chain = Chain::new(PLAIN);
    let edge = LinkNode::start(&chain.nodes[0], &format!("--rate 20mbit --aqm {EDGE}"));
    let core = Bmv2::start(&tools, &chain.nodes[1], "abc-core", None);
    let exit = LinkNode::start(&chain.nodes[2], &format!("{FAST} --aqm {EXIT}"));
    let copies = Copies::begin(&chain);
    send(&chain.sender, hostile());
    chain.transfer(BYTES);
    let Passage { dropped, arrived } = copies.compare(hostile().len());
    assert_eq!([core.refused(0), core.refused(1)], [0, 0]);
    let [edge, exit] = [edge, exit].map(LinkNode::end);
    assert_eq!(REFUSED.map(|reason| edge.note(reason)), [1, 2, 1, 1], "{:?}", edge.lines);
    assert_eq!(REFUSED.map(|reason| exit.note(reason)), [0; 4], "{:?}", exit.lines);
    assert!(arrived > BYTES / 1500 && edge.dropped() == dropped[0], "{dropped:?} of {arrived}");
}

/// Hosts leave segmentation and checksums to their network card: the links do what a card would do.
#[test]
fn super_packets_leave_a_domain_as_valid_frames() {
    const TEST: &str = "super_packets_leave_a_domain_as_valid_frames";
    if !can_run(TEST) {
        return;
    }
    let chain = Chain::new(ChainParams { is_plain: false, ..PLAIN });
    let nodes = domain(&chain);
    let copies = [
        Copied::begin(&chain.sender, ETH, Direction::Out),
        Copied::begin(&chain.nodes[1], LEFT, Direction::In),
        Copied::begin(&chain.receiver, ETH, Direction::In),
    ];
    chain.transfer(BYTES);
    let [entered, within, left] = copies.map(Copied::end);
    assert!(entered.iter().any(|frame| frame.len() > LONGEST), "the host sends no super-packets");
    let longest = |frames: &[Vec<u8>]| frames.iter().map(Vec::len).max();
    assert_eq!([longest(&within), longest(&left)], [Some(LONGEST + ActivityHeader::LENGTH), Some(LONGEST)]);
    let invalid = left.iter().find(|frame| !is_valid(frame));
    assert!(invalid.is_none(), "{invalid:02x?}");
    for node in nodes.map(LinkNode::end) {
        for reason in ["not_segmented", "unreadable", "longer_than_mtu", "no_memory"].iter().chain(&REFUSED) {
            assert_eq!(node.note(reason), 0, "{reason}: {:?}", node.lines);
        }
    }
}

/// The longest frame of a host without a tag.
const LONGEST: usize = 1514;

/// The kernel takes a tag out of a frame that arrives. It is put back, and the header is in front of it.
#[test]
fn tags_of_frames_stay_within_a_domain() {
    const TEST: &str = "tags_of_frames_stay_within_a_domain";
    if !can_run(TEST) {
        return;
    }
    let chain = Chain::new(ChainParams { inner_mtu: 1508, ..PLAIN });
    let _nodes = domain(&chain);
    let tags: [&[u8]; 3] = [&[0x81, 0x00, 0xa0, 5], &[0x88, 0xa8, 0, 7], &[0x88, 0xa8, 0, 7, 0x81, 0x00, 0, 5]];
    let tagged = tags.map(|tags| frame(&[tags, &[0x08, 0x00], &[0x45; 1492]].concat()));
    let copies =
        [Copied::begin(&chain.nodes[1], RIGHT, Direction::Out), Copied::begin(&chain.receiver, ETH, Direction::In)];
    send(&chain.sender, tagged.to_vec());
    chain.transfer(1_000);
    let [within, left] = copies.map(Copied::end);
    assert!(left.starts_with(&tagged), "{:02x?}", left.iter().map(|frame| frame[..22].to_vec()).collect::<Vec<_>>());
    let stripped: Vec<_> = within.iter().map(|frame| without_header(frame)).collect();
    assert_eq!(missing(&stripped, &left), 0, "of {} frames", stripped.len());
}

/// Whether a frame of TCP over IPv4 has the length that it says, and right checksums.
fn is_valid(frame: &[u8]) -> bool {
    let Ok(sliced) = SlicedPacket::from_ethernet(frame) else { return false };
    let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (&sliced.net, &sliced.transport) else {
        return false;
    };
    let header = ip.header().to_header();
    let (source, destination) = (ip.header().source(), ip.header().destination());
    // Zero has two representations; Linux writes the other one when it completes a checksum.
    let is_right = |sum: u16, right: u16| sum == right || (sum, right) == (0xffff, 0);
    usize::from(header.total_len) + 14 == frame.len()
        && is_right(header.header_checksum, header.calc_header_checksum())
        && tcp.calc_checksum_ipv4(source, destination).is_ok_and(|right| is_right(tcp.checksum(), right))
}

/// Frames that the header makes too long for an interface are counted, and an interface that no full frame would fit is refused.
#[test]
fn an_mtu_leaves_room_for_the_header() {
    const TEST: &str = "an_mtu_leaves_room_for_the_header";
    if !can_run(TEST) {
        return;
    }
    let chain = Chain::new(ChainParams { nodes: 2, inner_mtu: 1503, ..PLAIN });
    for (place, role, inside, outside) in [(0, EDGE, RIGHT, LEFT), (1, EXIT, LEFT, RIGHT)] {
        let Err(said) = LinkNode::try_start(&chain.nodes[place], &format!("--aqm {role}")) else { panic!("it starts") };
        assert_eq!(
            said,
            format!(
                "error: {inside} carries packets of 1503 bytes, and frames from {outside} (up to 1500 bytes) are 4 bytes longer within the domain: \
                 give the interfaces there an MTU of 1504 or more (ip link set {inside} mtu 1504)\n"
            )
        );
    }
    let chain = Chain::new(ChainParams { nodes: 2, ..PLAIN });
    let [edge, exit] =
        [(0, EDGE), (1, EXIT)].map(|(place, role)| LinkNode::start(&chain.nodes[place], &format!("--aqm {role}")));
    // A tag takes room, too: the second of these frames does not fit.
    let tagged = |length: usize| frame(&[&[0x81, 0x00, 0, 5, 0x08, 0x00][..], &vec![0x45; length]].concat());
    let leaving = Copied::begin(&chain.receiver, ETH, Direction::In);
    send(&chain.sender, vec![tagged(1496), tagged(1497)]);
    chain.transfer(1_000);
    let left = leaving.end();
    assert!(left.contains(&tagged(1496)) && !left.contains(&tagged(1497)));
    assert_eq!([edge, exit].map(|node| node.end().note("longer_than_mtu")), [1, 0]);
}

/// Without ABC, the EtherType of the header means nothing.
#[test]
fn a_link_without_abc_carries_every_frame() {
    const TEST: &str = "a_link_without_abc_carries_every_frame";
    if !can_run(TEST) {
        return;
    }
    let chain = Chain::new(ChainParams { nodes: 1, inner_mtu: 1500, ..PLAIN });
    let node = LinkNode::start(&chain.nodes[0], FAST);
    let copies =
        [Copied::begin(&chain.sender, ETH, Direction::Out), Copied::begin(&chain.receiver, ETH, Direction::In)];
    send(&chain.sender, hostile());
    chain.transfer(1_000_000);
    let [entered, left] = copies.map(Copied::end);
    assert!(left.starts_with(&hostile()));
    assert_eq!(missing(&entered, &left), 0, "of {} frames", entered.len());
    let report = node.end();
    assert_eq!(REFUSED.map(|reason| report.note(reason)), [0; 4]);
}
