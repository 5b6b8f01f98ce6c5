//! Two queues of the kernel one behind the other: both are hops, and their delays are those of captures on both sides of each queue.

use super::*;
use queuescope_live::Namespace;
use std::collections::BTreeMap;

/// The most that a delay may differ from that of captures, ns.
const CLOSE: i64 = 100_000;
/// Packets of a burst, and bursts.
const BURST: u16 = 40;
const BURSTS: u16 = 25;

/// A source, two routers and a destination. The routers have a queue towards the next, and a cable beside it for their messages to the coordinator.
struct Road {
    source: Namespace,
    routers: [Namespace; 2],
    destination: Namespace,
}

impl Road {
    fn new() -> Result<Self, String> {
        let source = alone(&["namespaces", "btf", "ringbuf", "tp_btf", "tcx"])?;
        let new = || Namespace::new().map_err(|error| error.to_string());
        let (first, second, destination) = (new()?, new()?, new()?);
        let cable = |near: &Namespace, names: [&str; 2], far: &Namespace| {
            let [a, b] = names;
            let made = format!("ip link add {a} type veth peer name {b} netns {}", far.number());
            near.run(move || ip(&made))
        };
        cable(&source, ["s0", "in1"], &first)?;
        cable(&first, ["out1", "in2"], &second)?;
        cable(&first, ["side1", "side2"], &second)?;
        cable(&second, ["out2", "d0"], &destination)?;
        let set = |namespace: &Namespace, commands: &[&str]| {
            let commands: Vec<_> = commands.iter().map(|command| (*command).to_owned()).collect();
            namespace.run(move || commands.iter().try_for_each(|command| ip(command)))
        };
        set(
            &destination,
            &["ip addr add 10.3.0.2/24 dev d0", "ip link set d0 up", "ip route add default via 10.3.0.1"],
        )?;
        set(
            &second,
            &[
                "ip addr add 10.2.0.2/24 dev in2",
                "ip addr add 10.3.0.1/24 dev out2",
                "ip addr add 10.8.0.2/24 dev side2",
                "ip link set lo up",
                "ip link set in2 up",
                "ip link set out2 up",
                "ip link set side2 up",
                "ip route add 10.1.0.0/24 via 10.2.0.1",
                "sysctl -qw net.ipv4.ip_forward=1",
                "tc qdisc replace dev out2 root tbf rate 15mbit burst 10kb limit 300kb",
            ],
        )?;
        set(
            &first,
            &[
                "ip addr add 10.1.0.2/24 dev in1",
                "ip addr add 10.2.0.1/24 dev out1",
                "ip addr add 10.8.0.1/24 dev side1",
                "ip link set lo up",
                "ip link set in1 up",
                "ip link set out1 up",
                "ip link set side1 up",
                "ip route add 10.3.0.0/24 via 10.2.0.2",
                "sysctl -qw net.ipv4.ip_forward=1",
                "tc qdisc replace dev out1 root tbf rate 20mbit burst 10kb limit 300kb",
            ],
        )?;
        set(&source, &["ip addr add 10.1.0.1/24 dev s0", "ip link set s0 up", "ip route add default via 10.1.0.2"])?;
        Ok(Self { source, routers: [first, second], destination })
    }
}

#[test]
fn delays_of_two_queues_are_those_of_captures() {
    let road = match Road::new() {
        Ok(road) => road,
        Err(why) => return println!("skipped: delays_of_two_queues_are_those_of_captures: {why}"),
    };
    let dir = tempfile::tempdir().expect("there is room");
    let dir = dir.path();
    let admin = "--credentials home/admin";
    let within = |namespace: &Namespace, arguments: &str, words: &str| {
        let (dir, arguments, words) = (dir.to_owned(), arguments.to_owned(), words.to_owned());
        namespace.run(move || {
            let mut process = Background::start(&dir, &arguments);
            let notes = process.says(&words);
            (process, notes)
        })
    };
    let [first, second] = &road.routers;
    printed(dir, "coordinator init home --name 10.8.0.1");
    let (_coordinator, _notes) = within(first, "coordinator run home --listen 10.8.0.1:7401", "listens on");
    let asked = |arguments: String| {
        let dir = dir.to_owned();
        first.run(move || run(&dir, &arguments))
    };
    let mut running = Vec::new();
    for (n, router) in road.routers.iter().enumerate() {
        let token = asked(format!("fleet invite router-{n} --coordinator 10.8.0.1:7401 {admin}"));
        let token = String::from_utf8(token.stdout).expect("it is text");
        let join = format!("fleet join {} --coordinator 10.8.0.1:7401 --credentials me-{n}", token.trim());
        let joined = router.run({
            let dir = dir.to_owned();
            move || run(&dir, &join)
        });
        assert!(joined.status.success(), "{joined:?}");
        let live = format!("live out{0} --every-packet --log queue-{1} --credentials me-{1}", n + 1, n);
        running.push(within(router, &live, "attached to the coordinator"));
    }
    // Captures before the first queue, between the two, and behind the second.
    let captures = [(first, "in1"), (second, "in2"), (&road.destination, "d0")].map(|(namespace, interface)| {
        let dir = dir.to_owned();
        let arguments = format!("capture {interface} --direction in --where udp --log seen-{interface}");
        namespace.run(move || Background::start(&dir, &arguments))
    });
    until("captures have begun", || {
        ["in1", "in2", "d0"].iter().all(|interface| dir.join(format!("seen-{interface}")).exists()).then_some(())
    });

    let receiver = road.destination.run(|| UdpSocket::bind("10.3.0.2:9").expect("there is a port"));
    let senders = road.source.run(|| {
        [9_001, 9_002].map(|port| {
            let socket = UdpSocket::bind(("10.1.0.1", port)).expect("there is a port");
            socket.connect("10.3.0.2:9").expect("it can be");
            socket
        })
    });
    receiver.set_read_timeout(Some(crate::namespaces::PATIENCE)).expect("it can be");
    let mut buffer = [0; 1_500];
    for burst in 0..BURSTS {
        for number in 0..BURST {
            let size = 300 + usize::from((burst * BURST + number) % 1_000);
            senders[usize::from(number % 2)].send(&buffer[..size]).expect("it can be sent");
        }
        // The next burst begins when this one has arrived, so nothing is dropped.
        (0..BURST).for_each(|_| _ = receiver.recv(&mut buffer).expect("it arrives"));
    }
    let packets = usize::from(BURST * BURSTS);
    // In the first queue, packets that the full bucket lets pass at once are not all seen.
    until("both queues are recorded", || {
        let question = "fleet query udp --schema queued --select count --csv --coordinator 10.8.0.1:7401";
        let counted = asked(format!("{question} {admin}"));
        let count = String::from_utf8_lossy(&counted.stdout).lines().last().and_then(|line| line.parse().ok());
        count.filter(|count: &usize| *count > packets * 3 / 2)
    });
    let way = asked(format!("fleet why udp --json --coordinator 10.8.0.1:7401 {admin}"));
    let way: serde_json::Value = serde_json::from_slice(&way.stdout).expect("it is JSON");
    let hosts: Vec<_> =
        way["hops"].as_array().expect("there are hops").iter().map(|hop| hop["host"].as_str()).collect();
    assert_eq!(hosts, [Some("router-0"), Some("router-1")], "{way}");
    for (process, _) in running {
        assert_eq!(process.end().0, Some(0));
    }
    for process in captures {
        assert_eq!(process.end().0, Some(0));
    }

    // Ports and identifications are unique.
    let rows = |log: &str, columns: &str| -> BTreeMap<(u64, u64), Vec<u64>> {
        let text = printed(dir, &format!("query {log} udp --select src_port,ip_id,{columns} --csv"));
        let row = |line: &str| line.split(',').map(|value| value.parse::<u64>().ok()).collect::<Option<Vec<_>>>();
        text.lines().filter_map(row).map(|row| ((row[0], row[1]), row[2..].to_vec())).collect()
    };
    let seen = ["in1", "in2", "d0"].map(|interface| rows(&format!("seen-{interface}"), "ts"));
    for n in 0..2 {
        let (mut close, mut compared) = (0, 0);
        for (packet, row) in rows(&format!("queue-{n}"), "delay") {
            let (Some(before), Some(behind)) = (seen[n].get(&packet), seen[n + 1].get(&packet)) else { continue };
            compared += 1;
            close += usize::from((row[0] as i64 - (behind[0] as i64 - before[0] as i64)).abs() <= CLOSE);
        }
        println!("queue {n}: {close} of {compared} delays are within 100 us of captures");
        assert!(compared > packets / 2 && close * 100 >= compared * 99, "queue {n}: {close} of {compared}");
    }
}
