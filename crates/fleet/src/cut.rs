//! The distributed atomic snapshot (Confluo, NSDI 2019, section 4, algorithm 1): a *cut* through the logs of many hosts.
//!
//! The coordinator sends *freeze* to all members. Each freezes the tail of its log, which delays the visibility of later records and
//! nothing else, and replies with the tail's position. When the last has replied, the coordinator sends *thaw* to all. So there is a
//! moment at which all tails are frozen, and the positions are those of that moment.
//!
//! **Guarantee.** If one `append_visible` returned before another began, on whatever hosts, a valid cut that has the record of the second
//! has that of the first. The second record is in the cut, so it was visible when its host froze, before the moment. The first was
//! visible even earlier. Its host froze either after that, and then its record is before the position; or before, and then the record
//! became visible when the host thawed, which is after the moment.
//!
//! **When something fails.** Each freeze has a *lease*: a member thaws by itself when it ends, so that a coordinator that died leaves no host
//! frozen. The reply to *thaw* says whether the lease had ended; then there may have been no moment at which all were frozen, and the cut is *void*. Cuts have
//! rising numbers, so a message that comes late is recognised. A member that does not reply in time, or does not confirm that it was still
//! frozen, is left out: the guarantee holds among the others.
//!
//! Both sides are here without clocks and connections: time is an argument, and messages are method calls and their results.

mod coordinator;
mod member;

pub use coordinator::{Busy, Cut, Cutter, Missing, Next};
pub use member::Freezer;
