//! Two hosts and a chain of nodes between them, each in a network namespace of its own.

use crate::namespaces::{self, PATIENCE};
use queuescope_live::Namespace;
use queuescope_live::capture::{Capture, CaptureParams, Captured, Direction, Woken};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

/// The address of the receiving host, and that of a sending one. Further senders follow.
pub const RECEIVER: [u8; 4] = [10, 7, 0, 200];
pub const SENDER: [u8; 4] = [10, 7, 0, 1];
/// The MAC addresses of the hosts.
pub const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 0xa], [2, 0, 0, 0, 0, 0xb]];
/// The interface of a host, and those of a node: towards the sender and towards the receiver.
pub const ETH: &str = "eth0";
pub const LEFT: &str = "left0";
pub const RIGHT: &str = "right0";
/// The MTU of the hosts' cables.
pub const MTU: u32 = 1500;

/// How a chain is made.
#[derive(Clone, Copy)]
pub struct ChainParams {
    /// How many nodes are between the hosts.
    pub nodes: usize,
    /// The MTU of the cables between nodes.
    pub inner_mtu: u32,
    /// The addresses of the sending host.
    pub senders: u8,
    /// Whether hosts segment and sum in software, so that frames are complete when they leave their host. BMv2 needs it.
    pub is_plain: bool,
}

/// Hosts, nodes and the cables between them. All disappear with this value.
pub struct Chain {
    pub sender: Namespace,
    pub nodes: Vec<Namespace>,
    pub receiver: Namespace,
}

impl Chain {
    /// Makes it, in namespaces that the machine is known to have.
    pub fn new(params: ChainParams) -> Self {
        let made = || Namespace::new().expect("there was one before");
        let places: Vec<_> = (0..params.nodes + 2).map(|_| made()).collect();
        let last = places.len() - 2;
        for place in &places {
            place.run(|| {
                for all in ["all", "default"] {
                    let path = format!("/proc/sys/net/ipv6/conf/{all}/disable_ipv6");
                    std::fs::write(path, "1").expect("the kernel has IPv6");
                }
                run("ip link set lo up");
            });
        }
        for (number, pair) in places.windows(2).enumerate() {
            let near = if number == 0 { ETH } else { RIGHT };
            let far = if number == last { ETH } else { LEFT };
            let mtu = if number == 0 || number == last { MTU } else { params.inner_mtu };
            let (into, plain) = (pair[1].number(), params.is_plain);
            let up = move |name: &'static str| {
                run(&format!("ip link set {name} up"));
                if plain {
                    run(&format!("ethtool -K {name} tx off gso off tso off gro off"));
                }
            };
            pair[0].run(move || {
                run(&format!("ip link add {near} mtu {mtu} type veth peer name {far} mtu {mtu} netns {into}"));
                up(near);
            });
            pair[1].run(move || up(far));
        }
        let mut places = places.into_iter();
        let sender = places.next().expect("there are two hosts");
        let mut nodes: Vec<_> = places.collect();
        let receiver = nodes.pop().expect("there are two hosts");
        let senders: Vec<_> = (0..params.senders).map(sender_address).collect();
        host(&sender, MACS[0], senders.clone(), (MACS[1], vec![RECEIVER]));
        host(&receiver, MACS[1], vec![RECEIVER], (MACS[0], senders));
        Self { sender, nodes, receiver }
    }

    /// Sends bytes from the first sender to the receiver and back over one connection of the kernel's TCP. Panics if one differs.
    pub fn transfer(&self, bytes: usize) {
        let listener = self.receiver.run(|| TcpListener::bind(SocketAddr::from((RECEIVER, 0))).expect("it is free"));
        let to = listener.local_addr().expect("it is bound");
        let mut near = self.sender.run(move || TcpStream::connect(to).expect("the chain carries a handshake"));
        // It takes packets that are dropped as a sign that the path is full, and every kernel has it.
        rustix::net::sockopt::set_tcp_congestion(&near, "reno").expect("the kernel has it");
        let (mut far, _) = listener.accept().expect("it is connected");
        for end in [&near, &far] {
            end.set_read_timeout(Some(PATIENCE)).expect("it is not zero");
            end.set_write_timeout(Some(PATIENCE)).expect("it is not zero");
        }
        let sent: Vec<u8> =
            (0..bytes as u32).flat_map(|number| number.wrapping_mul(0x9e37_79b9).to_le_bytes()).take(bytes).collect();
        thread::scope(|scope| {
            scope.spawn(|| {
                near.write_all(&sent).expect("it is connected");
                near.shutdown(std::net::Shutdown::Write).expect("it is connected");
                let mut back = Vec::new();
                near.read_to_end(&mut back).expect("it is connected");
                assert!(back == sent[..bytes / 10], "{} of {} bytes came back, or others", back.len(), bytes / 10);
            });
            let mut received = Vec::new();
            far.read_to_end(&mut received).expect("it is connected");
            assert!(received == sent, "{} of {bytes} bytes arrived, or others", received.len());
            far.write_all(&received[..bytes / 10]).expect("it is connected");
            drop(far);
        });
    }
}

/// A running copy of the frames that an interface sends or receives, which a thread reads.
pub struct Copied {
    stop: UnixStream,
    reader: JoinHandle<Vec<Vec<u8>>>,
}

impl Copied {
    pub fn begin(place: &Namespace, name: &'static str, direction: Direction) -> Self {
        let params = CaptureParams { snaplen: 1 << 16, direction, ring: 16 << 20 };
        let capture = place.run(move || Capture::open(name, params).expect("the interface is there"));
        let (stop, stopped) = UnixStream::pair().expect("there is room");
        Self { stop, reader: thread::spawn(move || copy(capture, stopped.as_fd())) }
    }

    /// All frames, in order.
    pub fn end(self) -> Vec<Vec<u8>> {
        drop(self.stop);
        self.reader.join().expect("the copy is complete")
    }
}

/// Copies frames until `stop` is readable.
fn copy(mut capture: Capture, stop: BorrowedFd<'_>) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut each = |frame: &Captured<'_>| {
        frames.push(frame.data.to_vec());
        ControlFlow::Continue(())
    };
    while capture.wait(stop, None).expect("it waits") == Woken::Packets {
        while capture.block(&mut each).expect("the kernel describes its blocks") {}
    }
    capture.finish(&mut each).expect("the kernel describes its blocks");
    let counts = capture.counts();
    assert_eq!(counts.dropped, 0, "the ring was too small: {counts:?}");
    frames
}

/// The address of a sender, by its number.
pub fn sender_address(number: u8) -> [u8; 4] {
    let [a, b, c, first] = SENDER;
    [a, b, c, first + number]
}

/// Gives a host its addresses, and the MAC address of the hosts at the other end.
fn host(place: &Namespace, mac: [u8; 6], own: Vec<[u8; 4]>, (other_mac, others): ([u8; 6], Vec<[u8; 4]>)) {
    place.run(move || {
        run(&format!("ip link set {ETH} address {}", written(mac)));
        for address in own {
            run(&format!("ip addr add {}/24 dev {ETH}", dotted(address)));
        }
        for address in others {
            let (address, mac) = (dotted(address), written(other_mac));
            run(&format!("ip neigh add {address} lladdr {mac} dev {ETH} nud permanent"));
        }
        // No flow starts with what an earlier one has learnt.
        std::fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1").expect("the kernel has it");
    });
}

/// A MAC address in text.
pub fn written(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn dotted(address: [u8; 4]) -> String {
    address.map(|byte| byte.to_string()).join(".")
}

/// Runs a command, which must succeed.
fn run(command: &str) {
    namespaces::ip(command).unwrap_or_else(|why| panic!("{why}"));
}
