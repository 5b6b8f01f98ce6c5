//! Limits on the work of triggers. They are checked as time passes, however few records come, so their periods determine their
//! cost: some 10 ns for a check, and 64 to 128 bytes for each period of a window.

use super::TriggerDefinition;
use queuescope_wire::grouped;

/// The shortest period of a trigger, in nanoseconds.
pub const SHORTEST_PERIOD: u64 = 1_000;
/// The most checks of all triggers of a text together, per second of the records' time.
const MOST_LOOKS: u64 = 10_000_000;
/// The most periods that the windows of all triggers have together.
const MOST_PERIODS: u64 = 1 << 20;

/// Why a period is too short, if it is.
pub(super) fn too_short(period: u64) -> Option<String> {
    let looks = || grouped(1_000_000_000 / period.max(1));
    let why = || format!("a period is 1us or longer: this trigger would be looked at {} times a second", looks());
    (period < SHORTEST_PERIOD).then(why)
}

/// Why triggers are too much work together, if they are.
pub(super) fn too_much(triggers: &[TriggerDefinition]) -> Option<String> {
    let sum = |of: fn(&TriggerDefinition) -> u64| triggers.iter().map(of).fold(0, u64::saturating_add);
    let looks = sum(|trigger| 1_000_000_000 / trigger.period.max(1));
    let periods = sum(|trigger| trigger.window.map_or(0, |window| window.div_ceil(trigger.period.max(1))));
    if looks > MOST_LOOKS {
        let (looks, most) = (grouped(looks), grouped(MOST_LOOKS));
        return Some(format!(
            "all triggers together would be looked at {looks} times a second, and can be {most} times"
        ));
    }
    (periods > MOST_PERIODS).then(|| {
        let (periods, most) = (grouped(periods), grouped(MOST_PERIODS));
        format!("the windows of all triggers together would have {periods} periods, and can have {most}")
    })
}
