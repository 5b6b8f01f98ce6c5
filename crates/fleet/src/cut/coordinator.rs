//! The coordinator's side of a cut.

use queuescope_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Makes cuts, one at a time. `M` names a member, for as long as its stream is open.
///
/// ```
/// use queuescope_fleet::cut::{Cutter, Next};
/// use queuescope_wire::Nanos;
///
/// let mut cutter = Cutter::after(0);
/// let cut = cutter.begin(Nanos(0), ["a", "b"], Nanos(1_000))?; // now send Freeze to both
/// assert!(cutter.frozen(Nanos(100), &"a", cut, 17).is_none());
/// let Some(Next::Thaw(members)) = cutter.frozen(Nanos(120), &"b", cut, 4) else { panic!("both have replied") };
/// assert_eq!(members, ["a", "b"]); // now send Thaw to both
/// assert!(cutter.thawed(&"a", cut, false).is_none());
/// let Some(Next::Done(cut)) = cutter.thawed(&"b", cut, false) else { panic!("both have replied") };
/// assert!(!cut.is_void());
/// println!("a has {} records in it, b has {}", cut.positions["a"], cut.positions["b"]);
/// # Ok::<(), queuescope_fleet::cut::Busy>(())
/// ```
#[derive(Debug)]
pub struct Cutter<M> {
    last: u64,
    running: Option<Running<M>>,
}

/// A cut is being made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cut {0} is being made, and there is one at a time: try again when it is done")]
pub struct Busy(pub u64);

/// What the coordinator has to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<M> {
    /// Send *thaw* to these members.
    Thaw(Vec<M>),
    /// The cut is done.
    Done(Cut<M>),
}

/// A cut through the logs of several members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut<M> {
    /// Its number; later cuts have higher ones.
    pub number: u64,
    /// For each member the number of records that are in the cut.
    pub positions: BTreeMap<M, u64>,
    /// Members that are not in it. The guarantee holds among the others.
    pub missing: BTreeMap<M, Missing>,
    /// Members that thawed too early, because their lease ended.
    pub lapsed: BTreeSet<M>,
}

impl<M> Cut<M> {
    /// Whether it may not be atomic. Then it must not be used as a cut.
    pub fn is_void(&self) -> bool {
        !self.lapsed.is_empty()
    }
}

/// Why a member is not in a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Its stream ended.
    Gone,
    /// It did not reply in time.
    Late,
}

/// The cut that is being made.
#[derive(Debug)]
struct Running<M> {
    cut: Cut<M>,
    /// Members whose reply is awaited, and until when.
    awaited: BTreeSet<M>,
    within: Nanos,
    until: Nanos,
    is_thawing: bool,
}

impl<M: Clone + Ord> Cutter<M> {
    /// Makes cuts with numbers above `last`. A coordinator that starts again must pass a number that is at least the highest that it has used.
    pub fn after(last: u64) -> Self {
        Self { last, running: None }
    }

    /// The number of the cut that is being made.
    pub fn running(&self) -> Option<u64> {
        self.running.as_ref().map(|running| running.cut.number)
    }

    /// Begins a cut: the caller sends *freeze* with the resulting number to all members. Their replies to each of the two messages are
    /// awaited for `within`, which should be shorter than the lease.
    ///
    /// # Errors
    /// Fails if a cut is being made.
    pub fn begin(&mut self, now: Nanos, members: impl IntoIterator<Item = M>, within: Nanos) -> Result<u64, Busy> {
        if let Some(running) = &self.running {
            return Err(Busy(running.cut.number));
        }
        self.last += 1;
        let (positions, missing, lapsed) = Default::default();
        let cut = Cut { number: self.last, positions, missing, lapsed };
        let (awaited, until) = (members.into_iter().collect(), now.saturating_add(within));
        self.running = Some(Running { cut, awaited, within, until, is_thawing: false });
        Ok(self.last)
    }

    /// A member replied to *freeze* with the position of its tail.
    pub fn frozen(&mut self, now: Nanos, member: &M, cut: u64, position: u64) -> Option<Next<M>> {
        let running = self.running.as_mut().filter(|running| running.cut.number == cut && !running.is_thawing)?;
        if running.awaited.remove(member) {
            running.cut.positions.insert(member.clone(), position);
        }
        self.next(now)
    }

    /// A member replied to *thaw*, and says whether its lease had ended.
    pub fn thawed(&mut self, member: &M, cut: u64, lapsed: bool) -> Option<Next<M>> {
        let running = self.running.as_mut().filter(|running| running.cut.number == cut && running.is_thawing)?;
        if running.awaited.remove(member) && lapsed {
            running.cut.lapsed.insert(member.clone());
        }
        self.done()
    }

    /// A member's stream ended.
    pub fn gone(&mut self, now: Nanos, member: &M) -> Option<Next<M>> {
        let running = self.running.as_mut()?;
        // A member that has confirmed that it was frozen stays in the cut.
        if running.awaited.remove(member) || (!running.is_thawing && running.cut.positions.contains_key(member)) {
            running.cut.leave_out(member, Missing::Gone);
        }
        self.next(now)
    }

    /// When the awaited replies are late; call [`expire`](Self::expire) then.
    pub fn until(&self) -> Option<Nanos> {
        self.running.as_ref().map(|running| running.until)
    }

    /// Goes on without the members that are late.
    pub fn expire(&mut self, now: Nanos) -> Option<Next<M>> {
        let running = self.running.as_mut().filter(|running| running.until <= now)?;
        for member in std::mem::take(&mut running.awaited) {
            running.cut.leave_out(&member, Missing::Late);
        }
        self.next(now)
    }

    /// Goes on if no reply is awaited.
    fn next(&mut self, now: Nanos) -> Option<Next<M>> {
        let running = self.running.as_mut()?;
        if running.is_thawing || running.cut.positions.is_empty() {
            return self.done();
        }
        if !running.awaited.is_empty() {
            return None;
        }
        (running.is_thawing, running.until) = (true, now.saturating_add(running.within));
        running.awaited = running.cut.positions.keys().cloned().collect();
        // A member that is late may freeze yet.
        let late = running.cut.missing.iter().filter(|(_, why)| **why == Missing::Late).map(|(member, _)| member);
        Some(Next::Thaw(running.cut.positions.keys().chain(late).cloned().collect()))
    }

    fn done(&mut self) -> Option<Next<M>> {
        self.running.take_if(|running| running.awaited.is_empty()).map(|running| Next::Done(running.cut))
    }
}

impl<M: Clone + Ord> Cut<M> {
    fn leave_out(&mut self, member: &M, why: Missing) {
        self.positions.remove(member);
        self.missing.insert(member.clone(), why);
    }
}

#[cfg(test)]
mod tests {
    use super::{Busy, Cut, Cutter, Missing, Next};
    use queuescope_wire::Nanos;

    const WITHIN: Nanos = Nanos(10);

    fn begun(members: &[&'static str]) -> (Cutter<&'static str>, u64) {
        let mut cutter = Cutter::after(7);
        let cut = cutter.begin(Nanos(0), members.iter().copied(), WITHIN).unwrap();
        assert_eq!(cutter.begin(Nanos(0), ["a"], WITHIN), Err(Busy(cut)));
        (cutter, cut)
    }

    fn done(next: Option<Next<&'static str>>) -> Cut<&'static str> {
        match next {
            Some(Next::Done(cut)) => cut,
            other => panic!("{other:?} in place of the end"),
        }
    }

    #[test]
    fn members_that_do_not_reply_are_left_out_and_thawed() {
        let (mut cutter, cut) = begun(&["a", "b", "c"]);
        assert_eq!(cut, 8);
        assert_eq!(cutter.frozen(Nanos(1), &"a", cut, 5), None);
        assert_eq!(cutter.gone(Nanos(2), &"b"), None);
        assert_eq!(cutter.expire(Nanos(9)), None);
        assert_eq!(cutter.expire(Nanos(10)), Some(Next::Thaw(vec!["a", "c"])));
        assert_eq!(cutter.frozen(Nanos(11), &"c", cut, 9), None, "too late");
        let cut = done(cutter.thawed(&"a", cut, false));
        assert_eq!(cut.positions.into_iter().collect::<Vec<_>>(), [("a", 5)]);
        assert_eq!(cut.missing.into_iter().collect::<Vec<_>>(), [("b", Missing::Gone), ("c", Missing::Late)]);
        assert!(cut.lapsed.is_empty());
        assert_eq!(cutter.begin(Nanos(12), ["a"], WITHIN), Ok(9));
    }

    #[test]
    fn a_lease_that_ended_makes_the_cut_void() {
        let (mut cutter, cut) = begun(&["a", "b"]);
        cutter.frozen(Nanos(1), &"a", cut, 5);
        assert!(matches!(cutter.frozen(Nanos(1), &"b", cut, 6), Some(Next::Thaw(_))));
        assert_eq!(cutter.thawed(&"b", cut, true), None);
        let cut = done(cutter.thawed(&"a", cut, false));
        assert!(cut.is_void() && cut.lapsed.contains("b"));
    }

    #[test]
    fn a_member_that_does_not_confirm_is_left_out() {
        let (mut cutter, cut) = begun(&["a", "b", "c"]);
        for (member, position) in [("a", 1), ("b", 2), ("c", 3)] {
            cutter.frozen(Nanos(4), &member, cut, position);
        }
        assert_eq!((cutter.thawed(&"a", cut, false), cutter.gone(Nanos(5), &"b")), (None, None));
        assert_eq!(cutter.gone(Nanos(5), &"a"), None, "it has confirmed");
        assert_eq!(cutter.expire(Nanos(13)), None, "replies are awaited from the second message on");
        let cut = done(cutter.expire(Nanos(14)));
        assert_eq!(cut.positions.into_keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(cut.missing.into_iter().collect::<Vec<_>>(), [("b", Missing::Gone), ("c", Missing::Late)]);
    }

    #[test]
    fn a_cut_of_nobody_ends() {
        let (mut cutter, cut) = begun(&["a"]);
        assert_eq!(cutter.thawed(&"a", cut, false), None, "nothing was thawed");
        assert!(done(cutter.gone(Nanos(1), &"a")).positions.is_empty());
        let mut cutter = Cutter::<u8>::after(0);
        cutter.begin(Nanos(0), [], WITHIN).unwrap();
        assert!(matches!(cutter.expire(WITHIN), Some(Next::Done(_))));
    }

    #[test]
    fn a_member_that_leaves_after_its_reply_is_left_out() {
        let (mut cutter, cut) = begun(&["a", "b"]);
        cutter.frozen(Nanos(1), &"a", cut, 5);
        assert_eq!(cutter.gone(Nanos(2), &"a"), None);
        assert_eq!(cutter.frozen(Nanos(3), &"b", cut, 6), Some(Next::Thaw(vec!["b"])));
    }
}
