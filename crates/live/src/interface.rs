//! Interfaces, addresses and routes of this thread's network namespace (rtnetlink).

use crate::capabilities::raised;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_ECHO, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::fd::OwnedFd;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily as SocketFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use std::io;
use std::net::IpAddr;

/// NETLINK_ROUTE is protocol number 0.
const NETLINK_ROUTE: Option<Protocol> = None;
/// `RTAX_FEATURE_ECN` of `linux/rtnetlink.h`.
const ECN: u32 = 1;
/// The size of the answer buffer in bytes; the kernel's answer about one interface is shorter.
const ANSWER: usize = 1 << 16;

/// A netlink socket for the interfaces of the network namespace in which it was opened.
#[derive(Debug)]
pub struct Interfaces(OwnedFd);

/// An address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The interface's index.
    pub interface: u32,
    /// The local address, not that of the peer.
    pub address: IpAddr,
    /// The prefix length.
    pub bits: u8,
}

impl Interfaces {
    /// Opens the socket.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn open() -> io::Result<Self> {
        // The kernel checks the rights of the opener as well as those of the sender.
        let open = || socket_with(SocketFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, NETLINK_ROUTE);
        Ok(Self(raised(open)?))
    }

    /// The index of an interface.
    ///
    /// # Errors
    /// Fails if there is no interface of this name.
    pub fn index(&self, name: &str) -> io::Result<u32> {
        Ok(rustix::net::netdevice::name_to_index(&self.0, name)?)
    }

    /// Sets an interface up. `queue`, if given, is the length of its transmit queue in packets.
    ///
    /// # Errors
    /// Returns the error of the kernel.
    pub fn up(&self, index: u32, queue: Option<u32>) -> io::Result<()> {
        let mut message = link(index);
        (message.header.flags, message.header.change_mask) = (LinkFlags::Up, LinkFlags::Up);
        message.attributes.extend(queue.map(LinkAttribute::TxQueueLen));
        self.request(RouteNetlinkMessage::SetLink(message), 0).map(drop)
    }

    /// Adds an address with the prefix length `bits` to an interface.
    ///
    /// # Errors
    /// Returns the error of the kernel.
    pub fn add_address(&self, index: u32, address: IpAddr, bits: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = bits;
        message.header.index = index;
        // No other host exists, so there is no need to detect duplicate addresses.
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    /// Adds a route: packets to the prefix `to`/`bits` leave by the interface. If `ecn`, TCP negotiates ECN with destinations in the
    /// prefix.
    ///
    /// # Errors
    /// Returns the error of the kernel.
    pub fn add_route(&self, index: u32, to: IpAddr, bits: u8, ecn: bool) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(to);
        message.header.destination_prefix_length = bits;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Boot;
        message.header.scope = if to.is_ipv4() { RouteScope::Link } else { RouteScope::Universe };
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![RouteAttribute::Oif(index)];
        if bits > 0 {
            message.attributes.push(RouteAttribute::Destination(RouteAddress::from(to)));
        }
        if ecn {
            message.attributes.push(RouteAttribute::Metrics(vec![RouteMetric::Features(ECN)]));
        }
        self.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    /// All addresses of all interfaces.
    ///
    /// # Errors
    /// Returns the error of the kernel.
    pub fn addresses(&self) -> io::Result<Vec<Address>> {
        let mut message = NetlinkMessage::from(RouteNetlinkMessage::GetAddress(AddressMessage::default()));
        message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        self.send(message)?;
        let mut addresses = Vec::new();
        let mut answer = vec![0; ANSWER];
        loop {
            let (length, _) = recv(&self.0, &mut *answer, RecvFlags::empty())?;
            let mut rest = &answer[..length];
            // Each datagram holds several messages.
            while !rest.is_empty() {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(io::Error::other)?;
                match &message.payload {
                    NetlinkPayload::Done(_) => return Ok(addresses),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewAddress(found)) => {
                        addresses.extend(Address::of(found));
                    }
                    _ => {}
                }
                let taken = (message.header.length as usize).next_multiple_of(4);
                rest = rest.get(taken..).unwrap_or_default();
            }
        }
    }

    /// The number of outgoing packets that the interface has dropped; a super-packet counts as one. A TUN device drops packets when its
    /// queue is full because its reader is too slow.
    ///
    /// # Errors
    /// Returns the error of the kernel.
    pub fn dropped(&self, index: u32) -> io::Result<u64> {
        let dropped = self.attribute(index, |attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(stats.tx_dropped),
            _ => None,
        })?;
        dropped.ok_or_else(|| io::Error::other("the kernel does not report the drops of an interface"))
    }

    /// The longest packet that the interface carries, in bytes from the network header on (MTU).
    ///
    /// # Errors
    /// Returns the error of the kernel.
    pub fn mtu(&self, index: u32) -> io::Result<u32> {
        let mtu = self.attribute(index, |attribute| match attribute {
            LinkAttribute::Mtu(mtu) => Some(*mtu),
            _ => None,
        })?;
        mtu.ok_or_else(|| io::Error::other("the kernel does not report the MTU of an interface"))
    }

    /// Whether the packets of an interface begin with an Ethernet header. Those of others, such as tunnels, begin with that of IP.
    ///
    /// # Errors
    /// Returns the error of the kernel.
    pub fn is_framed(&self, index: u32) -> io::Result<bool> {
        let answer = self.request(RouteNetlinkMessage::GetLink(link(index)), 0)?;
        let Some(RouteNetlinkMessage::NewLink(found)) = answer else {
            return Err(io::Error::other("the kernel does not report the kind of an interface"));
        };
        Ok(matches!(found.header.link_layer_type, LinkLayerType::Ether | LinkLayerType::Loopback))
    }

    /// An attribute of an interface.
    fn attribute<T>(&self, index: u32, of: impl Fn(&LinkAttribute) -> Option<T>) -> io::Result<Option<T>> {
        let answer = self.request(RouteNetlinkMessage::GetLink(link(index)), 0)?;
        Ok(match &answer {
            Some(RouteNetlinkMessage::NewLink(found)) => found.attributes.iter().find_map(of),
            _ => None,
        })
    }

    /// The packets on the wire that have left the root qdisc of an interface, modulo 2^32, as the qdisc counts them (`tc -s`). None if the
    /// kernel reports no qdisc; one that never queues (`noqueue`) counts nothing.
    ///
    /// # Errors
    /// Returns the error of the kernel.
    pub fn departures(&self, index: u32) -> io::Result<Option<u32>> {
        let mut message = TcMessage::with_index(index.cast_signed());
        message.header.parent = TcHandle::ROOT;
        // Without this flag, some kernels answer only the listeners of a multicast group.
        let answer = self.request(RouteNetlinkMessage::GetQueueDiscipline(message), NLM_F_ECHO)?;
        let attributes = match &answer {
            Some(RouteNetlinkMessage::NewQueueDiscipline(found)) => &found.attributes[..],
            _ => &[],
        };
        let stats = attributes.iter().flat_map(|attribute| match attribute {
            TcAttribute::Stats2(stats) => &stats[..],
            _ => &[],
        });
        Ok(stats.into_iter().find_map(|stats| match stats {
            TcStats2::Basic(basic) => Some(basic.packets),
            _ => None,
        }))
    }

    /// Sends a request and waits until the kernel has handled it. Returns the answer, if it is more than an acknowledgement.
    pub(crate) fn request(&self, what: RouteNetlinkMessage, flags: u16) -> io::Result<Option<RouteNetlinkMessage>> {
        let mut message = NetlinkMessage::from(what);
        message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        self.send(message)?;
        let mut found = None;
        let mut answer = vec![0; ANSWER];
        loop {
            let (length, _) = recv(&self.0, &mut *answer, RecvFlags::empty())?;
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer[..length]);
            match message.map_err(io::Error::other)?.payload {
                NetlinkPayload::InnerMessage(message) => found = Some(message),
                NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                _ => return Ok(found),
            }
        }
    }

    fn send(&self, mut message: NetlinkMessage<RouteNetlinkMessage>) -> io::Result<()> {
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        raised(|| sendto(&self.0, &bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0)))?;
        Ok(())
    }
}

impl Address {
    fn of(found: &AddressMessage) -> Option<Self> {
        let own = found.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Local(address) => Some(*address),
            _ => None,
        });
        // On a point-to-point interface, this is the peer's address.
        let any = found.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        });
        Some(Self { interface: found.header.index, address: own.or(any)?, bits: found.header.prefix_len })
    }
}

fn link(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Namespace;

    #[test]
    fn a_thousand_addresses_are_listed() {
        let namespace = match Namespace::new() {
            Ok(namespace) => namespace,
            Err(why) => return println!("skipped: a_thousand_addresses_are_listed: {why}"),
        };
        let result = namespace.run(|| {
            let interfaces = Interfaces::open()?;
            // The new interface has no address.
            assert_eq!(interfaces.addresses()?, []);
            let index = interfaces.index("lo")?;
            let all = (0..1000u16).map(|number| Address {
                interface: index,
                address: if number % 2 == 0 {
                    IpAddr::from([10, 8, (number >> 8) as u8, number as u8])
                } else {
                    IpAddr::from([0xfd08, 0, 0, 0, 0, 0, 0, number])
                },
                bits: 24,
            });
            let all: Vec<_> = all.collect();
            for one in &all {
                interfaces.add_address(index, one.address, one.bits)?;
            }
            let listed = interfaces.addresses()?;
            assert!(listed.len() == all.len() && all.iter().all(|one| listed.contains(one)), "{}", listed.len());
            Ok::<_, io::Error>(())
        });
        result.expect("the namespace is ours");
    }
}
