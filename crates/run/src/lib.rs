//! Reads, runs, summarises and stores scenarios and sweeps.
//!
//! - [`ScenarioFile`] is a scenario with its overrides, and the files that it names.
//! - A [`World`] runs a scenario: [`Simulated`] as fast as the machine can, others with real hosts. [`ScenarioRun`] is the result, and
//!   [`summary`] the part of a report that describes it.
//! - [`sweep`] runs many variants of a scenario on all cores, and stores their results in a folder.
//!
//! ```no_run
//! use queuescope_run::{ScenarioFile, Simulated, World};
//! use queuescope_sim::files_of;
//!
//! let file = ScenarioFile::read("scenario.toml".as_ref(), [])?;
//! let scenario = file.scenario()?;
//! let (files, _skipped) = file.files(files_of(&scenario))?;
//! let ran = Simulated.run(&scenario, &files)?;
//! for link in ran.summary().links {
//!     println!("{}: {} packets", link.name, link.sent_packets);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod captured;
mod error;
mod files;
mod links;
mod scenario_file;
pub mod summary;
pub mod sweep;
mod world;

pub use error::Error;
pub use files::open_regular;
pub use links::{check_room, metered_link};
pub use scenario_file::{NO_SWEEP, ScenarioFile, trace};
pub use world::{ScenarioRun, Simulated, World};
