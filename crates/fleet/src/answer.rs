//! Queries of several hosts: each computes a part of the result from its own records, and the parts become one.
//!
//! - [`Asked`] is a question whose text was parsed, for records of a schema. [`Asked::evaluate`] computes a host's [`Partial`]: its groups with the
//!   states of their functions. A state is a count, a sum and so on, from which the states of parts can be joined (Confluo, NSDI 2019, section 5.1).
//! - [`Merging`] joins the partials of hosts to the groups of all their records: [`Merged`].
//! - Both travel as Arrow IPC streams ([`Partial::encode`], [`Merged::encode`]). Decoding has limits, and refuses everything else.
//! - [`write_answer`] prints the rows as `queuescope query` does, and what each host contributed.
//!
//! ```
//! use queuescope_fleet::answer::{Asked, Extent, Merging, Texts};
//! use queuescope_log::{Log, Memory, Number, Options, Schema, packet};
//! use queuescope_recording::query::{PartLimits, Records};
//! use queuescope_wire::ByteCount;
//!
//! let schema = Schema::packet();
//! let asked = Asked::new(&Texts { select: "count,stddev(length)", ..Texts::default() }, schema)?;
//! let limits = PartLimits { groups: 1000, memory: ByteCount(1 << 20) };
//! let mut merging = Merging::new(&asked);
//! for _host in 0..3 {
//!     let log = Log::new(schema.clone(), Options { records: 10, memory: Memory::Lazy })?;
//!     log.append(&[0; packet::SIZE]);
//!     let partial = asked.evaluate(Records::Log(&log), Extent::default(), limits, &|| true)?;
//!     merging.add(&partial)?;
//! }
//! let merged = merging.finish();
//! println!("{} packets", merged.packets);
//! assert_eq!(merged.groups, [(vec![], vec![Number::Unsigned(3), Number::Float(0.0)])]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod asked;
mod ipc;
mod merge;
mod partial;
mod print;
mod rows;

pub use asked::{AskError, Asked, Extent, Texts, schema_name};
pub use ipc::{IpcError, IpcLimits};
pub use merge::{Merged, Merging};
pub use partial::Partial;
pub use print::{clock_text, write_answer};
pub use rows::RowsError;
