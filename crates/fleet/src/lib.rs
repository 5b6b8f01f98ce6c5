//! Every host at once: agents record the packets of their hosts, a coordinator asks all of them, and takes atomic pictures of their
//! logs.
//!
//! - [`cut`]: the distributed atomic snapshot (Confluo, NSDI 2019, section 4), without clocks and connections.
//! - [`coordinator`]: members, cuts, questions and alerts; [`CoordinatorServer`](coordinator::CoordinatorServer) can be reached.
//! - [`agent`]: a host's side: [`Served`](agent::Served) serves a folder that is being recorded.
//! - [`answer`]: what hosts compute for a question, and how their parts become one answer.
//! - [`program`]: control programs: what agents compute, and what the coordinator asks and raises.
//! - [`act`]: actions of control programs on flows of hosts.
//! - [`journey`]: who delayed a packet: its way through the queues of several hosts.
//! - [`violations`]: packets of a cut that violate the order of hosts.
//! - [`upload`]: sealed volumes to object storage, and which objects have the records of a cut.
//! - [`client`]: the calls of people and programs.
//! - [`identity`] and [`transport`]: names, roles, certificates, and TLS with them. [`protocol`] has the messages.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read and write files"))]

pub mod act;
pub mod agent;
pub mod answer;
pub mod client;
mod clock;
pub mod coordinator;
pub mod cut;
pub mod identity;
pub mod journey;
mod locked;
pub mod program;
pub mod protocol;
pub mod transport;
pub mod upload;
pub mod violations;
