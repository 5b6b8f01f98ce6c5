//! Questions about packets: of a capture, a table of departures, or a folder that was recorded to.
//!
//! - [`Loaded`] is what is asked, in memory or in a folder ([`Held`]); a [`Question`] says which packets are meant. [`Held::each`] finds them.
//! - [`Selection`] is what an answer has, as people write it, and [`Asked`] what that means. [`write_rows`] writes it as text, CSV or JSON, and
//!   [`Parquet`] and [`Export`] put packets into files.
//! - [`Company`]: in place of the packets that were found, those that were in the same queue while they waited.

mod ask;
mod company;
mod export;
mod held;
mod load;
mod show;

pub use ask::{Asked, Groups, Selection};
pub use company::Company;
pub use export::{Export, Parquet};
pub use held::{Held, Question, Seen};
pub use load::{LoadOptions, Loaded};
pub use show::{Form, Found, share, write_attributes, write_foot, write_plan, write_rows};
