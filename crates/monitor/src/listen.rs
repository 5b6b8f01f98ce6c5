//! The address and port at which metrics are served.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The addresses to listen at. The first one that can be bound is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen(Vec<SocketAddr>);

impl Listen {
    /// The addresses, in the order of the attempts.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.0
    }

    /// Parses `127.0.0.1:9090`, `[::1]:9090`, or `:9090`, which means every address of the machine.
    ///
    /// # Errors
    /// Fails if the text has none of these forms; the message is for the user.
    pub fn read(text: &str) -> Result<Self, String> {
        let every: [IpAddr; 2] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
        let port = text.strip_prefix(':').and_then(|port| port.parse().ok());
        let read = match port {
            Some(port) => Some(every.map(|address| SocketAddr::new(address, port)).to_vec()),
            None => text.parse().ok().map(|address| vec![address]),
        };
        read.map(Self).ok_or_else(|| {
            "expected an address and a port, such as 127.0.0.1:9090 or [::1]:9090, or :9090 for every address of this machine".to_owned()
        })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.first().map_or(Ok(()), |address| address.fmt(f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let read = |text| Listen::read(text).map(|listen| listen.0.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(read(":9090").unwrap(), ["[::]:9090", "0.0.0.0:9090"]);
        assert_eq!(read("127.0.0.1:80").unwrap(), ["127.0.0.1:80"]);
        assert_eq!(read("[::1]:80").unwrap(), ["[::1]:80"]);
        for wrong in ["", ":", "9090", "localhost:9090", ":99999", "127.0.0.1", "::1:9090x", ":-1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
