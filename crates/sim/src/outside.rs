//! Packets from outside: packets of real hosts that pass the network of a simulation that runs in real time.

use crate::BuildError;
use crate::Observer;
use crate::packets::{InFlight, Owner};
use crate::simulation::Simulation;
use crate::topology::NodeId;
use queuescope_queue::{Activity, Headers, Host};
use queuescope_tcp::Segment;
use queuescope_wire::{Class, Ecn, FlowId, Nanos};

/// The route of packets from one host to another.
///
/// ```
/// # use queuescope_queue::DisciplineParams;
/// use queuescope_sim::shapes::{Dumbbell, Wire};
/// use queuescope_sim::{EntranceParams, ExternalPacket, Simulation};
/// use queuescope_wire::{Class, Ecn, FlowId, Nanos};
///
/// let wire = Wire::new("8mbps".parse()?, "1ms".parse()?, DisciplineParams::default());
/// let dumbbell = Dumbbell::new(&wire, None, [wire.clone()]);
/// let mut simulation = Simulation::new(dumbbell.topology, 1, Nanos::ZERO)?;
/// let hosts = (dumbbell.left[0], dumbbell.right[0]);
/// let entrance = simulation.entrance(EntranceParams { hosts, group: 0, class: Class(0), activity: None })?;
/// for tag in 0..3 {
///     let packet = ExternalPacket { tag, flow: FlowId(0), bytes: 1000, ecn: Ecn::NotEct, tcp: None, abc: None };
///     simulation.come(&entrance, &packet, Nanos::ZERO, &mut ());
/// }
/// // An observer learns by `InFlight::foreign` which packets were delivered.
/// simulation.run_until("1s".parse()?, &mut ());
/// assert_eq!(simulation.link(dumbbell.bottleneck).sent.packets, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Entrance {
    route: u32,
    hosts: [Host; 2],
    group: u32,
    class: Class,
    activity: Option<Activity>,
}

/// What packets of a route have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntranceParams {
    /// The source host, and the destination host.
    pub hosts: (NodeId, NodeId),
    /// The group of flows that they belong to.
    pub group: u32,
    /// Their class of service.
    pub class: Class,
    /// The activity that the host writes into the packets itself (ABC).
    pub activity: Option<Activity>,
}

/// A packet from outside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExternalPacket {
    /// The caller's own number for the packet, which [`InFlight::foreign`] returns everywhere.
    pub tag: u32,
    /// Its flow.
    pub flow: FlowId,
    /// Bytes from the network header on.
    pub bytes: u32,
    /// Its ECN codepoint.
    pub ecn: Ecn,
    /// Its TCP header and the flow of the packets in the opposite direction, for switch programs that read or rewrite them. Without it these programs
    /// do nothing to the packet.
    pub tcp: Option<(Segment, FlowId)>,
    /// What the packet brings for ABC, in place of the host and the activity of its route.
    pub abc: Option<(Host, Option<Activity>)>,
}

impl Simulation {
    /// A route for packets from outside.
    ///
    /// # Errors
    /// Fails if there is no route.
    pub fn entrance(&mut self, params: EntranceParams) -> Result<Entrance, BuildError> {
        let EntranceParams { hosts: (from, to), group, class, activity } = params;
        Ok(Entrance { route: self.way(from, to)?, hosts: [Host(from.0), Host(to.0)], group, class, activity })
    }

    /// A packet comes from outside at `now`, after all events up to then.
    pub fn come(&mut self, entrance: &Entrance, packet: &ExternalPacket, now: Nanos, observer: &mut impl Observer) {
        self.run_until(now, observer);
        let &ExternalPacket { tag, flow, bytes, ecn, tcp, abc } = packet;
        let &Entrance { route, hosts, group, class, activity } = entrance;
        let on_its_way =
            InFlight { flow, number: tag, group, hosts, bytes, ecn, class, route, hop: 0, owner: Owner::Outside };
        let (tcp, reverse) = tcp.map_or((None, flow), |(segment, reverse)| (Some(segment), reverse));
        let (source, activity) = abc.unwrap_or((hosts[0], activity));
        let headers = Headers { tcp, activity, ..Headers::plain(source, hosts[1], reverse) };
        self.send_foreign(on_its_way, headers, observer);
    }
}
