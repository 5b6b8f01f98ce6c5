//! The addresses of this machine's interfaces.
//!
//! That a socket can be bound to an address does not make the address local: `net.ipv4.ip_nonlocal_bind` allows any address.
//! Addresses that are local only by a route (`ip route add local`) are not included.

use crate::interface::{Address, Interfaces};
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// The index of the loopback interface in every network namespace (`LOOPBACK_IFINDEX` of the kernel).
const LOOPBACK: u32 = 1;

/// All addresses of a network namespace.
#[derive(Debug, Default)]
pub(super) struct Addresses(Vec<Address>);

impl Addresses {
    /// The current addresses of this thread's network namespace.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Interfaces::open()?.addresses()?))
    }

    /// Whether an address is local for packets that leave by `interface`. A link-local address belongs to its own interface only.
    pub(super) fn has(&self, address: IpAddr, interface: u32) -> bool {
        let of_link = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
        self.0.iter().any(|own| match (own.address, address) {
            // The whole network of a loopback address is local, such as 127.0.0.2 (`fib_add_ifaddr` of the kernel).
            (IpAddr::V4(of), IpAddr::V4(address)) if own.interface == LOOPBACK => same(of, address, own.bits),
            (of, address) => of == address && (!of_link || own.interface == interface),
        })
    }
}

/// Whether two addresses are in the same network.
fn same(one: Ipv4Addr, other: Ipv4Addr, bits: u8) -> bool {
    let network = |address: Ipv4Addr| address.to_bits().checked_shr(32 - u32::from(bits.min(32))).unwrap_or(0);
    network(one) == network(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(address: &str, bits: u8, interface: u32) -> Address {
        Address { interface, address: address.parse().expect("an address"), bits }
    }

    #[test]
    fn only_local_addresses_are_recognized() {
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
        let has = |address: &str| addresses.has(address.parse().expect("an address"), 2);
        let is = ["127.0.0.1", "127.1.2.3", "10.1.0.77", "10.2.0.1", "::1", "fd01::1", "fe80::1"];
        let is_not = ["128.0.0.1", "10.1.1.1", "10.2.0.2", "::2", "fd01::2", "fe80::2", "fe80::3", "::ffff:10.2.0.1"];
        for (addresses, expected) in [(&is[..], true), (&is_not[..], false)] {
            addresses.iter().for_each(|address| assert_eq!(has(address), expected, "{address}"));
        }
        assert!(!Addresses::default().has(Ipv4Addr::LOCALHOST.into(), 2));
    }
}
