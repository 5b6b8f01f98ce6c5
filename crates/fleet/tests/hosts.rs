//! The guarantee of cuts, with real processes in network namespaces: a host appends a record, waits until it is visible, and then sends a
//! packet; another appends when the packet arrives. No cut has the second record without the first.

mod fleet;
mod host;

use crate::namespaces::PATIENCE;
use fleet::Fleet;
use std::time::Instant;

/// Valid cuts of the test.
const CUTS: usize = 10_000;
/// Cuts of the test with the mistake.
const FEW: usize = 2_000;

/// What the cuts showed.
#[derive(Debug, Default)]
struct Cuts {
    valid: usize,
    void: usize,
    /// Cuts in which a host was missing.
    partial: usize,
    /// Positions of the sender and the receiver.
    positions: Vec<(u64, u64)>,
}

/// Makes valid cuts while one host sends to the other; returns them, and the numbers of the packets that the receiver recorded.
fn cuts(test: &str, wanted: usize, thaws_early: bool) -> Option<(Cuts, Vec<u64>)> {
    let fleet = Fleet::start(thaws_early).map_err(|why| println!("skipped: {test}: {why}")).ok()?;
    let begun = Instant::now();
    let mut cuts = Cuts::default();
    while cuts.valid < wanted {
        assert!(
            begun.elapsed() < 4 * PATIENCE,
            "{} of {wanted} cuts, {} void, {} partial",
            cuts.valid,
            cuts.void,
            cuts.partial
        );
        let cut = fleet.cut();
        if !cut.void.is_empty() {
            cuts.void += 1;
            continue;
        }
        let position = |name: &str| cut.members.iter().find(|member| member.name == name && member.state == 1);
        match (position("send"), position("receive")) {
            (Some(send), Some(receive)) => {
                cuts.valid += 1;
                cuts.positions.push((send.position, receive.position));
            }
            _ => cuts.partial += 1,
        }
    }
    println!("{} cuts in {:?}, {} void, {} partial", cuts.valid, begun.elapsed(), cuts.void, cuts.partial);
    Some((cuts, fleet.end()))
}

/// Cuts with a record of the receiver whose packet the sender had not recorded.
fn violations(cuts: &Cuts, received: &[u64]) -> usize {
    // The record of packet n has position n at the sender.
    let highest: Vec<_> = received
        .iter()
        .scan(0, |highest, number| {
            *highest = (*highest).max(number + 1);
            Some(*highest)
        })
        .collect();
    let needed = |receive: u64| receive.checked_sub(1).map_or(0, |last| highest[last as usize]);
    cuts.positions.iter().filter(|(send, receive)| needed(*receive) > *send).count()
}

/// Cuts between which the receiver recorded something: the others show little.
fn busy(cuts: &Cuts) -> usize {
    cuts.positions.windows(2).filter(|pair| pair[0].1 < pair[1].1).count()
}

#[test]
fn no_cut_has_a_packet_that_was_not_sent() {
    let Some((cuts, received)) = cuts("no_cut_has_a_packet_that_was_not_sent", CUTS, false) else { return };
    assert_eq!(violations(&cuts, &received), 0);
    assert!(busy(&cuts) > CUTS / 10, "the receiver recorded something between {} of {CUTS} cuts", busy(&cuts));
}

#[test]
fn a_host_that_thaws_early_is_found() {
    let Some((cuts, received)) = cuts("a_host_that_thaws_early_is_found", FEW, true) else { return };
    assert!(violations(&cuts, &received) > 0, "{} busy cuts of {FEW}, and no violation", busy(&cuts));
}
