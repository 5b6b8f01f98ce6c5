//! ABC between network namespaces, with its header on real frames, as root: hosts see plain packets.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests run programs")]

mod bmv2;
mod chain;
mod node;

use crate::namespaces;
use bmv2::{Bmv2, Tools};
use chain::{Chain, ChainParams, Copied, ETH, LEFT, MACS, RIGHT};
use node::{CORE, EDGE, EXIT, LinkNode};
use queuescope_live::EthernetPort;
use queuescope_live::capture::Direction;
use queuescope_wire::ActivityHeader;

/// Whether the machine has what a test needs; otherwise prints why it is skipped.
fn can_run(test: &str) -> bool {
    namespaces::alone(&["namespaces"]).map_err(|why| println!("skipped: {test}: {why}")).is_ok()
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

fn send(chain: &Chain, frames: Vec<Vec<u8>>) {
    chain.sender.run(move || {
        let port = EthernetPort::open(ETH).expect("it is there");
        for frame in frames {
            port.write([&frame, &[], &[]]).expect("it is up");
        }
    });
}

/// Asserts that `left` are those of `entered` that were not dropped, in their order, and returns how many are missing.
fn missing(entered: &[Vec<u8>], left: &[Vec<u8>]) -> usize {
    let mut rest = entered.iter();
    for frame in left {
        assert!(rest.any(|other| other == frame), "a frame left the domain that did not come into it: {frame:02x?}");
    }
    entered.len() - left.len()
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
    /// header within it. `refused` is how many of the frames that came into it first the edge refuses. Returns how many frames were dropped and how
    /// many arrived.
    fn compare(self, refused: usize) -> [usize; 2] {
        let entered = self.entering.end();
        let left = self.leaving.end();
        let entered = &entered[refused..];
        let dropped = missing(entered, &left);
        let [before, behind] = self.within.map(|copied| copied.end().iter().map(|frame| without_header(frame)).collect::<Vec<_>>());
        assert!(before == entered, "{} and {} frames", before.len(), entered.len());
        assert!(behind == left, "{} and {} frames", behind.len(), left.len());
        [dropped, left.len()]
    }
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

#[test]
fn a_domain_of_links_carries_tcp_and_its_hosts_see_plain_frames() {
    const TEST: &str = "a_domain_of_links_carries_tcp_and_its_hosts_see_plain_frames";
    if !can_run(TEST) {
        return;
    }
    let chain = Chain::new(PLAIN);
    let [edge, core, exit] = [(FAST, EDGE), (BOTTLENECK, CORE), (FAST, EXIT)];
    let start = |place: usize, (link, role)| LinkNode::start(&chain.nodes[place], &format!("{link} --aqm {role}"));
    let [edge, core, exit] = [start(0, edge), start(1, core), start(2, exit)];
    let copies = Copies::begin(&chain);
    send(&chain, hostile());
    chain.transfer(BYTES);
    let [dropped, arrived] = copies.compare(hostile().len());
    let [edge, core, exit] = [edge, core, exit].map(LinkNode::end);
    assert_eq!(REFUSED.map(|reason| edge.note(reason)), [1, 2, 1, 1], "{:?}", edge.lines);
    for node in [&core, &exit] {
        assert_eq!(REFUSED.map(|reason| node.note(reason)), [0; 4], "{:?}", node.lines);
    }
    assert!(arrived > BYTES / 1500 && dropped < arrived / 10, "{dropped} of {arrived}");
}

/// The notes on refused frames.
const REFUSED: [&str; 4] = ["activity_forged", "activity_cut_short", "activity_doubled", "activity_behind_tag"];

#[test]
fn a_core_by_link_between_an_edge_and_an_exit_of_bmv2() {
    const TEST: &str = "a_core_by_link_between_an_edge_and_an_exit_of_bmv2";
    if !can_run(TEST) {
        return;
    }
    let Some(tools) = Tools::find(TEST) else { return };
    let chain = Chain::new(PLAIN);
    // The core is behind port 1 of the edge, and the receiver, which is outside, behind port 1 of the exit.
    let edge = Bmv2::start(&tools, &chain.nodes[0], "abc-edge", "table_add MainIngress.domain MainIngress.set_domain 1 => 0\n");
    let exit = Bmv2::start(&tools, &chain.nodes[2], "abc-strip", "table_add MainIngress.domain MainIngress.set_domain 1 => 1\n");
    let core = LinkNode::start(&chain.nodes[1], &format!("--rate 20mbit --limit 24packets --aqm {CORE}"));
    let copies = Copies::begin(&chain);
    send(&chain, hostile());
    chain.transfer(BYTES);
    let [dropped, arrived] = copies.compare(hostile().len());
    assert_eq!([edge.refused(0), edge.refused(1), exit.refused(0), exit.refused(1)], [hostile().len() as u64, 0, 0, 0]);
    let core = core.end();
    assert_eq!(REFUSED.map(|reason| core.note(reason)), [0; 4], "{:?}", core.lines);
    assert!(arrived > BYTES / 1500 && dropped < arrived / 10, "{dropped} of {arrived}");
}

#[test]
fn a_core_of_bmv2_between_an_edge_and_an_exit_by_link() {
    const TEST: &str = "a_core_of_bmv2_between_an_edge_and_an_exit_by_link";
    if !can_run(TEST) {
        return;
    }
    let Some(tools) = Tools::find(TEST) else { return };
    let chain = Chain::new(PLAIN);
    let edge = LinkNode::start(&chain.nodes[0], &format!("--rate 20mbit --aqm {EDGE}"));
    let core = Bmv2::start(&tools, &chain.nodes[1], "abc-core", "");
    let exit = LinkNode::start(&chain.nodes[2], &format!("{FAST} --aqm {EXIT}"));
    let copies = Copies::begin(&chain);
    send(&chain, hostile());
    chain.transfer(BYTES);
    let [dropped, arrived] = copies.compare(hostile().len());
    assert_eq!([core.refused(0), core.refused(1)], [0, 0]);
    let [edge, exit] = [edge, exit].map(LinkNode::end);
    assert_eq!(REFUSED.map(|reason| edge.note(reason)), [1, 2, 1, 1], "{:?}", edge.lines);
    assert_eq!(REFUSED.map(|reason| exit.note(reason)), [0; 4], "{:?}", exit.lines);
    assert!(arrived > BYTES / 1500 && dropped < arrived / 10, "{dropped} of {arrived}");
}
