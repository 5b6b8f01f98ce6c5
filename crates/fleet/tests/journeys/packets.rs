//! One given packet: by its digest, from a capture, or by its flow and a time.

use super::culprits::{answered, host, numbered, recorded};
use super::*;
use queuescope_fleet::journey::{PacketChoice, PacketDigest, PacketIdentity};
use queuescope_fleet::protocol::QueryRequest;
use queuescope_ingest::CaptureInput;
use queuescope_ingest::records::Frames;
use queuescope_log::Log;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use std::num::NonZeroU64;
use std::path::Path;

fn asked(log: &Log, request: JourneyRequest) -> Result<Journey, JourneyError<String>> {
    let request = JourneyRequest { flows: 100, within: Nanos(1_000 * MS), ..request };
    let ask = async |question: QueryRequest| Ok::<_, String>(answered(log, &question));
    Builder::new_current_thread().build().expect("there is a thread").block_on(journey(&request, &[host()], ask))
}

#[test]
fn a_packet_is_found_by_its_digest() {
    let log = recorded(&numbered(vec![(0, 1_000, 100, 10, false), (1, 1_000, 105, 30, false)], false));
    let longest = asked(&log, JourneyRequest::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(longest.packet.contains("src_port 1001"), "{longest:?}");
    let by_digest =
        |digest: PacketDigest| JourneyRequest { packet: PacketChoice::Digest(digest), ..JourneyRequest::default() };
    assert_eq!(asked(&log, by_digest(longest.digest)).unwrap_or_else(|error| panic!("{error}")), longest);
    let unknown: PacketDigest = "0123456789abcdef".parse().unwrap_or_else(|error| panic!("{error}"));
    let error = asked(&log, by_digest(unknown)).expect_err("it is of no packet").to_string();
    assert!(
        error.starts_with(
            "no packet in a queue has the digest 0123456789abcdef; there are records of queues of host (4 packets, "
        ),
        "{error}"
    );
}

#[test]
fn a_packet_is_found_by_its_flow_and_a_time() {
    let visits = chain(3).onward.swap_remove(0);
    let folder = tempfile::tempdir().expect("there is room");
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("there are threads");
    let home = coordinator(folder.path());
    let log = record(&folder.path().join("log"), &visits);
    attach(&runtime, &home, "router", log.recorder(), &folder.path().join("log"));
    let flow = ports(&visits[0]);
    let of_flow: Vec<_> = visits.iter().filter(|visit| ports(visit) == flow).collect();
    let way = |moment: Nanos| {
        // Both ports, which no other flow has together.
        let address = |name: &str| {
            let id = Schema::packet().find(name).expect("packets have it");
            Schema::packet().attribute(id).text_of(field(&visits[0].headers, name))
        };
        let name = format!("{}:{} > {}:{} tcp", address("src_ip"), flow.0, address("dst_ip"), flow.1);
        let packet = PacketChoice::OfFlow { flow: name, at: moment };
        let request = JourneyRequest { packet, flows: 5, within: Nanos(60_000 * MS), ..JourneyRequest::default() };
        let ask = async |question| home.query(question).await.map_err(|error| error.to_string());
        runtime.block_on(journey(&request, &home.members(), ask))
    };
    for number in [0, of_flow.len() / 3, of_flow.len() - 1] {
        let next = of_flow[number];
        let before = number.checked_sub(1).map_or(Nanos::ZERO, |before| of_flow[before].dequeued);
        // From the moment after the packet before it until it leaves.
        for moment in [Nanos(before.0 + 1), next.enqueued.max(Nanos(before.0 + 1)), next.dequeued] {
            let found = way(moment).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(found.digest, PacketIdentity::of_headers(&next.headers).digest(), "at {moment}: {found:?}");
        }
    }
    let last = of_flow[of_flow.len() - 1].dequeued;
    let error = way(Nanos(last.0 + 1)).expect_err("no packet comes later").to_string();
    assert!(error.contains("or in the minute after it"), "{error}");
    runtime.shutdown_timeout(PATIENCE);
    drop(home);
    drop(log.finish().unwrap_or_else(|error| panic!("{error}")));
}

#[test]
fn a_packet_of_a_capture_has_the_identity_that_hosts_know() {
    let capture = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/demo.pcap.xz"));
    let number = |number: u64| NonZeroU64::new(number).expect("it is more than 0");
    let (identity, time) = PacketIdentity::in_capture(capture, number(7)).unwrap_or_else(|error| panic!("{error}"));
    assert!(time.is_some());
    // As a host that recorded this frame has it.
    let mut input = CaptureInput::open(capture, None).unwrap_or_else(|error| panic!("{error}"));
    for _ in 1..7 {
        input.reader.next_record().unwrap_or_else(|error| panic!("{error}"));
    }
    let frame = input.reader.next_record().unwrap_or_else(|error| panic!("{error}")).expect("there are more");
    let mut frames = Frames::default();
    let link = LinkType::from_dlt(frame.link);
    let parsed = Parser::new(Tunnel::Outer).parse(link, frame.original_len, frame.data);
    let time = frames.time(&frame);
    let headers = *frames.fill(&frame, time, &parsed);
    let visit = Visit {
        packet: 0,
        headers,
        enqueued: Nanos(1_000),
        dequeued: Nanos(3_000),
        backlog: Backlog::default(),
        link: 0,
    };
    let folder = tempfile::tempdir().expect("there is room");
    let (runtime, home) =
        (Builder::new_multi_thread().worker_threads(2).enable_all().build(), coordinator(folder.path()));
    let runtime = runtime.expect("there are threads");
    let log = record(&folder.path().join("log"), &[visit]);
    attach(&runtime, &home, "router", log.recorder(), &folder.path().join("log"));
    let request = JourneyRequest {
        packet: PacketChoice::Identity(identity.clone()),
        flows: 5,
        within: Nanos(60_000 * MS),
        ..JourneyRequest::default()
    };
    let ask = async |question| home.query(question).await.map_err(|error| error.to_string());
    let found = runtime.block_on(journey(&request, &home.members(), ask)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((found.digest, found.packet.as_str()), (identity.digest(), identity.to_string().as_str()));
    assert_eq!(found.hops[0].wait(), Nanos(2_000));
    runtime.shutdown_timeout(PATIENCE);
    drop(home);
    drop(log.finish().unwrap_or_else(|error| panic!("{error}")));

    let error = PacketIdentity::in_capture(capture, number(u64::MAX)).expect_err("it has fewer").to_string();
    assert!(error.contains("there is no packet 18446744073709551615; it has "), "{error}");
    let error =
        PacketIdentity::in_capture(Path::new("/nowhere.pcap"), number(1)).expect_err("there is none").to_string();
    assert!(error.contains("/nowhere.pcap"), "{error}");
}
