//! The network namespaces and interfaces of one run.
//!
//! Everything made here belongs to the process: interfaces disappear with it, and namespaces disappear with the last process in
//! them. Other namespaces stay unchanged, except that the one in which a link starts gets one more interface and a
//! route to the addresses behind it.

use crate::device::Device;
use crate::error::Error;
use queuescope_live::capabilities::raised;
use queuescope_live::{Address, EthernetPort, Interfaces, Namespace, ProbeError, Tun};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The length of an interface's transmit queue, in packets or super-packets. The kernel drops what the machine does not read in time
/// there.
const QUEUE: u32 = 16_384;
/// The range from which links take blocks of addresses (RFC 6598), and its prefix length. Then the prefix length of an
/// outermost link's block, and how many bits longer the prefix of a link within it is.
const SHARED: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 0);
const SHARED_BITS: u8 = 10;
const OUTERMOST_BITS: u8 = 16;
const INNER_BITS: u8 = 3;
/// The longest prefix of a block: it has room for the two ends of a link.
const MOST_BITS: u8 = 30;

/// `sysctl` settings of hosts. No host sends router solicitations, because only the traffic of the scenario may pass the link. A flow does
/// not start with what an earlier flow learnt of the path.
const HOST_SYSCTLS: [(&str, &str); 2] =
    [("net/ipv6/conf/default/disable_ipv6", "1"), ("net/ipv4/tcp_no_metrics_save", "1")];

/// `sysctl` settings of a command's namespace: it forwards packets of links within it.
const COMMAND_SYSCTLS: [(&str, &str); 2] = [("net/ipv6/conf/all/forwarding", "1"), ("net/ipv4/ip_forward", "1")];

/// An end of a network in user space.
#[derive(Debug)]
pub struct NetworkEnd {
    /// The namespace of the interface; `None`: that of the thread that made it.
    pub namespace: Option<Namespace>,
    /// The interface, or the other side of it.
    pub device: Device,
    interfaces: Interfaces,
    index: u32,
}

/// Both ends of a link that a command is run behind.
#[derive(Debug)]
pub struct Testbed {
    /// The command's end, in a namespace of its own.
    pub inside: NetworkEnd,
    /// The other end, in the namespace in which the link was started.
    pub outside: NetworkEnd,
}

impl Testbed {
    /// Makes both ends.
    ///
    /// # Errors
    /// Fails if this user lacks the rights, or no block of addresses is free.
    pub fn new() -> Result<Self, ProbeError> {
        let outside = NetworkEnd::open_here("qs%d")?;
        let (first, bits) = outside.take_block()?;
        let inside = NetworkEnd::in_new_namespace("link0", &COMMAND_SYSCTLS)?;
        let own = IpAddr::V4(Ipv4Addr::from(u32::from(first) + 2));
        inside.add_address(own, bits)?;
        inside.add_address(ipv6_of(own), bits + 32)?;
        inside.add_default_routes()?;
        Ok(Self { inside, outside })
    }
}

impl NetworkEnd {
    /// Makes an end in the namespace of this thread. It is up and has no address.
    ///
    /// # Errors
    /// Fails if this user lacks the rights.
    fn open_here(name: &str) -> Result<Self, ProbeError> {
        let tun = Tun::open(name)?;
        let interfaces = Interfaces::open().map_err(refused("list interfaces"))?;
        let index = interfaces.index(tun.name()).map_err(refused("find an interface"))?;
        interfaces.up(index, Some(QUEUE)).map_err(refused("bring an interface up"))?;
        Ok(Self { namespace: None, device: Device::Tun(tun), interfaces, index })
    }

    /// An interface that exists, in the namespace of this thread, as an end.
    ///
    /// # Errors
    /// Fails if the interface is missing, down or not Ethernet, or this user lacks the rights.
    pub fn at(name: &str) -> Result<Self, Error> {
        let port = EthernetPort::open(name)?;
        let interfaces = Interfaces::open().map_err(refused("list interfaces"))?;
        let index = interfaces.index(name).map_err(refused("find an interface"))?;
        Ok(Self { namespace: None, device: Device::Ethernet(port), interfaces, index })
    }

    /// Makes an end in a namespace of its own with these `sysctl` settings. It is up and has no address.
    ///
    /// # Errors
    /// Fails if this user lacks the rights.
    fn in_new_namespace(name: &str, settings: &'static [(&str, &str)]) -> Result<Self, ProbeError> {
        let namespace = Namespace::new()?;
        let name = name.to_owned();
        let made = namespace.run(move || {
            settings.iter().try_for_each(|(name, value)| set_sysctl(name, value))?;
            let interfaces = Interfaces::open().map_err(refused("list interfaces"))?;
            let index = interfaces.index("lo").map_err(refused("find the loopback interface"))?;
            interfaces.up(index, None).map_err(refused("bring the loopback interface up"))?;
            Self::open_here(&name)
        })?;
        Ok(Self { namespace: Some(namespace), ..made })
    }

    /// Makes the end of hosts that share one namespace. They have `addresses`, and routes to `others`, where the flag says whether
    /// TCP negotiates ECN with that address.
    ///
    /// # Errors
    /// Fails if this user lacks the rights.
    pub fn with_hosts(
        addresses: impl IntoIterator<Item = Ipv4Addr>,
        others: impl IntoIterator<Item = (Ipv4Addr, bool)>,
    ) -> Result<Self, ProbeError> {
        let end = Self::in_new_namespace("hosts0", &HOST_SYSCTLS)?;
        for address in addresses {
            end.add_address(IpAddr::V4(address), 32)?;
        }
        for (other, ecn) in others {
            let added = end.interfaces.add_route(end.index, IpAddr::V4(other), 32, ecn);
            added.map_err(refused("add a route"))?;
        }
        Ok(end)
    }

    /// Gives the interface an address.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    fn add_address(&self, address: IpAddr, bits: u8) -> Result<(), ProbeError> {
        self.interfaces.add_address(self.index, address, bits).map_err(refused("add an address to an interface"))
    }

    /// Makes this interface the default route.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    fn add_default_routes(&self) -> Result<(), ProbeError> {
        for all in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
            self.interfaces.add_route(self.index, all, 0, false).map_err(refused("add a route"))?;
        }
        Ok(())
    }

    /// How many packets were dropped because they were not read in time.
    ///
    /// # Errors
    /// Returns the error of the kernel.
    pub fn unread(&self) -> io::Result<u64> {
        match &self.device {
            Device::Tun(_) => self.interfaces.dropped(self.index),
            Device::Ethernet(port) => port.unread(),
        }
    }

    /// Takes a block of addresses that nothing else uses. This end gets the first address after the lowest, and a route to the
    /// block. Returns the lowest address and the prefix length. Within another link, the block is a part of that link's block.
    fn take_block(&self) -> Result<(Ipv4Addr, u8), ProbeError> {
        let known = self.interfaces.addresses().map_err(refused("list addresses"))?;
        let ours = |known: &Address| match known.address {
            IpAddr::V4(address) => {
                (known.bits < 32 && within(address, SHARED, SHARED_BITS)).then_some((address, known.bits))
            }
            IpAddr::V6(_) => None,
        };
        let (from, bits) = match known.iter().find_map(ours) {
            Some((around, bits)) => (network(around, bits), bits + INNER_BITS),
            None => (SHARED, OUTERMOST_BITS),
        };
        let count =
            1u32 << if from == SHARED && bits == OUTERMOST_BITS { OUTERMOST_BITS - SHARED_BITS } else { INNER_BITS };
        let mut why = io::Error::other("no block of addresses is free");
        for place in 0..count {
            if bits > MOST_BITS {
                why = io::Error::other("links are nested too deeply");
                break;
            }
            let first = Ipv4Addr::from(u32::from(from) + (place << (32 - bits)));
            let is_taken = |known: &Address| matches!(known.address, IpAddr::V4(other) if within(other, first, bits));
            if known.iter().any(is_taken) {
                continue;
            }
            let lowest = IpAddr::V4(first);
            // Another process may take the block at the same time; then adding the route fails.
            match self.interfaces.add_route(self.index, lowest, bits, false) {
                Ok(()) => {
                    let own = IpAddr::V4(Ipv4Addr::from(u32::from(first) + 1));
                    self.add_address(own, 32)?;
                    self.add_address(ipv6_of(own), 128)?;
                    let routed = self.interfaces.add_route(self.index, ipv6_of(lowest), 32 + bits, false);
                    routed.map_err(refused("add a route"))?;
                    return Ok((first, bits));
                }
                Err(error) => why = error,
            }
        }
        Err(refused("take a block of addresses")(why))
    }
}

/// The IPv6 address that belongs to an IPv4 address of a link: fd71:7363 followed by that address.
fn ipv6_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let [high, low] = [u32::from(address) >> 16, u32::from(address) & 0xffff].map(|half| half as u16);
            IpAddr::V6(Ipv6Addr::new(0xfd71, 0x7363, high, low, 0, 0, 0, 1))
        }
        IpAddr::V6(_) => address,
    }
}

fn network(address: Ipv4Addr, bits: u8) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(address) & u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0))
}

fn within(address: Ipv4Addr, first: Ipv4Addr, bits: u8) -> bool {
    network(address, bits) == network(first, bits)
}

fn refused(what: &'static str) -> impl Fn(io::Error) -> ProbeError {
    move |why| ProbeError::Refused { what, why: why.to_string() }
}

/// Writes a `sysctl` setting of the thread's namespace, if the kernel has it.
fn set_sysctl(name: &str, value: &str) -> Result<(), ProbeError> {
    match raised(|| std::fs::write(format!("/proc/sys/{name}"), value)) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(refused("set a sysctl of a network namespace")(why)),
        _ => Ok(()),
    }
}
