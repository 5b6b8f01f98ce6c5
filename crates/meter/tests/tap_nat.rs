//! The two sides of a home router that translates addresses: a real pair of captures.

#![allow(clippy::disallowed_methods, reason = "a test may read files")]

use queuescope_meter::tap::{Matcher, Survey, SurveyParams, TapDeparture, TapOutput, TapPacket, TapParams};
use queuescope_pcap::CaptureReader;
use queuescope_wire::Nanos;
use queuescope_wire::parse::{InvariantParams, LinkType, Nat, Parser, Tunnel};
use std::convert::Infallible;
use std::path::Path;

const TCP: u8 = 6;

fn read(name: &str, nat: Nat) -> Option<Vec<TapPacket>> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/tappair")).join(name);
    if !path.exists() {
        println!("skipped: the NAT pair: there is no {}", path.display());
        return None;
    }
    let (mut reader, mut parser) = (CaptureReader::open(&path).unwrap(), Parser::new(Tunnel::Outer));
    let params = InvariantParams { nat, ..InvariantParams::default() };
    let mut packets = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        let frame = parser.parse(LinkType::from_dlt(record.link), record.original_len, record.data);
        packets.push(TapPacket::new(record.time.unwrap(), &frame, record.data, &params));
    }
    Some(packets)
}

#[derive(Default)]
struct Log {
    departures: Vec<TapDeparture>,
    lost: Vec<TapPacket>,
}

impl TapOutput for Log {
    fn departed(&mut self, departure: &TapDeparture) {
        self.departures.push(*departure);
    }

    fn lost(&mut self, packet: &TapPacket, _link: usize, _enqueued: Nanos) {
        self.lost.push(*packet);
    }
}

/// Matches the packets of `before` and `after`, with the clock that a survey of them estimates.
fn tap(before: &[TapPacket], after: &[TapPacket]) -> (queuescope_meter::tap::LinkSurvey, Matcher, Log) {
    let mut survey = Survey::new(SurveyParams::default(), 1);
    before.iter().for_each(|seen| survey.ingress(0, seen));
    after.iter().for_each(|seen| survey.egress(seen));
    let surveyed = survey.finish().remove(0).unwrap();
    let (mut matcher, mut log) = (Matcher::new(TapParams::default(), &[surveyed.estimate.clock]), Log::default());
    let (mut before, mut after) = (before.iter().copied(), after.iter().copied());
    let mut ingress = [|| Ok::<_, Infallible>(before.next())];
    queuescope_meter::tap::drive(&mut ingress, &mut || Ok(after.next()), &mut matcher, &mut log).unwrap();
    (surveyed, matcher, log)
}

/// By identification, sequence and acknowledgement, 117 TCP packets are on both sides: 52 on their way out and 65 on
/// their way in. 33 of them are acknowledgements that only one side has padded; the frames of the other 84 have equal lengths.
#[test]
fn the_tcp_packets_of_a_nat_pair_are_matched_in_both_directions() {
    let (Some(home), Some(isp)) =
        (read("NAT_home_side.pcap", Nat::Addresses), read("NAT_ISP_side.pcap", Nat::Addresses))
    else {
        return;
    };
    let (surveyed, matcher, log) = tap(&home, &isp);
    let out: Vec<_> = matched(&log);
    let (_, other, back) = tap(&isp, &home);
    let back: Vec<_> = matched(&back);
    let tcp = |pairs: &[(TapPacket, TapPacket)]| pairs.iter().filter(|(before, _)| before.key.protocol == TCP).count();
    assert_eq!((tcp(&out), tcp(&back)), (52, 65));
    let both = out.iter().chain(&back).filter(|(before, _)| before.key.protocol == TCP);
    assert_eq!(both.filter(|(before, after)| before.size == after.size).count(), 84);
    // The direction of a packet is opposite on the two sides, also for UDP.
    assert_eq!(matcher.stats().reverse, back.len() as u64, "{:#?}", matcher.stats());
    assert_eq!(other.stats().reverse, out.len() as u64);
    for (before, after) in &out {
        let ahead = (after.time - before.time).0;
        assert!((420_300_000..421_900_000).contains(&ahead), "{ahead}");
    }
    // The offset includes the shortest time through the router, and packets of both directions limit it.
    let offset = surveyed.estimate.clock.offset_at(home[3].time);
    assert!((421_300_000..421_500_000).contains(&offset), "{offset}");
    assert!(surveyed.transit.is_some_and(|transit| (500_000..1_200_000).contains(&transit.0)), "{surveyed:?}");
    println!("{surveyed:#?}\n{:#?}", matcher.stats());
}

#[test]
fn without_addresses_nothing_is_left_to_match_where_they_are_translated() {
    let (Some(home), Some(isp)) = (read("NAT_home_side.pcap", Nat::None), read("NAT_ISP_side.pcap", Nat::None)) else {
        return;
    };
    let mut survey = Survey::new(SurveyParams::default(), 1);
    home.iter().for_each(|seen| survey.ingress(0, seen));
    isp.iter().for_each(|seen| survey.egress(seen));
    let error = survey.finish().remove(0).unwrap_err().to_string();
    assert!(error.contains("--nat") && error.contains("ingress capture 1"), "{error}");
}

#[test]
fn by_their_payload_alone_those_with_a_payload_are_matched() {
    let (Some(home), Some(isp)) =
        (read("NAT_home_side.pcap", Nat::AllButPayload), read("NAT_ISP_side.pcap", Nat::AllButPayload))
    else {
        return;
    };
    let (_, matcher, log) = tap(&home, &isp);
    let with_payload = home.iter().filter(|seen| seen.print.is_ok()).count() as u64;
    let stats = matcher.stats();
    println!("{with_payload} with payload; {stats:#?}");
    assert!(matched(&log).iter().all(|(before, after)| (after.time - before.time).0.abs_diff(421_000_000) < 1_000_000));
    assert!(stats.matched + stats.reverse >= 70, "{stats:#?}");
}

fn matched(log: &Log) -> Vec<(TapPacket, TapPacket)> {
    let pair = |departure: &TapDeparture| match departure.arrived {
        queuescope_meter::tap::Arrived::Seen { ingress, .. } => Some((ingress, departure.seen)),
        _ => None,
    };
    log.departures.iter().filter_map(pair).collect()
}
