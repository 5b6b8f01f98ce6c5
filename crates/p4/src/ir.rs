//! An algorithm as a switch executes it: typed variables, exact operations, and registers whose units do small actions.
//!
//! A [`SwitchProgram`] describes an algorithm once:
//!
//! - an [`Interpreter`] runs it, packet by packet;
//! - [`steps`](SwitchProgram::steps) gives the steps that [`Fit`](crate::Fit) places;
//! - [`print()`] writes it as P4_16 for an [`Architecture`].
//!
//! All arithmetic is on unsigned integers of the width of the variable that takes the result. Operands that are narrower are
//! extended with zeros; wider ones are an error, so a program takes a slice of them. An invalid program does not build.
//!
//! ```
//! use queuescope_p4::ir::{Builder, Comparison, Condition, Input, Interpreter, Operation, Unit};
//!
//! // Drops each packet that waited longer than 1 ms.
//! let mut p = Builder::new("late", "drops packets that waited long", "");
//! let [enqueued, dequeued] = [Input::Enqueued, Input::Dequeued].map(|input| p.input(input));
//! let sojourn = p.compute("sojourn", 32, Unit::NANOS, Operation::Subtract(dequeued.slice(0, 32), enqueued.slice(0, 32)));
//! p.when(Condition::compare(sojourn, Comparison::Greater, 1_000_000), |p| p.drop_packet());
//! let program = p.build()?;
//!
//! let mut interpreter = Interpreter::new(&program, 1);
//! let mut waited = |time| {
//!     let input = |input| if input == Input::Dequeued { time } else { 0 };
//!     interpreter.run(&input, &mut |_bits| 0).dropped
//! };
//! assert!(!waited(1_000_000) && waited(1_000_001));
//! # Ok::<(), queuescope_p4::ir::InvalidProgram>(())
//! ```

mod action;
mod builder;
mod condition;
mod containers;
mod explain;
mod gateway;
mod hash;
mod interpreter;
mod lower;
#[cfg(test)]
mod mutants;
mod operation;
mod pair;
mod parsed;
mod print;
mod refusal;
mod table;
mod trace;
mod uses;
mod validate;
mod variable;

pub use action::{AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, RegisterAction, RegisterArray, When};
pub use builder::{Builder, SwitchProgram};
pub use condition::{Comparison, Condition};
pub use explain::{explain, explain_target};
pub use hash::{Polynomial, ReplacedHash};
pub use interpreter::{Interpreter, PacketFate, PacketReport};
pub use operation::Operation;
pub use pair::{Half, PairAction, PairCondition, PairOutput};
pub use parsed::ParsedFrame;
pub use print::{Architecture, Forwarding, TestBuild, print, print_entries, print_forwarding, print_p4runtime};
pub use refusal::refusal;
pub use table::{ActionTable, MatchTable, TableAction, TableEntries};
pub use trace::{Leaving, Passing, REPLAY, Sighting, Tap, Trace, TracePacket, passing, sightings, wandering};
pub use validate::InvalidProgram;
pub use variable::{Input, NOTES, Name, Operand, Unit, Variable};
