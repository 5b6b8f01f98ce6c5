//! Whether an algorithm fits the pipeline of a switch, where each part of it goes, and if it does not, why.
//!
//! A pipeline passes each packet through stages, once and in order. A register is memory of one stage; a packet reaches
//! it once, with one small operation. What the queue did is known behind it. (Kunze et al., IM 2021, sections III and
//! IV; Chen et al., CoNEXT 2019, section 4.1.)
//!
//! - [`Program`]: an algorithm as steps on the fields of a packet, tables, registers, and what depends on what.
//! - [`Target`]: a switch as stages, and what each has.
//! - [`Fit`]: the verdict by [`Aspect`], with reasons, and the [`Placement`].
//! - [`algorithms`]: those that the project has, described so.

pub mod algorithms;
mod fit;
mod fold;
mod graph;
mod place;
mod program;
mod target;

pub use fit::{Fit, Grade, Verdict};
pub use place::{Placed, Placement, Stage, Used};
pub use program::{Act, Aspect, Entry, Field, Gress, Match, Micro, Op, Packets, Program, Register, Special};
pub use target::{PerStage, RegisterUnit, Target};
