//! Scenarios and sweeps: read from files, run, summed up, kept.
//!
//! - [`ScenarioFile`] is a scenario with what is changed of it, and the files that it names.
//! - A [`World`] runs a scenario: [`Simulated`] as fast as it goes, others with real hosts. What came of it is [`Ran`], and
//!   [`summary`] is what a report says of that.
//! - [`sweep`]: many variants of a scenario on all cores, and a folder that keeps what came of them.
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
pub use world::{Ran, Simulated, World};
