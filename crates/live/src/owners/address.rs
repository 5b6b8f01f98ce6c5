//! The addresses of this machine, as its interfaces have them.
//!
//! That a socket can be bound to an address does not say that it is one of them: `net.ipv4.ip_nonlocal_bind` lets it have any.
//! What only a route makes an address of this machine (`ip route add local`) is none here.

use crate::interface::{Address, Interfaces};
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// The number of the loopback interface, in every network namespace (`LOOPBACK_IFINDEX` of the kernel).
const LOOPBACK: u32 = 1;

/// All addresses of a network namespace.
#[derive(Debug, Default)]
pub(super) struct Addresses(Vec<Address>);

impl Addresses {
    /// Those of the network namespace that the thread is in, now.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Interfaces::open()?.addresses()?))
    }

    /// Whether an address is of this machine, where packets leave by this interface: those of a link are of that one alone.
    pub(super) fn has(&self, address: IpAddr, interface: u32) -> bool {
        let of_link = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
        self.0.iter().any(|own| match (own.address, address) {
            // All of a network of the loopback interface are of this machine, as 127.0.0.2 (`fib_add_ifaddr` of the kernel).
            (IpAddr::V4(of), IpAddr::V4(address)) if own.interface == LOOPBACK => same(of, address, own.bits),
            (of, address) => of == address && (!of_link || own.interface == interface),
        })
    }
}

/// Whether two are of one network.
fn same(one: Ipv4Addr, other: Ipv4Addr, bits: u8) -> bool {
    let network = |address: Ipv4Addr| address.to_bits().checked_shr(32 - u32::from(bits.min(32))).unwrap_or(0);
    network(one) == network(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(address: &str, bits: u8, interface: u32) -> Address {
        Address { interface, address: address.parse().expect("it is one"), bits }
    }

    #[test]
    fn addresses_of_this_machine_are_told_from_others() {
        let all = [
            own("127.0.0.1", 8, 1),
            own("10.1.0.1", 24, 1),
            own("10.2.0.1", 24, 2),
            own("0.0.0.0", 0, 3),
            own("::1", 128, 1),
            own("fd01::1", 64, 2),
            own("fe80::1", 64, 2),
            own("fe80::3", 64, 3),
        ];
        let addresses = Addresses(all.to_vec());
        let has = |address: &str| addresses.has(address.parse().expect("it is one"), 2);
        let is = ["127.0.0.1", "127.1.2.3", "10.1.0.77", "10.2.0.1", "::1", "fd01::1", "fe80::1"];
        let is_not = ["128.0.0.1", "10.1.1.1", "10.2.0.2", "::2", "fd01::2", "fe80::2", "fe80::3", "::ffff:10.2.0.1"];
        for (addresses, expected) in [(&is[..], true), (&is_not[..], false)] {
            addresses.iter().for_each(|address| assert_eq!(has(address), expected, "{address}"));
        }
        assert!(!Addresses::default().has(Ipv4Addr::LOCALHOST.into(), 2));
    }
}
