//! The SSH connection of the user who runs the command. It is exempt from acting, so that users cannot cut themselves off.

use super::never::Exemptions;
use queuescope_live::{Condition, Field};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The endpoints of an SSH connection, from `SSH_CONNECTION` (ssh(1)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    client: SocketAddr,
    server: SocketAddr,
}

/// The maximum number of parent processes that are searched.
const MOST: usize = 64;
const TCP: u128 = 6;

impl Session {
    /// The session of this process, or of its nearest ancestor that has the variable: `sudo` does not pass the variable on.
    #[expect(clippy::disallowed_methods, reason = "only the environment says by which connection somebody came")]
    pub fn find() -> Option<Self> {
        let own = std::env::var(NAME).ok();
        own.as_deref().and_then(Self::read).or_else(|| Self::above(std::process::id()))
    }

    /// The session of the nearest ancestor of `process`. Ancestors whose environment this user may not read are skipped.
    #[expect(
        clippy::disallowed_methods,
        reason = "a process's file says which is above it, and with which environment"
    )]
    fn above(mut process: u32) -> Option<Self> {
        for _ in 0..MOST {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            // The process name may hold any byte, even brackets. After its closing bracket come the state and the parent's PID.
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

    /// Parses `192.0.2.7 52114 192.0.2.1 22`: the client's side first.
    fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let mut address = || {
            // A zone id is not part of a packet.
            let ip: IpAddr = words.next()?.split('%').next()?.parse().ok()?;
            Some(SocketAddr::new(ip.to_canonical(), words.next()?.parse().ok()?))
        };
        let (client, server) = (address()?, address()?);
        words.next().is_none().then_some(Self { client, server })
    }

    /// Both directions of the connection.
    pub fn exemptions(&self) -> Exemptions {
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
        let never = |text| Never::new(Session::read(text).unwrap().exemptions()).unwrap();
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
    fn invalid_values_are_ignored() {
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
    fn the_session_of_an_ancestor_is_found() {
        // The shell has the variable; its child does not.
        let mut child = Command::new("sh")
            .args(["-c", "env -u SSH_CONNECTION sh -c 'echo $$; read line'; true"])
            .env(NAME, "10.9.0.7 52114 10.9.0.1 22")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh is there");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("it is piped")).read_line(&mut line).expect("it can be read");
        let below = line.trim_end().parse().expect("a number");
        let found = Session::above(below);
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert_eq!(found, Session::read("10.9.0.7 52114 10.9.0.1 22"));
    }
}
