//! Switches that report, and a table of departures, are hops of a packet's way.

use super::*;
use std::time::{SystemTime, UNIX_EPOCH};

/// Each switch of the path: its number, and when the packet came and left, after the start of the path, ns.
const PATH: [(u32, u64, u64); 3] = [(11, 0, 40_000), (12, 100_000, 2_100_000), (13, 2_200_000, 2_250_000)];

#[test]
fn switches_and_tables_are_hops_of_a_packets_way() {
    let namespace = match alone(&["namespaces"]) {
        Ok(namespace) => namespace,
        Err(why) => return println!("skipped: switches_and_tables_are_hops_of_a_packets_way: {why}"),
    };
    namespace.run(|| {
        ip("ip link set lo up").expect("it is there");
        let dir = tempfile::tempdir().expect("there is room");
        hops(dir.path());
    });
}

fn hops(dir: &Path) {
    let admin = "--credentials home/admin";
    printed(dir, "coordinator init home --name monitor.example");
    let mut coordinator = Background::start(dir, "coordinator run home");
    let _notes = coordinator.says("listens on");
    for name in ["live", "capture", "table"] {
        let token = printed(dir, &format!("fleet invite {name} {admin}"));
        printed(dir, &format!("fleet join {} --coordinator localhost:7401 --credentials {name}-me", token.trim()));
    }
    for wrong in [
        "--int 6000 --int-time-bits 8",
        "--int far:6000",
        "lo --int 6000",
        "--int 6000 --trigger a=n>1",
        "--int-capture a",
        "",
    ] {
        let refused = run(dir, &format!("agent {wrong} --log wrong --credentials live-me"));
        assert_eq!(refused.status.code(), Some(2), "{wrong}: {refused:?}");
    }

    let start =
        SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_nanos() as u64 - 5_000_000_000;
    let mut live = Background::start(dir, "agent --int 6000 --int-mark-port 5000 --log live-log --credentials live-me");
    let _notes_of_live = live.says("attached to the coordinator");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a port");
    // Before the packet, others of another flow leave the queue of the second switch, and after it none does.
    for number in 1..=4u16 {
        let at = |queue: u64| start + 50_000 + queue * u64::from(number);
        let other = report(number.into(), &packet(9_999, number, &[]), (12, at(20_000), at(400_000)));
        socket.send_to(&other, "127.0.0.1:6000").expect("it is there");
    }
    let stack: Vec<_> =
        PATH[..2].iter().rev().map(|(switch, came, left)| (*switch, start + came, start + left)).collect();
    let (last, came, left) = PATH[2];
    let path = report(5, &packet(4_000, 77, &stack), (last, start + came, start + left));
    socket.send_to(&path, "127.0.0.1:6000").expect("it is there");
    socket.send_to(&[0x20, 0, 0], "127.0.0.1:6000").expect("it is there");
    let way = until("the hops are recorded", || {
        let way = run(dir, &format!("fleet why dst_port==4000 --json {admin}"));
        serde_json::from_slice::<serde_json::Value>(&way.stdout).ok()
    });
    let switches: Vec<_> =
        way["hops"].as_array().expect("there are hops").iter().map(|hop| hop["switch"].as_u64()).collect();
    assert_eq!(switches, PATH.map(|(switch, ..)| Some(switch.into())), "{way}");
    assert_eq!((&way["blamed"], &way["hops"][1]["wait_ns"]), (&1.into(), &2_000_000.into()), "{way}");
    let culprit = &way["hops"][1]["culprits"][0];
    assert_eq!(
        (&culprit["flow"], &culprit["packets"]),
        (&"10.0.0.1:53 > 10.0.0.2:9999 udp".into(), &4.into()),
        "{way}"
    );
    let members = until("the agent says what it left out", || {
        let members = printed(dir, &format!("fleet members --json {admin}"));
        let member = members.lines().find(|line| line.contains("reports to UDP 127.0.0.1:6000"))?;
        let member = serde_json::from_str::<serde_json::Value>(member).expect("it is JSON");
        (member["left_out"]["int_malformed"] == 1).then_some(member)
    });
    assert_eq!(members["schema"], "queued", "{members}");
    assert!(printed(dir, &format!("fleet members {admin}")).contains("live: 1 datagrams or reports that contradict"));

    // The same packet in a capture of reports, and in a table of another router.
    std::fs::write(
        dir.join("reports.pcap"),
        capture(start, &report(9, &packet(4_000, 77, &[]), (21, start - 500_000, start - 450_000))),
    )
    .expect("there is room");
    let table = format!(
        "flow,size,enqueued,dequeued,id,payload\n10.0.0.1:53 > 10.0.0.2:4000 udp,48,{},{},77,20\n",
        start + 3_000_000,
        start + 3_500_000
    );
    std::fs::write(dir.join("table.csv"), table).expect("there is room");
    let mut capture = Background::start(
        dir,
        "agent --int-capture reports.pcap --int-port 6000 --log capture-log --credentials capture-me",
    );
    let _notes_of_capture = capture.says("attached to the coordinator");
    let mut table = Background::start(
        dir,
        "agent --departures table.csv --columns ip_id=id,payload_length=payload --log table-log --credentials table-me",
    );
    let _notes_of_table = table.says("attached to the coordinator");
    let text = until("all hosts have the packet", || {
        let text = printed(dir, &format!("fleet why dst_port==4000 {admin}"));
        (text.contains("capture, switch 21") && text.contains("table: waited 500 µs")).then_some(text)
    });
    let places: Vec<_> =
        text.lines().filter(|line| line.contains(": waited")).map(|line| line.split(": ").next()).collect();
    let expected = [
        "capture, switch 21, port 5",
        "live, switch 11, port 5",
        "live, switch 12, port 5",
        "live, switch 13, port 5",
        "table",
    ];
    assert_eq!(places, expected.map(Some), "{text}");
    assert!(text.contains("of the packets that the switch reported"), "{text}");
    for (process, words) in [
        (live, "7 hops of 5 reports of 3 switches recorded to live-log"),
        (capture, "1 hops of 1 reports of 1 switches recorded to capture-log"),
        (table, "1 packets of table.csv recorded to table-log"),
    ] {
        let (status, summary) = process.end();
        assert!(status == Some(0) && summary.contains(words), "{summary}");
    }
    assert_eq!(coordinator.end().0, Some(0));
}

/// A UDP packet from 10.0.0.1:53 to a port of 10.0.0.2, with INT-MD of these hops if there are any: the last one first. Each has node, interfaces and times.
fn packet(port: u16, identification: u16, stack: &[(u32, u64, u64)]) -> Vec<u8> {
    let hops: Vec<u8> = stack.iter().flat_map(|hop| [&hop.0.to_be_bytes()[..], &measured(hop)].concat()).collect();
    let [p0, p1] = port.to_be_bytes();
    let shim = [0x14, (3 + hops.len() / 4) as u8, p0, p1, 0x20, 0, 6, 7, 0xcc, 0, 0, 0, 0, 0, 0, 0];
    let int = if stack.is_empty() { Vec::new() } else { [&shim[..], &hops].concat() };
    let [p0, p1] = if stack.is_empty() { port } else { 5_000 }.to_be_bytes();
    let [l0, l1] = (28 + int.len() as u16 + 20).to_be_bytes();
    let [u0, u1] = (8 + int.len() as u16 + 20).to_be_bytes();
    let [i0, i1] = identification.to_be_bytes();
    let ip = [0x45, 0, l0, l1, i0, i1, 0, 0, 63, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&ip[..], &[0, 53, p0, p1, u0, u1, 0, 0], &int, &[0xaa; 20]].concat()
}

/// Interfaces and times.
fn measured((_, came, left): &(u32, u64, u64)) -> Vec<u8> {
    [&[0, 9, 0, 5][..], &came.to_be_bytes(), &left.to_be_bytes()].concat()
}

/// A report of a switch on a packet.
fn report(sequence: u32, packet: &[u8], own: (u32, u64, u64)) -> Vec<u8> {
    let inner_words = packet.len().div_ceil(4);
    let mut bytes = (2 << 28 | sequence).to_be_bytes().to_vec();
    bytes.extend(own.0.to_be_bytes());
    bytes.extend([0x14, (2 + 5 + inner_words) as u8, 5, 0x20, 0x4c, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(measured(&own));
    bytes.extend(packet);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A capture with one datagram to port 6000: pcap with nanoseconds and raw IP.
fn capture(at: u64, payload: &[u8]) -> Vec<u8> {
    let length = 28 + payload.len() as u32;
    let [l0, l1] = (length as u16).to_be_bytes();
    let [u0, u1] = (length as u16 - 20).to_be_bytes();
    let ip = [0x45, 0, l0, l1, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 7, 192, 0, 2, 9];
    let header: Vec<u8> =
        [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 65_535, 101].iter().flat_map(|word| word.to_le_bytes()).collect();
    let record: Vec<u8> = [(at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, length, length]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    [&header[..], &record, &ip, &[0, 99, 0x17, 0x70, u0, u1, 0, 0], payload].concat()
}
