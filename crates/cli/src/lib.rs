//! The parts of the command, for those who embed it: an analysis of whatever departs from a queue, and its report.
//!
//! - [`analysis::Analysis`] learns from departures and drops; [`findings::Findings`] makes a report of that.
//! - [`source`] opens what is read, and a [`listener`] hears of it; [`capture`] and [`departures`] are the two ways in: a capture through a replayed
//!   queue, or a table.
//! - [`chosen`]: which packets are meant by an expression, about the [`records`] that are made of them; [`show`]: which flows
//!   are listed.
//! - [`arriving`] is a capture that may let its reader wait, [`stop`] the end that a signal asks for.
//! - [`truths`]: the truth about every departure, for experiments with sketches.
//! - [`outputs`] are what is written for each packet; [`recording`] is a folder that is written to, [`headers`] and [`queued`] what of packets and
//!   their queue goes there, [`alarms`] what is worked out of it meanwhile.
//! - [`args`], [`analyze`], [`why`], [`tap`], [`query`], [`record`], [`watch`], [`folder`], [`sim`], [`merge`], [`experiment`], [`p4`], `live`, `link`, `compare`,
//!   `doctor`, `traffic`, `capture_live` and [`generate`] are the command itself.

pub mod alarms;
pub mod analysis;
pub mod analyze;
mod annotate;
pub mod args;
pub mod arriving;
mod beside;
pub mod capture;
#[cfg(target_os = "linux")]
pub mod capture_live;
pub mod chosen;
mod clock;
#[cfg(target_os = "linux")]
pub mod compare;
pub mod departures;
#[cfg(target_os = "linux")]
pub mod doctor;
pub mod door;
pub mod experiment;
mod expressions;
pub mod findings;
pub mod folder;
pub mod generate;
#[cfg(target_os = "linux")]
pub mod granted;
pub mod headers;
mod lasting;
#[cfg(target_os = "linux")]
pub mod link;
pub mod listener;
#[cfg(target_os = "linux")]
pub mod live;
pub mod merge;
mod notes;
pub mod outcome;
pub mod outputs;
pub mod p4;
mod paths;
pub mod progress;
pub mod query;
pub mod queued;
pub mod record;
pub mod recording;
pub mod records;
mod rows;
mod setup;
pub mod show;
pub mod sim;
pub mod source;
mod spool;
pub mod stop;
mod sweep;
pub mod tap;
mod terminal;
#[cfg(target_os = "linux")]
pub mod traffic;
pub mod truths;
mod views;
pub mod watch;
pub mod why;
mod world;
mod worst;
