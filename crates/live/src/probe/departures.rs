//! Departures as the qdisc itself counts them.

use crate::Interfaces;

/// The packets that left the root qdisc of an interface since the start.
#[derive(Debug, Default)]
pub struct Departures {
    /// None if the qdisc cannot be read: then nothing is counted.
    interfaces: Option<Interfaces>,
    interface: u32,
    /// The qdisc's count at the last reading, modulo 2^32.
    last: Option<u32>,
    packets: u64,
}

impl Departures {
    /// Starts to count those of an interface of this thread's network namespace.
    pub fn new(interface: u32) -> Self {
        let mut departures = Self { interfaces: Interfaces::open().ok(), interface, ..Self::default() };
        departures.update();
        departures
    }

    /// Reads the qdisc. A count that cannot be read leaves the sum as it is.
    pub fn update(&mut self) {
        let read = self.interfaces.as_ref().and_then(|interfaces| interfaces.departures(self.interface).ok().flatten());
        self.add(read);
    }

    /// Adds what left since the last reading. A new qdisc starts from zero, and one of several below it that is replaced takes its count
    /// along: then the reading only starts a new sum.
    fn add(&mut self, read: Option<u32>) {
        let since = read.zip(self.last).map(|(read, last)| read.wrapping_sub(last));
        self.packets += since.filter(|since| since.cast_signed() >= 0).map_or(0, u64::from);
        self.last = read;
    }

    /// The packets on the wire that left until the last reading.
    pub fn packets(&self) -> u64 {
        self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Namespace;
    use std::net::UdpSocket;
    use std::process::Command;

    #[test]
    fn counts_wrap_and_start_again_with_a_new_qdisc() {
        let mut departures = Departures::default();
        let mut after = |read| {
            departures.add(read);
            departures.packets()
        };
        // The first reading is where counting starts.
        assert_eq!(after(Some(u32::MAX - 1)), 0);
        assert_eq!(after(Some(3)), 5);
        assert_eq!(after(Some(3)), 5);
        // A new qdisc.
        assert_eq!(after(Some(0)), 5);
        assert_eq!(after(Some(7)), 12);
        // None for a while.
        assert_eq!(after(None), 12);
        assert_eq!(after(Some(100)), 12);
        assert_eq!(after(Some(101)), 13);
    }

    /// Every packet that is sent leaves some qdiscs; an interface without a qdisc counts none.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test runs tc")]
    fn a_qdisc_counts_what_leaves_it() {
        let test = "a_qdisc_counts_what_leaves_it";
        let namespace = match Namespace::new() {
            Ok(namespace) => namespace,
            Err(why) => return println!("skipped: {test}: {why}"),
        };
        let sent = namespace.run(move || {
            let interfaces = Interfaces::open().expect("the namespace is ours");
            let lo = interfaces.index("lo").expect("it is there");
            interfaces.up(lo, None).expect("the namespace is ours");
            assert_eq!(interfaces.departures(lo).expect("lo exists"), Some(0));
            assert!(interfaces.departures(lo + 1000).is_err());
            let qdiscs = ["pfifo", "tbf rate 1gbit burst 100k limit 1m", "fq_codel", "htb default 1", "netem", "cake"];
            let sent = qdiscs.into_iter().filter_map(move |qdisc| {
                let words = ["qdisc", "replace", "dev", "lo", "root"].into_iter().chain(qdisc.split(' '));
                let output = Command::new("tc").args(words).output().ok()?;
                if !output.status.success() {
                    println!("skipped: {test}: {qdisc}: {}", String::from_utf8_lossy(&output.stderr).trim_end());
                    return None;
                }
                let mut departures = Departures::new(lo);
                let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a port");
                (0..100).for_each(|_| drop(socket.send_to(&[0; 100], "127.0.0.1:9")));
                departures.update();
                Some((qdisc, departures.packets()))
            });
            sent.collect::<Vec<_>>()
        });
        // Nobody listens, so the kernel answers some.
        assert!(sent.iter().all(|(_, packets)| (100..=200).contains(packets)), "{sent:?}");
    }
}
