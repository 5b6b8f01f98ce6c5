//! A link in user space is a hop of the fleet.

use super::*;

/// Sends bursts of datagrams to the outer end of the link, until it is killed.
const SEND: &str = "while true; do
  for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do head -c 1000 /dev/zero > /dev/udp/100.64.0.1/9; done
  sleep 0.2
done
";

#[test]
fn a_link_is_a_hop() {
    let namespace = match alone(&["namespaces", "tun"]) {
        Ok(namespace) => namespace,
        Err(why) => return println!("skipped: a_link_is_a_hop: {why}"),
    };
    namespace.run(|| {
        ip("ip link set lo up").expect("it is there");
        let dir = tempfile::tempdir().expect("there is room");
        let dir = dir.path();
        let admin = "--credentials home/admin";
        printed(dir, "coordinator init home --name monitor.example");
        let mut coordinator = Background::start(dir, "coordinator run home");
        let _notes = coordinator.says("listens on");
        let token = printed(dir, &format!("fleet invite link {admin}"));
        printed(dir, &format!("fleet join {} --coordinator localhost:7401 --credentials me", token.trim()));
        std::fs::write(dir.join("send.sh"), SEND).expect("there is room");
        let without = run(dir, "link --credentials me -- true");
        assert_eq!(without.status.code(), Some(2), "it needs --log: {without:?}");
        let recording = "link --rate 2mbit --limit 1000packets --log way --credentials me -- bash send.sh";
        let mut link = Background::start(dir, recording);
        let _notes_of_link = link.says("attached to the coordinator");
        let begun = since_epoch();
        let way = until("packets waited in the link", || {
            let way = run(dir, &format!("fleet why udp --json {admin}"));
            let way = serde_json::from_slice::<serde_json::Value>(&way.stdout).ok()?;
            way["hops"][0]["culprits"].as_array().is_some_and(|culprits| !culprits.is_empty()).then_some(way)
        });
        let hop = &way["hops"][0];
        assert_eq!(hop["host"], "link", "{way}");
        // A datagram of 1028 bytes takes 4.1 ms, and others were before it.
        assert!(hop["wait_ns"].as_u64() > Some(3_000_000), "{way}");
        let came: u64 = hop["enqueued_ns"].as_str().and_then(|time| time.parse().ok()).expect("it is a number");
        let minute = 60_000_000_000;
        assert!((begun - minute..since_epoch() + minute).contains(&came), "times are since 1970: {way}");
        let members = printed(dir, &format!("fleet members --json {admin}"));
        assert!(members.contains("link of bash send.sh"), "{members}");
        link.kill();
        assert_eq!(coordinator.end().0, Some(0));
    });
}

fn since_epoch() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is later");
    u64::try_from(now.as_nanos()).expect("it is before 2554")
}
