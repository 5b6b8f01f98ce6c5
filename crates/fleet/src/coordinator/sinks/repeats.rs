//! Which alerts repeat an alert that was sent shortly before.

use crate::protocol::Alert;
use queuescope_wire::Nanos;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::mem;

/// Recognises repeats: alerts with the member, trigger and detail of an alert that was sent, whose time is less than a window away from it.
///
/// What it says depends only on the alerts that it was given, in their order. So a restart can build it again from the stored alerts.
#[derive(Debug)]
pub(super) struct Repeats {
    window: Nanos,
    most: usize,
    /// Alerts that were sent lately, and those before them. When the first have half of the most entries, they replace the second.
    young: BTreeMap<Key, Sent>,
    old: BTreeMap<Key, Sent>,
}

/// A digest of member, trigger and detail, because details can be long.
type Key = [u8; 32];

#[derive(Debug, Clone, Copy)]
struct Sent {
    at: Nanos,
    left_out: u64,
}

impl Repeats {
    /// Remembers at least half of `most` alerts. A window of 0 recognises nothing.
    pub fn new(window: Nanos, most: usize) -> Self {
        Self { window, most, young: BTreeMap::new(), old: BTreeMap::new() }
    }

    /// The number of repeats that were left out since the last equal alert, if this alert is to be sent; `None` if it is a repeat.
    pub fn admit(&mut self, alert: &Alert) -> Option<u64> {
        if self.window.0 == 0 {
            return Some(0);
        }
        let (key, at) = (key(alert), Nanos(alert.at));
        let mut before = 0;
        if let Some(sent) = self.young.get_mut(&key).or_else(|| self.old.get_mut(&key)) {
            // The clock of a host can go back.
            if sent.at.0.abs_diff(at.0) < self.window.0 {
                sent.left_out += 1;
                return None;
            }
            before = sent.left_out;
        }
        self.old.remove(&key);
        self.young.insert(key, Sent { at, left_out: 0 });
        if self.young.len() >= self.most.div_ceil(2) {
            self.old = mem::take(&mut self.young);
        }
        Some(before)
    }

    /// Forgets all alerts.
    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

fn key(alert: &Alert) -> Key {
    let mut digest = Sha256::new();
    for text in [&alert.member, &alert.trigger, &alert.detail] {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn alert(member: &str, trigger: &str, at: u64) -> Alert {
        Alert { member: member.to_owned(), trigger: trigger.to_owned(), at, ..Alert::default() }
    }

    #[test]
    fn repeats_are_counted_until_the_window_is_over() {
        let mut repeats = Repeats::new(Nanos(10), 100);
        let mut admit = |at| repeats.admit(&alert("a", "t", at));
        assert_eq!(
            [admit(100), admit(100), admit(109), admit(95), admit(110), admit(120)],
            [Some(0), None, None, None, Some(3), Some(0)]
        );
    }

    #[test]
    fn texts_do_not_run_into_each_other() {
        let mut repeats = Repeats::new(Nanos(10), 100);
        assert_eq!(repeats.admit(&alert("ab", "c", 0)), Some(0));
        assert_eq!(repeats.admit(&alert("a", "bc", 0)), Some(0));
        assert_eq!(repeats.admit(&Alert { detail: "x".to_owned(), ..alert("ab", "c", 0) }), Some(0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut repeats = Repeats::new(Nanos(10), 64);
        for number in 0..10_000 {
            assert_eq!(repeats.admit(&alert("a", &number.to_string(), 0)), Some(0));
            assert!(repeats.young.len() + repeats.old.len() <= 64);
        }
        assert_eq!(repeats.admit(&alert("a", "9999", 0)), None, "late ones are remembered");
    }

    proptest! {
        /// The model keeps all alerts that were sent.
        #[test]
        fn it_agrees_with_a_search_of_all_that_was_sent(
            alerts in prop::collection::vec((0..3u8, 0..60u64), 0..60), window in 0..20u64,
        ) {
            let mut repeats = Repeats::new(Nanos(window), 1_000);
            let mut sent: Vec<(u8, u64)> = Vec::new();
            for (trigger, at) in alerts {
                let last = sent.iter().rfind(|(of, _)| *of == trigger);
                let is_repeat = last.is_some_and(|(_, last)| last.abs_diff(at) < window);
                prop_assert_eq!(repeats.admit(&alert("a", &trigger.to_string(), at)).is_none(), is_repeat);
                if !is_repeat {
                    sent.push((trigger, at));
                }
            }
        }
    }
}
