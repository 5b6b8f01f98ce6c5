//! Interfaces, addresses and routes of the network namespace that the thread is in (rtnetlink).

use crate::capabilities::raised;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::fd::OwnedFd;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily as SocketFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use std::io;
use std::net::IpAddr;

/// The protocol of that name is number 0.
const NETLINK_ROUTE: Option<Protocol> = None;
/// `RTAX_FEATURE_ECN` of `linux/rtnetlink.h`.
const ECN: u32 = 1;
/// The kernel tells an interface in less.
const ANSWER: usize = 1 << 16;

/// A door to the interfaces of the network namespace that the thread is in that opens it.
#[derive(Debug)]
pub struct Interfaces(OwnedFd);

/// An address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The interface's number.
    pub interface: u32,
    /// Its own address, not that of who is at its other end.
    pub address: IpAddr,
    /// How many bits of it are those of its network.
    pub bits: u8,
}

impl Interfaces {
    /// Opens it.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn open() -> io::Result<Self> {
        // Who opens it must be allowed to do what is asked, as who asks.
        let open = || socket_with(SocketFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, NETLINK_ROUTE);
        Ok(Self(raised(open)?))
    }

    /// The number of an interface.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn index(&self, name: &str) -> io::Result<u32> {
        Ok(rustix::net::netdevice::name_to_index(&self.0, name)?)
    }

    /// An interface is up from now on, with a queue for so many packets before it, if that is said.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn up(&self, index: u32, queue: Option<u32>) -> io::Result<()> {
        let mut message = link(index);
        (message.header.flags, message.header.change_mask) = (LinkFlags::Up, LinkFlags::Up);
        message.attributes.extend(queue.map(LinkAttribute::TxQueueLen));
        self.ask(RouteNetlinkMessage::SetLink(message), 0).map(drop)
    }

    /// An interface has an address, and reaches those that have so many bits in common with it.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn add_address(&self, index: u32, address: IpAddr, bits: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = bits;
        message.header.index = index;
        // Nobody else is there who could have the same.
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        self.ask(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    /// What goes to addresses that have so many bits in common with this one leaves by an interface; TCP agrees on ECN with
    /// who has such an address if it is to.
    ///
    /// # Errors
    /// Those of the kernel.
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
        self.ask(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    /// All addresses of all interfaces.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn addresses(&self) -> io::Result<Vec<Address>> {
        let mut message = NetlinkMessage::from(RouteNetlinkMessage::GetAddress(AddressMessage::default()));
        message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        self.send(message)?;
        let mut addresses = Vec::new();
        let mut answer = vec![0; ANSWER];
        loop {
            let (length, _) = recv(&self.0, &mut *answer, RecvFlags::empty())?;
            let mut rest = &answer[..length];
            // Each answer has several messages.
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

    /// Packets that an interface was to send and dropped so far, a super-packet being one: a TUN device drops what comes while whoever reads it has not
    /// read as much as its queue holds.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn dropped(&self, index: u32) -> io::Result<u64> {
        let answer = self.ask(RouteNetlinkMessage::GetLink(link(index)), 0)?;
        let attributes = match &answer {
            Some(RouteNetlinkMessage::NewLink(found)) => &found.attributes[..],
            _ => &[],
        };
        let dropped = attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(stats.tx_dropped),
            _ => None,
        });
        dropped.ok_or_else(|| io::Error::other("the kernel does not say what an interface dropped"))
    }

    /// Asks for something, and waits until it is done; what the kernel answers, if it is more than that.
    fn ask(&self, what: RouteNetlinkMessage, flags: u16) -> io::Result<Option<RouteNetlinkMessage>> {
        let is_question = matches!(what, RouteNetlinkMessage::GetLink(_));
        let mut message = NetlinkMessage::from(what);
        // A question has an answer of its own.
        message.header.flags = NLM_F_REQUEST | if is_question { 0 } else { NLM_F_ACK } | flags;
        self.send(message)?;
        let mut answer = vec![0; ANSWER];
        let (length, _) = recv(&self.0, &mut *answer, RecvFlags::empty())?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer[..length]);
        match answer.map_err(io::Error::other)?.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            NetlinkPayload::InnerMessage(message) => Ok(Some(message)),
            _ => Ok(None),
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
        // Where both ends have one, this is that of the other.
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
    fn all_addresses_are_told_however_many_there_are() {
        let namespace = match Namespace::new() {
            Ok(namespace) => namespace,
            Err(why) => return println!("skipped: all_addresses_are_told_however_many_there_are: {why}"),
        };
        let told = namespace.run(|| {
            let interfaces = Interfaces::open()?;
            // Nobody has one before.
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
            let told = interfaces.addresses()?;
            assert!(told.len() == all.len() && all.iter().all(|one| told.contains(one)), "{}", told.len());
            Ok::<_, io::Error>(())
        });
        told.expect("it is ours");
    }
}
