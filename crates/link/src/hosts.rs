//! Real hosts that send a scenario's traffic over the kernel's TCP.

use crate::testbed::NetworkEnd;
use queuescope_live::traffic::{
    DatagramSender, Ended, SendParams, ServeParams, Start, TrafficError, count_datagrams, find_controls, listen, send,
    send_datagrams, serve, take_with,
};
use queuescope_live::{Control, Controls, Namespace, now};
use queuescope_wire::{Backlog, Nanos};
use rustix::fd::{AsFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::{self, JoinHandle};

/// The port of every receiver.
pub const PORT: u16 = 5001;
/// The port of receivers whose side of the connection runs DCTCP or Prague too, so that they echo every CE mark (RFC 8257, section 3.2).
pub const DCTCP_PORT: u16 = 5002;

/// The traffic to send.
pub struct Load {
    /// The congestion controls, by their names in the kernel.
    pub congestion: Vec<String>,
    /// The flows, each between two addresses, in order of their start times.
    pub flows: Box<dyn Iterator<Item = Start> + Send>,
    /// The senders of datagrams. Their times count from the start of the run.
    pub datagrams: Vec<DatagramSender>,
    /// Datagrams are counted from this time on.
    pub warmup: Nanos,
}

/// The results of flows and datagrams.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The result of each flow.
    pub flows: Vec<Ended>,
    /// The datagrams that each sender sent.
    pub sent: Vec<Backlog>,
    /// The datagrams that arrived, by the sender's address.
    pub came: BTreeMap<SocketAddr, Backlog>,
}

/// Hosts that are sending.
pub struct Hosts {
    flows: HostThread<Vec<Ended>>,
    servers: Vec<HostThread<()>>,
    /// The thread that sends datagrams, and the thread that counts those that arrive.
    sent: Option<HostThread<Vec<Backlog>>>,
    came: Option<HostThread<BTreeMap<SocketAddr, Backlog>>>,
    /// The congestion controls that the kernel lacked. They stay loaded until all threads have ended.
    _controls: Controls,
}

impl Hosts {
    /// Starts to send and to receive.
    ///
    /// # Errors
    /// Fails if a socket cannot listen, or the kernel lacks a congestion control and rejects the program for it.
    pub fn start(senders: &NetworkEnd, receivers: &NetworkEnd, load: Load) -> Result<Self, TrafficError> {
        let (Some(near), Some(far)) = (&senders.namespace, &receivers.namespace) else {
            return Err(system("find the hosts' namespaces")(io::Error::other("the ends have none of their own")));
        };
        let any = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let Load { congestion, flows, mut datagrams, warmup } = load;
        let controls = Controls::missing(&congestion)?;
        let params = SendParams {
            to: any(PORT),
            open: usize::MAX,
            wait: Nanos::MAX,
            congestion: congestion.iter().map(|name| controls.name(name).to_owned()).collect(),
            ecn: false,
            midway: (warmup > Nanos::ZERO).then_some(warmup),
        };
        find_controls(&params)?;
        let server = |port, congestion: Option<&str>| {
            let listener = far.run(move || listen(any(port)))?;
            congestion.map_or(Ok(()), |name| take_with(&listener, name))?;
            let forever = ServeParams { idle: Nanos::MAX, open: usize::MAX, until: None };
            HostThread::begin(far, move |stop| serve(&listener, forever, stop.as_fd()).map(drop))
        };
        let mut servers = vec![server(PORT, None)?];
        let echoes = [Control::Dctcp, Control::Prague].map(Control::name);
        if let Some(name) = echoes.into_iter().find(|name| congestion.iter().any(|other| other == name)) {
            servers.push(server(DCTCP_PORT, Some(controls.name(name)))?);
        }
        let beginning = now();
        let counted = beginning.saturating_add(warmup);
        let (mut sent, mut came) = (None, None);
        if !datagrams.is_empty() {
            came = Some(HostThread::begin(far, move |stop| count_datagrams(any(PORT), counted, stop.as_fd()))?);
            for sender in &mut datagrams {
                let times = std::mem::replace(&mut sender.datagrams, Box::new(std::iter::empty()));
                sender.datagrams = Box::new(times.map(move |(at, size)| (at.saturating_add(beginning), size)));
            }
            sent = Some(HostThread::begin(near, move |stop| send_datagrams(datagrams, counted, stop.as_fd()))?);
        }
        let flows = HostThread::begin(near, move |stop| {
            let mut ended = Vec::new();
            send(&params, flows, stop.as_fd(), |flow| {
                ended.push(*flow);
                Ok(())
            })?;
            Ok(ended)
        })?;
        Ok(Self { flows, servers, sent, came, _controls: controls })
    }

    /// Stops sending, and returns the results.
    ///
    /// # Errors
    /// Returns the first error of a thread that sent or received.
    pub fn end(self) -> Result<Outcome, TrafficError> {
        let flows = self.flows.end()?;
        let sent = self.sent.map(HostThread::end).transpose()?.unwrap_or_default();
        let came = self.came.map(HostThread::end).transpose()?.unwrap_or_default();
        self.servers.into_iter().try_for_each(HostThread::end)?;
        Ok(Outcome { flows, sent, came })
    }
}

/// A thread that works until [`HostThread::end`].
struct HostThread<T> {
    handle: JoinHandle<Result<T, TrafficError>>,
    /// The thread ends when this is closed.
    tie: OwnedFd,
}

impl<T: Send + 'static> HostThread<T> {
    fn begin(
        namespace: &Namespace,
        work: impl FnOnce(OwnedFd) -> Result<T, TrafficError> + Send + 'static,
    ) -> Result<Self, TrafficError> {
        let start = || {
            let (stop, tie) = pipe_with(PipeFlags::CLOEXEC)?;
            let spawn = move || thread::Builder::new().name("hosts".to_owned()).spawn(move || work(stop));
            Ok(Self { handle: namespace.run(spawn)?, tie })
        };
        start().map_err(system("start a thread"))
    }

    fn end(self) -> Result<T, TrafficError> {
        drop(self.tie);
        self.handle.join().unwrap_or_else(|_| Err(system("end a thread")(io::Error::other("it has panicked"))))
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> TrafficError {
    move |why| TrafficError::System { what, why }
}
