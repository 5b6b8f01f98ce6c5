//! The connection by which whoever runs the command came to this machine: not to be cut off by one's own command.

use super::never::Terms;
use queuescope_live::{Condition, Field};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A connection of SSH (`SSH_CONNECTION` of ssh(1)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    client: SocketAddr,
    server: SocketAddr,
}

/// Processes from this one up to the first, at most.
const MOST: usize = 64;
const TCP: u128 = 6;

impl Session {
    /// That of this process, or of the nearest one above it that says: `sudo` does not pass the variable on.
    #[expect(clippy::disallowed_methods, reason = "only the environment says by which connection somebody came")]
    pub fn find() -> Option<Self> {
        let own = std::env::var(NAME).ok();
        own.as_deref().and_then(Self::read).or_else(|| Self::above(std::process::id()))
    }

    /// Of the processes above one, as far as this user may look at them.
    #[expect(
        clippy::disallowed_methods,
        reason = "a process's file says which is above it, and with which environment"
    )]
    fn above(mut process: u32) -> Option<Self> {
        for _ in 0..MOST {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            // A name may have anything in it; behind it are the state and the process above.
            process = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            let variables = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            let mut values = variables.split(|byte| *byte == 0).filter_map(|one| std::str::from_utf8(one).ok());
            let found = values.find_map(|one| one.strip_prefix(NAME)?.strip_prefix('='));
            if let Some(session) = found.and_then(Self::read) {
                return Some(session);
            }
        }
        None
    }

    /// Reads `192.0.2.7 52114 192.0.2.1 22`: whose side is first.
    fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let mut address = || {
            // A zone is no part of what packets carry.
            let ip: IpAddr = words.next()?.split('%').next()?.parse().ok()?;
            Some(SocketAddr::new(ip.to_canonical(), words.next()?.parse().ok()?))
        };
        let (client, server) = (address()?, address()?);
        words.next().is_none().then_some(Self { client, server })
    }

    /// Both directions, as flows.
    pub fn terms(&self) -> Terms {
        let one = |field, value: u128| Condition::Within(field, vec![(value, value)]);
        let ip = |address: SocketAddr| match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        let flow = |from: SocketAddr, to: SocketAddr| {
            vec![
                one(Field::Source, ip(from)),
                one(Field::Destination, ip(to)),
                one(Field::SourcePort, from.port().into()),
                one(Field::DestinationPort, to.port().into()),
                one(Field::Protocol, TCP),
            ]
        };
        vec![flow(self.client, self.server), flow(self.server, self.client)]
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the TCP connection of your SSH session ({} to {})", self.client, self.server)
    }
}

const NAME: &str = "SSH_CONNECTION";

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_live::Never;
    use queuescope_wire::{Family, FlowKey};
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn both_directions_are_exempt_and_nothing_else() {
        let never = |text| Never::new(Session::read(text).unwrap().terms()).unwrap();
        let v4 = never("10.9.0.7 52114 10.9.0.1 22");
        let out = FlowKey {
            src: 0x0a09_0001,
            dst: 0x0a09_0007,
            src_port: 22,
            dst_port: 52114,
            protocol: 6,
            family: Family::V4,
            ..FlowKey::default()
        };
        let back = FlowKey { src: out.dst, dst: out.src, src_port: out.dst_port, dst_port: out.src_port, ..out };
        assert!(v4.holds(&out) && v4.holds(&back));
        assert!(never("::ffff:10.9.0.7 52114 ::ffff:10.9.0.1 22").holds(&out));
        for other in [
            FlowKey { dst_port: 52115, ..out },
            FlowKey { protocol: 17, ..out },
            FlowKey { dst: 0x0a09_0008, ..out },
            FlowKey { src_port: 23, ..out },
        ] {
            assert!(!v4.holds(&other), "{other:?}");
        }
        let link_local = never("fe80::7%eth0 52114 fe80::1%eth0 22");
        let [src, dst] = [0xfe80u128 << 112 | 1, 0xfe80u128 << 112 | 7];
        assert!(link_local.holds(&FlowKey { src, dst, family: Family::V6, ..out }));
    }

    #[test]
    fn what_is_no_connection_is_none() {
        for text in [
            "",
            "10.9.0.7",
            "10.9.0.7 1 10.9.0.1",
            "10.9.0.7 1 10.9.0.1 22 3",
            "host 1 10.9.0.1 22",
            "10.9.0.7 99999 10.9.0.1 22",
        ] {
            assert_eq!(Session::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_process_above_says_it_where_this_one_does_not() {
        // The shell has it, and what it begins has not.
        let mut child = Command::new("sh")
            .args(["-c", "env -u SSH_CONNECTION sh -c 'echo $$; read line'; true"])
            .env(NAME, "10.9.0.7 52114 10.9.0.1 22")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh is there");
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().expect("it is piped")).read_line(&mut said).expect("it can be read");
        let below = said.trim_end().parse().expect("a number");
        let found = Session::above(below);
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert_eq!(found, Session::read("10.9.0.7 52114 10.9.0.1 22"));
    }
}
