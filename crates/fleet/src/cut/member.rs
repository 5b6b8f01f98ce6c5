//! A member's side of a cut.

use queuescope_wire::Nanos;

/// Freezes the tail of a member's log when the coordinator wants it, until it thaws or the lease ends.
///
/// `T` is the frozen tail: dropping it thaws the tail.
///
/// ```
/// use queuescope_fleet::cut::Freezer;
/// use queuescope_wire::Nanos;
///
/// let mut freezer = Freezer::default();
/// // Dropping a real tail, `queuescope_log::FrozenTail`, thaws it.
/// assert_eq!(freezer.freeze(Nanos(0), 1, Nanos(20), || "tail"), Some(&"tail"));
/// assert!(!freezer.thaw(1), "the lease had not ended");
/// assert_eq!(freezer.freeze(Nanos(30), 1, Nanos(20), || "tail"), None, "this message comes late");
/// ```
#[derive(Debug)]
pub struct Freezer<T> {
    held: Option<Held<T>>,
    /// The highest number of which a message came.
    last: u64,
}

#[derive(Debug)]
struct Held<T> {
    cut: u64,
    until: Nanos,
    tail: T,
}

impl<T> Default for Freezer<T> {
    fn default() -> Self {
        Self { held: None, last: 0 }
    }
}

impl<T> Freezer<T> {
    /// *Freeze* came: freezes the tail for at most `lease`, and returns it. `None` if a message of this cut or of a later one came before: then
    /// it is late, and nothing changes.
    ///
    /// A tail that is still frozen for an earlier cut thaws: the coordinator makes one cut at a time, so it has given that one up.
    pub fn freeze(&mut self, now: Nanos, cut: u64, lease: Nanos, freeze: impl FnOnce() -> T) -> Option<&T> {
        if cut <= self.last {
            return None;
        }
        self.last = cut;
        self.held = None;
        let held = self.held.insert(Held { cut, until: now.saturating_add(lease), tail: freeze() });
        Some(&held.tail)
    }

    /// *Thaw* came: thaws the tail. Returns whether it had thawed before, so that the cut is void.
    pub fn thaw(&mut self, cut: u64) -> bool {
        self.last = self.last.max(cut);
        // What is still held was held all the time, even if a timer for the lease is late.
        self.held.take_if(|held| held.cut == cut).is_none()
    }

    /// When the lease ends; call [`expire`](Self::expire) then.
    pub fn until(&self) -> Option<Nanos> {
        self.held.as_ref().map(|held| held.until)
    }

    /// Thaws the tail if its lease has ended. Returns the number of the cut that this ended.
    pub fn expire(&mut self, now: Nanos) -> Option<u64> {
        self.held.take_if(|held| held.until <= now).map(|held| held.cut)
    }

    /// The coordinator is gone: thaws the tail.
    pub fn let_go(&mut self) {
        self.held = None;
    }
}

#[cfg(test)]
mod tests {
    use super::Freezer;
    use queuescope_wire::Nanos;
    use std::rc::Rc;

    const LEASE: Nanos = Nanos(20);

    /// Each clone is a hold of the tail.
    fn freeze(freezer: &mut Freezer<Rc<()>>, now: u64, cut: u64, tail: &Rc<()>) -> bool {
        freezer.freeze(Nanos(now), cut, LEASE, || Rc::clone(tail)).is_some()
    }

    fn holds(tail: &Rc<()>) -> usize {
        Rc::strong_count(tail) - 1
    }

    #[test]
    fn a_tail_is_frozen_until_it_thaws() {
        let (mut freezer, tail) = (Freezer::default(), Rc::new(()));
        assert!(freeze(&mut freezer, 5, 1, &tail));
        assert_eq!((holds(&tail), freezer.until()), (1, Some(Nanos(25))));
        assert_eq!(freezer.expire(Nanos(24)), None);
        assert!(!freezer.thaw(1));
        assert_eq!((holds(&tail), freezer.until()), (0, None));
    }

    #[test]
    fn a_lease_ends_and_the_reply_says_so() {
        let (mut freezer, tail) = (Freezer::default(), Rc::new(()));
        assert!(freeze(&mut freezer, 0, 1, &tail));
        assert_eq!(freezer.expire(LEASE), Some(1));
        assert_eq!(holds(&tail), 0);
        assert!(freezer.thaw(1), "it had thawed");
    }

    #[test]
    fn a_late_timer_does_not_make_a_cut_void() {
        let (mut freezer, tail) = (Freezer::default(), Rc::new(()));
        assert!(freeze(&mut freezer, 0, 1, &tail));
        assert!(!freezer.thaw(1), "it was held all the time");
    }

    #[test]
    fn messages_that_come_late_change_nothing() {
        let (mut freezer, tail) = (Freezer::default(), Rc::new(()));
        assert!(freezer.thaw(3), "this cut was never frozen here");
        assert!(!freeze(&mut freezer, 0, 3, &tail), "its freeze comes behind its thaw");
        assert!(!freeze(&mut freezer, 0, 2, &tail));
        assert!(freeze(&mut freezer, 0, 4, &tail));
        assert!(freezer.thaw(3), "an old thaw");
        assert_eq!(holds(&tail), 1, "it does not end the newer cut");
    }

    #[test]
    fn a_newer_cut_ends_an_older_one() {
        let (mut freezer, tail) = (Freezer::default(), Rc::new(()));
        assert!(freeze(&mut freezer, 0, 1, &tail) && freeze(&mut freezer, 1, 2, &tail));
        assert_eq!(holds(&tail), 1);
        assert!(freezer.thaw(1));
        freezer.let_go();
        assert_eq!(holds(&tail), 0);
    }
}
