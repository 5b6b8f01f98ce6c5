//! The network namespaces and interfaces of one run.
//!
//! What is made here belongs to the process: interfaces are gone when it is, and namespaces when the last process in
//! them is. Nothing of other namespaces is changed, but that the one in which a link begins gets an interface more, and a
//! route to what is behind it.

use queuescope_live::capabilities::raised;
use queuescope_live::{Address, Interfaces, Namespace, ProbeError, Tun};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The packets, or super-packets, that wait in an interface for whoever reads it: what the machine cannot read in time is dropped
/// there.
const QUEUE: u32 = 16_384;
/// The addresses that links take blocks of (RFC 6598), and how many bits all have in common. Bits of the block of an
/// outermost link, and how many more those have that are made within.
const SHARED: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 0);
const SHARED_BITS: u8 = 10;
const OUTERMOST_BITS: u8 = 16;
const INNER_BITS: u8 = 3;
/// Blocks have room for the two ends of a link.
const MOST_BITS: u8 = 30;

/// How hosts behave (`sysctl`): nobody asks for routers, since whatever passes the link is what hosts send to each other; and what one
/// flow has learnt of a way, the next does not begin with.
const HOSTS: [(&str, &str); 2] = [("net/ipv6/conf/default/disable_ipv6", "1"), ("net/ipv4/tcp_no_metrics_save", "1")];

/// How the namespace of a command behaves: it forwards what comes from a link within it.
const BEHIND: [(&str, &str); 2] = [("net/ipv6/conf/all/forwarding", "1"), ("net/ipv4/ip_forward", "1")];

/// An end of a network in user space.
#[derive(Debug)]
pub struct End {
    /// Where it is; none: where whoever made it is.
    pub namespace: Option<Namespace>,
    /// The interface's other end.
    pub tun: Tun,
    interfaces: Interfaces,
    index: u32,
}

/// Both ends of a link that a command is run behind.
#[derive(Debug)]
pub struct Testbed {
    /// That of the command, in a namespace of its own.
    pub inside: End,
    /// The other, in the namespace that the link was begun in.
    pub outside: End,
}

impl Testbed {
    /// Makes them.
    ///
    /// # Errors
    /// If this user may not, or there are no addresses left.
    pub fn new() -> Result<Self, ProbeError> {
        let outside = End::here("qs%d")?;
        let (first, bits) = outside.block()?;
        let inside = End::away("link0", &BEHIND)?;
        let own = IpAddr::V4(Ipv4Addr::from(u32::from(first) + 2));
        inside.add(own, bits)?;
        inside.add(beside(own), bits + 32)?;
        inside.is_way_to_all()?;
        Ok(Self { inside, outside })
    }
}

impl End {
    /// One where the thread is, that is up and has no address.
    ///
    /// # Errors
    /// If this user may not.
    fn here(name: &str) -> Result<Self, ProbeError> {
        let tun = Tun::open(name)?;
        let interfaces = Interfaces::open().map_err(refused("ask for interfaces"))?;
        let index = interfaces.index(tun.name()).map_err(refused("find an interface"))?;
        interfaces.up(index, Some(QUEUE)).map_err(refused("make an interface work"))?;
        Ok(Self { namespace: None, tun, interfaces, index })
    }

    /// One in a namespace of its own with these settings, that is up and has no address.
    ///
    /// # Errors
    /// If this user may not.
    fn away(name: &str, settings: &'static [(&str, &str)]) -> Result<Self, ProbeError> {
        let namespace = Namespace::new()?;
        let name = name.to_owned();
        let made = namespace.run(move || {
            settings.iter().try_for_each(|(name, value)| set(name, value))?;
            let interfaces = Interfaces::open().map_err(refused("ask for interfaces"))?;
            let index = interfaces.index("lo").map_err(refused("find the loopback interface"))?;
            interfaces.up(index, None).map_err(refused("make the loopback interface work"))?;
            Self::here(&name)
        })?;
        Ok(Self { namespace: Some(namespace), ..made })
    }

    /// Hosts that share a namespace of their own: they have these addresses, and reach those others; TCP agrees on ECN with
    /// some of them.
    ///
    /// # Errors
    /// If this user may not.
    pub fn of_hosts(
        addresses: impl IntoIterator<Item = Ipv4Addr>,
        others: impl IntoIterator<Item = (Ipv4Addr, bool)>,
    ) -> Result<Self, ProbeError> {
        let end = Self::away("hosts0", &HOSTS)?;
        for address in addresses {
            end.add(IpAddr::V4(address), 32)?;
        }
        for (other, ecn) in others {
            let added = end.interfaces.add_route(end.index, IpAddr::V4(other), 32, ecn);
            added.map_err(refused("make a route"))?;
        }
        Ok(end)
    }

    /// It has an address.
    ///
    /// # Errors
    /// Those of the kernel.
    fn add(&self, address: IpAddr, bits: u8) -> Result<(), ProbeError> {
        self.interfaces.add_address(self.index, address, bits).map_err(refused("give an interface an address"))
    }

    /// What goes to addresses that nobody else has goes here.
    ///
    /// # Errors
    /// Those of the kernel.
    fn is_way_to_all(&self) -> Result<(), ProbeError> {
        for all in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
            self.interfaces.add_route(self.index, all, 0, false).map_err(refused("make a route"))?;
        }
        Ok(())
    }

    /// Packets that its interface has dropped: more came than were read in time.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn unread(&self) -> io::Result<u64> {
        self.interfaces.dropped(self.index)
    }

    /// Takes a block of addresses that nobody else has: this has the first, and what goes to the others goes here. Its lowest
    /// address, and how many bits all have in common. Within the block of another link it is a part of that.
    fn block(&self) -> Result<(Ipv4Addr, u8), ProbeError> {
        let known = self.interfaces.addresses().map_err(refused("ask for addresses"))?;
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
                why = io::Error::other("too many links are in each other");
                break;
            }
            let first = Ipv4Addr::from(u32::from(from) + (place << (32 - bits)));
            let is_taken = |known: &Address| matches!(known.address, IpAddr::V4(other) if within(other, first, bits));
            if known.iter().any(is_taken) {
                continue;
            }
            let lowest = IpAddr::V4(first);
            // Another may take it at the same time.
            match self.interfaces.add_route(self.index, lowest, bits, false) {
                Ok(()) => {
                    let own = IpAddr::V4(Ipv4Addr::from(u32::from(first) + 1));
                    self.add(own, 32)?;
                    self.add(beside(own), 128)?;
                    let routed = self.interfaces.add_route(self.index, beside(lowest), 32 + bits, false);
                    routed.map_err(refused("make a route"))?;
                    return Ok((first, bits));
                }
                Err(error) => why = error,
            }
        }
        Err(refused("take a block of addresses")(why))
    }
}

/// The IPv6 address that goes with one of a link's: fd71:7363 and that.
fn beside(address: IpAddr) -> IpAddr {
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

/// Sets something of the thread's namespace (`sysctl`), if there is such a thing.
fn set(name: &str, value: &str) -> Result<(), ProbeError> {
    match raised(|| std::fs::write(format!("/proc/sys/{name}"), value)) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(refused("set how a network namespace behaves")(why)),
        _ => Ok(()),
    }
}
