//! Real hosts that send what a scenario says, over the kernel's TCP.

use crate::testbed::End;
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
/// That of receivers whose end of a connection is DCTCP's, too: it is told of each mark then (RFC 8257, section 3.2).
pub const DCTCP_PORT: u16 = 5002;

/// What is sent.
pub struct Load {
    /// Congestion controls, by their names in the kernel.
    pub congestion: Vec<String>,
    /// Flows, in order of their starts, each between two addresses.
    pub flows: Box<dyn Iterator<Item = Start> + Send>,
    /// Datagrams; their times count from the beginning.
    pub datagrams: Vec<DatagramSender>,
    /// From when on it counts what is sent and what came.
    pub warmup: Nanos,
}

/// What became of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Of each flow.
    pub flows: Vec<Ended>,
    /// What each sender of datagrams sent.
    pub sent: Vec<Backlog>,
    /// What came of datagrams, by who sent them.
    pub came: BTreeMap<SocketAddr, Backlog>,
}

/// Hosts that send.
pub struct Hosts {
    flows: Thread<Vec<Ended>>,
    servers: Vec<Thread<()>>,
    /// Those who send datagrams, and who counts them.
    sent: Option<Thread<Vec<Backlog>>>,
    came: Option<Thread<BTreeMap<SocketAddr, Backlog>>>,
    /// What the kernel lacked; it is there until all has ended.
    _controls: Controls,
}

impl Hosts {
    /// Begins to send, and to take what is sent.
    ///
    /// # Errors
    /// If nobody can listen, or there is no such congestion control and the kernel takes no program for it.
    pub fn begin(senders: &End, receivers: &End, load: Load) -> Result<Self, TrafficError> {
        let (Some(near), Some(far)) = (&senders.namespace, &receivers.namespace) else {
            return Err(system("find the hosts' namespaces")(io::Error::other("they are here")));
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
            Thread::begin(far, move |stop| serve(&listener, forever, stop.as_fd()).map(drop))
        };
        let mut servers = vec![server(PORT, None)?];
        if congestion.iter().any(|name| name == Control::Dctcp.name()) {
            servers.push(server(DCTCP_PORT, Some(controls.name(Control::Dctcp.name())))?);
        }
        let beginning = now();
        let counted = beginning.saturating_add(warmup);
        let (mut sent, mut came) = (None, None);
        if !datagrams.is_empty() {
            came = Some(Thread::begin(far, move |stop| count_datagrams(any(PORT), counted, stop.as_fd()))?);
            for sender in &mut datagrams {
                let times = std::mem::replace(&mut sender.datagrams, Box::new(std::iter::empty()));
                sender.datagrams = Box::new(times.map(move |(at, size)| (at.saturating_add(beginning), size)));
            }
            sent = Some(Thread::begin(near, move |stop| send_datagrams(datagrams, counted, stop.as_fd()))?);
        }
        let flows = Thread::begin(near, move |stop| {
            let mut ended = Vec::new();
            send(&params, flows, stop.as_fd(), |flow| {
                ended.push(*flow);
                Ok(())
            })?;
            Ok(ended)
        })?;
        Ok(Self { flows, servers, sent, came, _controls: controls })
    }

    /// Nothing more is sent; what became of all.
    ///
    /// # Errors
    /// If somebody could not send, or take what came.
    pub fn end(self) -> Result<Outcome, TrafficError> {
        let flows = self.flows.end()?;
        let sent = self.sent.map(Thread::end).transpose()?.unwrap_or_default();
        let came = self.came.map(Thread::end).transpose()?.unwrap_or_default();
        self.servers.into_iter().try_for_each(Thread::end)?;
        Ok(Outcome { flows, sent, came })
    }
}

/// A thread that does something until it is told to end.
struct Thread<T> {
    handle: JoinHandle<Result<T, TrafficError>>,
    /// It ends when nobody holds this any more.
    tie: OwnedFd,
}

impl<T: Send + 'static> Thread<T> {
    fn begin(
        namespace: &Namespace,
        work: impl FnOnce(OwnedFd) -> Result<T, TrafficError> + Send + 'static,
    ) -> Result<Self, TrafficError> {
        let begun = || {
            let (stop, tie) = pipe_with(PipeFlags::CLOEXEC)?;
            let spawn = move || thread::Builder::new().name("hosts".to_owned()).spawn(move || work(stop));
            Ok(Self { handle: namespace.run(spawn)?, tie })
        };
        begun().map_err(system("begin a thread"))
    }

    fn end(self) -> Result<T, TrafficError> {
        drop(self.tie);
        self.handle.join().unwrap_or_else(|_| Err(system("end a thread")(io::Error::other("it has panicked"))))
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> TrafficError {
    move |why| TrafficError::System { what, why }
}
