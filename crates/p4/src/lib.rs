//! Decides whether an algorithm fits the pipeline of a switch, where each part goes, and why it does not fit.
//!
//! A pipeline passes each packet through its stages, once and in order. A register is memory of one stage; a packet
//! reaches it once, with one small operation. The state of the queue is known behind it. (Kunze et al., IM 2021,
//! sections III and IV; Chen et al., CoNEXT 2019, section 4.1.)
//!
//! - [`Program`]: an algorithm as steps on the fields of a packet, tables and registers, with their dependencies.
//! - [`Target`]: a switch as stages and their resources.
//! - [`Fit`]: the verdict by [`Aspect`], with reasons, and the [`Placement`].
//! - [`algorithms`]: the project's algorithms as programs.
//! - [`CompilerReport`]: what the compiler for Tofino reports of a program, to set beside the placement.

pub mod algorithms;
mod compiler_report;
mod fit;
mod fold;
mod graph;
pub mod ir;
mod memory;
mod place;
mod program;
mod target;

pub use compiler_report::{CompiledStage, CompilerReport, Containers};
pub use fit::{Fit, Grade, Verdict};
pub use place::{Placed, Placement, Stage, Used};
pub use program::{
    Act, Aspect, Entry, Field, FieldGroup, Gress, Match, Micro, Op, Packets, Program, Register, Special,
};
pub use target::{PerStage, RegisterUnit, Target};
