//! Sequences of failures, refusals and crashes, in virtual time.

use super::super::delivery::{Attempt, AttemptEnd, Delivery, DeliveryParams, Next, SinkStats, Stored};
use super::super::position::Position;
use crate::agent::Backoff;
use crate::protocol::Alert;
use proptest::prelude::*;
use queuescope_wire::Nanos;
use std::collections::BTreeSet;

/// The trigger of alerts that the receiver refuses.
const REFUSED: &str = "refused";
const SECOND: u64 = 1_000_000_000;

impl Stored for &[Alert] {
    fn first(&self) -> u64 {
        <[Alert]>::first(self).map_or(1, |alert| alert.number)
    }

    fn count(&self) -> u64 {
        self.last().map_or(0, |alert| alert.number)
    }

    fn from(&self, number: u64, most: usize) -> Vec<Alert> {
        self.iter().skip_while(|alert| alert.number < number).take(most).cloned().collect()
    }
}

/// What happens next.
#[derive(Debug, Clone)]
enum Event {
    /// Alerts come.
    Come(usize),
    /// The oldest are not kept any more.
    Forget(usize),
    /// The receiver answers.
    Answer,
    /// It takes some, and fails.
    Fail(usize),
    /// It takes all, but the answer is lost.
    LoseAnswer,
    /// The process is killed while an attempt is made, which may have arrived.
    Kill { has_arrived: bool },
    /// The process is killed before the position is saved.
    KillUnsaved,
}

/// A sink with its alerts and its receiver.
struct World {
    alerts: Vec<Alert>,
    forgotten: usize,
    visible: usize,
    params: DeliveryParams,
    delivery: Delivery,
    now: Nanos,
    saved: Option<Position>,
    /// The numbers that the receiver took, in its order.
    taken: Vec<u64>,
    refused: BTreeSet<u64>,
}

impl World {
    fn new(alerts: Vec<Alert>, params: DeliveryParams) -> Self {
        let delivery = Delivery::open(None, &&alerts[..0], params.clone());
        let mut world = Self {
            alerts,
            forgotten: 0,
            visible: 0,
            params,
            delivery,
            now: Nanos(0),
            saved: None,
            taken: Vec::new(),
            refused: BTreeSet::new(),
        };
        world.save();
        world
    }

    fn happens(&mut self, event: &Event) {
        match event {
            Event::Come(more) => self.visible = (self.visible + more).min(self.alerts.len()),
            Event::Forget(more) => self.forgotten = (self.forgotten + more).min(self.visible.saturating_sub(1)),
            Event::KillUnsaved => {
                self.attempt(&Event::Answer);
                self.restart();
            }
            other => {
                self.attempt(other);
                self.save();
            }
        }
    }

    /// Returns whether there was something to send.
    fn attempt(&mut self, event: &Event) -> bool {
        let stored = &self.alerts[self.forgotten..self.visible];
        let mut next = self.delivery.next(self.now, &stored);
        if let Next::Pause(until) = next {
            assert!(until > self.now);
            self.now = until;
            next = self.delivery.next(self.now, &stored);
        }
        if next != Next::Send {
            assert_eq!(next, Next::Idle, "a pause is over");
            return false;
        }
        let waiting: Vec<Alert> = self.delivery.waiting().iter().map(|outgoing| outgoing.alert.clone()).collect();
        assert!((1..=self.params.batch).contains(&waiting.len()));
        let numbers: Vec<u64> = waiting.iter().map(|alert| alert.number).collect();
        let saved = self.saved.as_ref().map_or(0, |saved| saved.position);
        assert!(numbers.iter().all(|number| *number > saved), "what is done with is not sent again");
        let is_refused = waiting.iter().any(|alert| alert.trigger == REFUSED);
        let attempt = match event {
            _ if is_refused => {
                if numbers.len() == 1 {
                    self.refused.insert(numbers[0]);
                }
                Attempt::refused("no")
            }
            Event::Fail(most) => {
                let some = (*most).min(numbers.len() - 1);
                self.taken.extend(&numbers[..some]);
                Attempt::failed(some, "broken")
            }
            Event::LoseAnswer => {
                self.taken.extend(&numbers);
                Attempt::failed(0, "lost")
            }
            Event::Kill { has_arrived } => {
                if *has_arrived {
                    self.taken.extend(&numbers);
                }
                self.restart();
                return true;
            }
            Event::Answer | Event::Come(_) | Event::Forget(_) | Event::KillUnsaved => {
                self.taken.extend(&numbers);
                Attempt::ALL
            }
        };
        self.delivery.done(self.now, attempt, 7);
        true
    }

    fn save(&mut self) {
        if let Some(position) = self.delivery.unsaved("a sink", &&self.alerts[self.forgotten..self.visible]) {
            self.saved = Some(position);
            self.delivery.saved();
        }
    }

    fn restart(&mut self) {
        self.delivery =
            Delivery::open(self.saved.as_ref(), &&self.alerts[self.forgotten..self.visible], self.params.clone());
        self.now = Nanos(0);
    }

    /// All alerts come, and the receiver works.
    fn finish(&mut self) {
        self.visible = self.alerts.len();
        while self.attempt(&Event::Answer) {
            self.save();
        }
    }

    /// The numbers that were not taken, not refused, and do not repeat an alert that was taken.
    fn lost(&self) -> Vec<u64> {
        let taken: BTreeSet<_> = self.taken.iter().copied().collect();
        let repeats = |alert: &Alert, other: &Alert| {
            let key = |alert: &Alert| (alert.member.clone(), alert.trigger.clone(), alert.detail.clone());
            taken.contains(&other.number)
                && other.number < alert.number
                && key(alert) == key(other)
                && alert.at.abs_diff(other.at) < self.params.once.0
        };
        let is_lost = |alert: &&Alert| {
            !taken.contains(&alert.number)
                && !self.refused.contains(&alert.number)
                && !self.alerts.iter().any(|other| repeats(alert, other))
        };
        self.alerts.iter().filter(is_lost).map(|alert| alert.number).collect()
    }

    /// The numbers in the order in which the receiver got them first.
    fn firsts(&self) -> Vec<u64> {
        let mut seen = BTreeSet::new();
        self.taken.iter().copied().filter(|number| seen.insert(*number)).collect()
    }
}

fn params(once: u64, backlog: u64, batch: usize) -> DeliveryParams {
    let backoff = Backoff::between(Nanos(SECOND), Nanos(8 * SECOND));
    DeliveryParams { once: Nanos(once), among: 1_000, backlog, batch, batch_bytes: 200, backoff }
}

fn numbered(alerts: &[(u8, u64)]) -> Vec<Alert> {
    let triggers = ["a", "b", REFUSED];
    let one = |(at, (which, time)): (usize, &(u8, u64))| Alert {
        number: at as u64 + 1,
        trigger: triggers[usize::from(*which)].to_owned(),
        at: *time,
        ..Alert::default()
    };
    alerts.iter().enumerate().map(one).collect()
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        3 => (1..6usize).prop_map(Event::Come),
        1 => (1..4usize).prop_map(Event::Forget),
        2 => Just(Event::Answer),
        2 => (0..4usize).prop_map(Event::Fail),
        1 => Just(Event::LoseAnswer),
        1 => any::<bool>().prop_map(|has_arrived| Event::Kill { has_arrived }),
        1 => Just(Event::KillUnsaved),
    ];
    prop::collection::vec(event, 0..60)
}

proptest! {
    #[test]
    fn each_alert_comes_at_least_once_in_order(
        alerts in prop::collection::vec((0..3u8, 0..40u64), 0..40), events in events(), once in 0..12u64, batch in 1..6usize,
        among in 1..40u64,
    ) {
        let mut world = World::new(numbered(&alerts), DeliveryParams { among, ..params(once, u64::MAX, batch) });
        events.iter().filter(|event| !matches!(event, Event::Forget(_))).for_each(|event| world.happens(event));
        world.finish();
        prop_assert_eq!(world.lost(), Vec::<u64>::new());
        let firsts = world.firsts();
        prop_assert!(firsts.is_sorted(), "{:?}", firsts);
        prop_assert_eq!(world.delivery.position(), alerts.len() as u64);
        // Only what the receiver refuses is dropped.
        prop_assert!(world.refused.iter().all(|number| world.alerts[*number as usize - 1].trigger == REFUSED));
    }

    #[test]
    fn without_crashes_counts_add_up(
        alerts in prop::collection::vec((0..3u8, 0..40u64), 0..40), events in events(), once in 0..12u64, backlog in 1..50u64,
    ) {
        let mut world = World::new(numbered(&alerts), params(once, backlog, 4));
        let is_calm =
            |event: &&Event| matches!(event, Event::Come(_) | Event::Forget(_) | Event::Answer | Event::Fail(_));
        for event in events.iter().filter(is_calm) {
            world.happens(event);
            prop_assert!(world.visible as u64 - world.delivery.position() <= backlog || matches!(event, Event::Come(_) | Event::Forget(_)));
        }
        world.finish();
        let SinkStats { sent, refused, repeats, left_out, .. } = world.delivery.stats();
        prop_assert_eq!(sent + refused + repeats + left_out, alerts.len() as u64);
        prop_assert_eq!(sent, world.taken.len() as u64);
        prop_assert_eq!(refused, world.refused.len() as u64);
        prop_assert!(world.lost().len() as u64 <= left_out);
    }
}

#[test]
fn a_new_sink_begins_with_the_next_alert() {
    let alerts = numbered(&[(0, 0), (0, 0), (1, 0)]);
    let mut delivery = Delivery::open(None, &&alerts[..2], params(0, 10, 10));
    assert_eq!(delivery.next(Nanos(0), &&alerts[..2]), Next::Idle);
    assert_eq!(delivery.next(Nanos(0), &&alerts[..]), Next::Send);
    assert_eq!(delivery.waiting().iter().map(|outgoing| outgoing.alert.number).collect::<Vec<_>>(), [3]);
}

#[test]
fn other_alerts_in_the_place_of_the_old_are_sent_from_the_first_on() {
    let old = numbered(&[(0, 0), (0, 0), (1, 0)]);
    let mut delivery = Delivery::open(None, &&old[..], params(0, 10, 10));
    let position = delivery.unsaved("a sink", &&old[..]);
    let mut same = Delivery::open(position.as_ref(), &&old[..], params(0, 10, 10));
    assert_eq!((same.next(Nanos(0), &&old[..]), same.notes()), (Next::Idle, Vec::new()));
    let (fewer, others) = (numbered(&[(0, 0)]), numbered(&[(0, 0), (0, 0), (1, 5), (1, 6)]));
    for alerts in [&fewer[..], &others[..]] {
        delivery = Delivery::open(position.as_ref(), &alerts, params(0, 10, 10));
        assert_eq!(delivery.next(Nanos(0), &alerts), Next::Send);
        assert_eq!(delivery.waiting()[0].alert.number, 1);
        assert!(delivery.notes()[0].contains("was replaced"));
    }
}

#[test]
fn pauses_grow_and_a_receiver_can_ask_for_more() {
    let alerts = numbered(&[(0, 0), (1, 0)]);
    let stored = &alerts[..];
    let mut delivery = Delivery::open(None, &&alerts[..0], params(0, 10, 1));
    let pause = |delivery: &mut Delivery, now, after| {
        assert_eq!(delivery.next(Nanos(now), &stored), Next::Send);
        let end = AttemptEnd::Failed { why: "busy".to_owned(), after };
        delivery.done(Nanos(now), Attempt { taken: 0, end }, 0);
        match delivery.next(Nanos(now), &stored) {
            Next::Pause(until) => until.0 - now,
            other => panic!("{other:?}"),
        }
    };
    let mut now = 0;
    for (seconds, after) in [(1, None), (2, None), (60, Some(60)), (8, Some(1)), (8, None), (3_600, Some(1_000_000))] {
        let length = pause(&mut delivery, now, after.map(|seconds| Nanos(seconds * SECOND)));
        assert_eq!(length, seconds * SECOND);
        now += length;
    }
    assert_eq!(delivery.stats().retried, 6);
    assert_eq!(delivery.notes(), ["took no alerts, and is tried again: busy"], "once for all of them");
    delivery.next(Nanos(now), &stored);
    delivery.done(Nanos(now), Attempt::ALL, 0);
    assert_eq!(delivery.notes(), ["takes alerts again: 6 attempts failed, 0 alerts were refused, 0 were left out"]);
    assert_eq!(pause(&mut delivery, now, None), SECOND, "pauses are short again");
}

#[test]
fn what_is_sent_again_is_the_same_even_if_more_came() {
    let alerts = numbered(&[(0, 0), (1, 0), (0, 90)]);
    let mut delivery = Delivery::open(None, &&alerts[..0], params(0, 10, 10));
    assert_eq!(delivery.next(Nanos(0), &&alerts[..2]), Next::Send);
    let first = delivery.waiting().to_vec();
    delivery.done(Nanos(0), Attempt::failed(0, "broken"), 0);
    assert_eq!(delivery.next(Nanos(100 * SECOND), &&alerts[..]), Next::Send);
    assert_eq!(delivery.waiting(), first);
}

#[test]
fn one_bad_alert_does_not_take_others_with_it() {
    let mut world = World::new(numbered(&[(0, 0), (2, 0), (1, 0), (2, 90), (0, 90)]), params(10, 100, 5));
    world.finish();
    assert_eq!(world.taken, [1, 3, 5]);
    assert_eq!(world.refused, BTreeSet::from([2, 4]));
    let notes = world.delivery.notes();
    assert_eq!(notes[0], "refused an alert, which is dropped: no");
    assert!(
        world.delivery.next(world.now, &&world.alerts[..]) == Next::Idle && !world.delivery.is_failing(),
        "{notes:?}"
    );
}

#[test]
fn texts_of_a_batch_are_limited_but_a_long_one_is_sent_alone() {
    let mut alerts = numbered(&[(0, 0), (0, 0), (0, 0)]);
    alerts[0].detail = "x".repeat(150);
    alerts[1].detail = "y".repeat(5_000);
    let mut world = World::new(alerts, params(0, 100, 10));
    world.visible = 3;
    let mut sizes = Vec::new();
    while world.delivery.next(Nanos(0), &&world.alerts[..]) == Next::Send {
        sizes.push(world.delivery.waiting().len());
        world.delivery.done(Nanos(0), Attempt::ALL, 0);
    }
    assert_eq!(sizes, [1, 1, 1]);
}
