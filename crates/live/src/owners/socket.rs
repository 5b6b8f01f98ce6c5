//! Finds the local socket of a flow with the kernel's `sock_diag`.

use super::address::Addresses;
use netlink_packet_core::{NLM_F_REQUEST, NetlinkMessage, NetlinkPayload, Nla as _};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP, IPPROTO_UDP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use queuescope_wire::{Family, FlowKey};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};
use std::io;
use std::net::IpAddr;

/// The attribute with the id of the cgroup in which a socket was created: `INET_DIAG_CGROUP_ID` of `linux/inet_diag.h`.
const CGROUP: u16 = 21;
/// The size of the answer buffer in bytes; the kernel answers in at most a page.
const ANSWER: usize = 8192;

/// A netlink socket that finds the sockets of the network namespace in which it was opened.
#[derive(Debug)]
pub(super) struct Sockets {
    door: OwnedFd,
    /// The interface by which packets leave; sockets that are bound to an interface are found only with it.
    interface: u32,
    answer: Vec<u8>,
    /// The local addresses, if they were needed since the lookup began.
    addresses: Option<Addresses>,
}

/// A socket as the kernel describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Socket {
    /// The inode number; none if no process has the socket open.
    pub number: Option<u32>,
    /// The id of the user who created it.
    pub uid: u32,
    /// The id of its cgroup in the unified hierarchy.
    pub cgroup: Option<u64>,
}

impl Sockets {
    /// For sockets whose packets leave by the interface with this index.
    pub(super) fn new(interface: u32) -> io::Result<Self> {
        let door = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
        Ok(Self { door, interface, answer: vec![0; ANSWER], addresses: None })
    }

    /// Begins a lookup: the local addresses may have changed since the last one.
    pub(super) fn begin(&mut self) {
        self.addresses = None;
    }

    /// The socket that sends a flow; none if the flow is not local, or its socket is gone.
    pub(super) fn find(&mut self, flow: &FlowKey) -> io::Result<Option<Socket>> {
        let Some(request) = self.request(flow) else { return Ok(None) };
        let mut message = NetlinkMessage::from(SockDiagMessage::InetRequest(request));
        message.header.flags = NLM_F_REQUEST;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        sendto(&self.door, &bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        // The kernel answers while it handles the request, so this does not block.
        let (length, _) = recv(&self.door, &mut *self.answer, RecvFlags::DONTWAIT)?;
        let answer = NetlinkMessage::<SockDiagMessage>::deserialize(&self.answer[..length]);
        match answer.map_err(io::Error::other)?.payload {
            NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(found)) => self.taken(flow, &found),
            NetlinkPayload::Error(error) => match error.to_io() {
                why if why.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Ok(None),
                why => Err(why),
            },
            _ => Ok(None),
        }
    }

    /// The request for the socket of a flow; none if the flow has no address or port.
    fn request(&self, flow: &FlowKey) -> Option<InetRequest> {
        let (src, dst) = ends(flow)?;
        let family = if src.is_ipv4() { AF_INET } else { AF_INET6 };
        let (src, dst, src_port, dst_port) = match flow.protocol {
            IPPROTO_TCP => (src, dst, flow.src_port, flow.dst_port),
            // "src and dst are swapped for historical reasons" (net/ipv4/udp_diag.c).
            IPPROTO_UDP => (dst, src, flow.dst_port, flow.src_port),
            _ => return None,
        };
        Some(InetRequest {
            family,
            protocol: flow.protocol,
            extensions: ExtensionFlags::empty(),
            states: StateFlags::all(),
            socket_id: SocketId {
                source_port: src_port,
                destination_port: dst_port,
                source_address: src,
                destination_address: dst,
                interface_id: self.interface,
                cookie: [0xff; 8],
            },
        })
    }

    /// Checks an answer. A socket that listens at any address is found for every flow from its port, so the flow's source must be local.
    fn taken(&mut self, flow: &FlowKey, found: &InetResponse) -> io::Result<Option<Socket>> {
        let header = &found.header;
        let Some((src, _)) = ends(flow) else { return Ok(None) };
        let is_any = header.socket_id.source_address.to_canonical().is_unspecified();
        if header.socket_id.source_port != flow.src_port || (is_any && !self.is_local(src)?) {
            return Ok(None);
        }
        let cgroup = found.nlas.iter().find_map(|nla| match nla {
            Nla::Other(nla) if nla.kind() == CGROUP => {
                let mut number = [0; 8];
                (nla.value_len() == number.len()).then(|| nla.emit_value(&mut number))?;
                Some(u64::from_ne_bytes(number))
            }
            _ => None,
        });
        Ok(Some(Socket { number: (header.inode != 0).then_some(header.inode), uid: header.uid, cgroup }))
    }

    fn is_local(&mut self, address: IpAddr) -> io::Result<bool> {
        let addresses = match self.addresses.take() {
            Some(addresses) => addresses,
            None => Addresses::new()?,
        };
        Ok(self.addresses.insert(addresses).has(address, self.interface))
    }
}

/// The source and destination of a flow; none if they are not IP addresses, or there are no ports.
fn ends(flow: &FlowKey) -> Option<(IpAddr, IpAddr)> {
    let address = |bits: u128| match flow.family {
        Family::V4 => Some(IpAddr::V4((bits as u32).into())),
        Family::V6 => Some(IpAddr::V6(bits.into())),
        Family::Link => None,
    };
    (flow.src_port != 0).then_some((address(flow.src)?, address(flow.dst)?))
}
