//! An agent's actions against a simple model, with a clock of the test.

use super::*;
use crate::act::{Action, Flow, LONGEST};
use crate::locked::lock;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

const SECOND: u64 = 1_000_000_000;

/// What an actor has.
#[derive(Debug, Default)]
struct Kernel {
    open: BTreeMap<u64, Order>,
    renewed: u64,
    /// Whether it refuses everything from now on.
    is_broken: bool,
    forbidden: Option<Flow>,
}

#[derive(Debug, Clone, Default)]
struct Fake(Arc<Mutex<Kernel>>);

impl Fake {
    fn check(&self) -> Result<(), ActorError> {
        if lock(&self.0).is_broken { Err(ActorError::Failed("it is broken".to_owned())) } else { Ok(()) }
    }
}

impl Actor for Fake {
    fn begin(&mut self, id: u64, order: &Order) -> Result<(), ActorError> {
        self.check()?;
        let mut kernel = lock(&self.0);
        if kernel.forbidden == Some(order.flow) {
            return Err(ActorError::NotAllowed("the owner forbids it".to_owned()));
        }
        assert!(kernel.open.insert(id, *order).is_none(), "{id} began twice");
        Ok(())
    }

    fn extend(&mut self, id: u64, time: Nanos) -> Result<(), ActorError> {
        self.check()?;
        lock(&self.0).open.get_mut(&id).expect("it began").time = time;
        Ok(())
    }

    fn end(&mut self, id: u64) -> Result<(), ActorError> {
        assert!(lock(&self.0).open.remove(&id).is_some(), "{id} ended twice");
        self.check()
    }

    fn touched(&self, id: u64) -> Touched {
        Touched { touched: id, packets: 2 * id }
    }

    fn renew(&mut self) -> Result<(), ActorError> {
        lock(&self.0).renewed += 1;
        self.check()
    }
}

fn flow(last: u8) -> Flow {
    Flow { src: Some([10, 0, 0, last].into()), ..Flow::default() }
}

fn message(id: u64, last: u8, time: u64, dry: bool) -> protocol::Act {
    let order = Order { flow: flow(last), action: Action::Drop, time: Nanos(time), dry };
    order.message(id, "incast", "alert 3 incast.heavy")
}

fn acts(limits: ActLimits) -> (Acts, Fake) {
    let fake = Fake::default();
    (Acts::new(Box::new(fake.clone()), limits, Box::new(|_| ())), fake)
}

fn limits() -> ActLimits {
    ActLimits { longest: Nanos(20 * SECOND), per_minute: 6, most: 3, dry: false }
}

fn states(all: &[Acted]) -> Vec<(u64, ActState)> {
    all.iter().map(|acted| (acted.id, acted.state())).collect()
}

#[test]
fn a_host_without_consent_refuses_and_counts() {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&noted);
    let note: ActNote = Box::new(move |text: &str| lock(&notes).push(text.to_owned()));
    let mut acts = Acts { note, ..Acts::default() };
    for id in 0..10_000 {
        let reply = acts.begin(Nanos(id * SECOND / 200), &message(id, 1, SECOND, false));
        assert_eq!((reply.id, reply.state()), (id, ActState::ActRefused));
        assert!(reply.reason.contains("--act"), "{reply:?}");
    }
    assert_eq!(acts.counts().refused, 10_000);
    // Fifty seconds of it take ten lines.
    assert_eq!(lock(&noted).len(), 10);
    acts.begin(Nanos(200 * SECOND), &message(1, 1, SECOND, false));
    assert!(lock(&noted).last().is_some_and(|last| last.starts_with("9991 more actions were refused")), "{noted:?}");
}

#[test]
fn an_action_ends_with_its_time() {
    let (mut acts, fake) = acts(limits());
    let begun = acts.begin(Nanos(0), &message(7, 1, 2 * SECOND, false));
    assert_eq!((begun.state(), begun.left, begun.touched), (ActState::ActApplied, 2 * SECOND, 7));
    assert!(acts.tick(Nanos(2 * SECOND - 1)).is_empty() && lock(&fake.0).renewed == 2);
    let ended = acts.tick(Nanos(2 * SECOND));
    assert_eq!(states(&ended), [(7, ActState::ActExpired)]);
    assert_eq!((ended[0].touched, ended[0].packets), (7, 14));
    assert!(lock(&fake.0).open.is_empty() && !acts.is_acting());
}

#[test]
fn the_same_action_is_extended_and_not_stacked() {
    let (mut acts, fake) = acts(limits());
    acts.begin(Nanos(0), &message(7, 1, 5 * SECOND, false));
    let again = acts.begin(Nanos(SECOND), &message(7, 1, 9 * SECOND, false));
    assert_eq!((again.state(), again.left), (ActState::ActApplied, 9 * SECOND));
    // A shorter time does not cut it off.
    let shorter = acts.begin(Nanos(SECOND), &message(7, 1, SECOND, false));
    assert_eq!(shorter.left, 9 * SECOND);
    assert_eq!(lock(&fake.0).open.len(), 1);
    // Another flow under this number is a mistake, and so is a dry run that becomes real.
    for other in [message(7, 2, SECOND, false), message(7, 1, SECOND, true)] {
        assert_eq!(acts.begin(Nanos(SECOND), &other).state(), ActState::ActRefused);
    }
    assert_eq!(lock(&fake.0).open[&7].flow, flow(1));
}

#[test]
fn all_end_when_the_coordinator_is_silent_or_lost() {
    let (mut acts, fake) = acts(limits());
    acts.begin(Nanos(0), &message(1, 1, 20 * SECOND, false));
    acts.begin(Nanos(0), &message(2, 2, 20 * SECOND, false));
    acts.heard(Nanos(SECOND));
    assert!(acts.tick(Nanos(SECOND + LEASE.0 - 1)).is_empty());
    let ended = acts.tick(Nanos(SECOND + LEASE.0));
    assert_eq!(states(&ended), [(1, ActState::ActUndone), (2, ActState::ActUndone)]);
    assert!(ended[0].reason.contains("nothing came from the coordinator"), "{ended:?}");
    acts.begin(Nanos(10 * SECOND), &message(3, 1, SECOND, false));
    assert_eq!(states(&acts.end_all("the stream ended")), [(3, ActState::ActUndone)]);
    assert!(lock(&fake.0).open.is_empty());
}

#[test]
fn what_is_not_held_ends() {
    let (mut acts, _) = acts(limits());
    for id in 1..=3 {
        acts.begin(Nanos(0), &message(id, id as u8, SECOND, false));
    }
    // Numbers that it does not know mean nothing.
    assert_eq!(states(&acts.hold(&[2, 99])), [(1, ActState::ActUndone), (3, ActState::ActUndone)]);
    assert!(acts.is_acting());
}

#[test]
fn the_host_has_the_last_word() {
    let (mut acts, fake) = acts(ActLimits { dry: true, ..limits() });
    let dry = acts.begin(Nanos(0), &message(1, 1, SECOND, false));
    assert!(dry.state() == ActState::ActDry && lock(&fake.0).open[&1].dry, "{dry:?}");
    let long = acts.begin(Nanos(0), &message(2, 1, 21 * SECOND, false));
    assert!(long.state() == ActState::ActRefused && long.reason.contains("allows 20"), "{long:?}");
    lock(&fake.0).forbidden = Some(flow(9));
    let forbidden = acts.begin(Nanos(0), &message(3, 9, SECOND, false));
    assert_eq!((forbidden.state(), &*forbidden.reason), (ActState::ActRefused, "the owner forbids it"));
}

#[test]
fn a_kernel_that_refuses_is_reported() {
    let (mut acts, fake) = acts(limits());
    acts.begin(Nanos(0), &message(1, 1, 9 * SECOND, false));
    lock(&fake.0).is_broken = true;
    assert_eq!(acts.begin(Nanos(0), &message(2, 2, SECOND, false)).state(), ActState::ActFailed);
    let ended = acts.tick(Nanos(SECOND));
    assert_eq!(states(&ended), [(1, ActState::ActFailed)]);
    assert!(ended[0].reason.contains("it is broken"), "{ended:?}");
    assert!(!acts.is_acting());
}

#[test]
fn garbage_is_refused() {
    let (mut acts, fake) = acts(limits());
    let good = message(1, 1, SECOND, false);
    let bad = [
        protocol::Act { flow: None, ..good.clone() },
        protocol::Act {
            flow: Some(protocol::Flow { src: vec![1, 2, 3], ..protocol::Flow::default() }),
            ..good.clone()
        },
        protocol::Act { flow: Some(protocol::Flow { src: vec![0; 16], ..protocol::Flow::default() }), ..good.clone() },
        protocol::Act { flow: Some(protocol::Flow { protocol: Some(256), ..flow(1).message() }), ..good.clone() },
        protocol::Act { action: None, ..good.clone() },
        protocol::Act { action: Some(protocol::act::Action::Drop(false)), ..good.clone() },
        protocol::Act { action: Some(protocol::act::Action::Limit(0)), ..good.clone() },
        protocol::Act { nanoseconds: 0, ..good.clone() },
        protocol::Act { nanoseconds: u64::MAX, ..good.clone() },
    ];
    for message in &bad {
        assert_eq!(acts.begin(Nanos(0), message).state(), ActState::ActRefused, "{message:?}");
    }
    assert!(lock(&fake.0).open.is_empty());
    assert_eq!(acts.begin(Nanos(0), &good).state(), ActState::ActApplied, "refusals take nothing of the limit");
}

#[derive(Debug, Clone)]
enum Step {
    Begin { id: u64, flow: u8, time: u64, dry: bool },
    Tick,
    Heard,
    Hold(Vec<u64>),
    Lost,
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let time = prop_oneof![1u64..25, Just(LONGEST.0 / SECOND + 1)];
    let step = prop_oneof![
        6 => (0u64..5, 0u8..3, time, any::<bool>())
            .prop_map(|(id, flow, time, dry)| Step::Begin { id, flow, time: time * SECOND, dry }),
        3 => Just(Step::Tick),
        3 => Just(Step::Heard),
        1 => prop::collection::vec(0u64..5, 0..4).prop_map(Step::Hold),
        1 => Just(Step::Lost),
    ];
    (prop_oneof![0u64..3 * SECOND, Just(30 * SECOND)], step)
}

proptest! {
    /// Whatever comes and when, the actor has what a simple model says: no more, no longer, and nothing for real that is not allowed.
    #[test]
    fn the_kernel_has_what_the_model_has(
        steps in prop::collection::vec(step(), 1..60),
        (per_minute, most, dry) in (1u32..8, 1usize..4, any::<bool>()),
    ) {
        let limits = ActLimits { per_minute, most, dry, ..limits() };
        let (mut acts, fake) = acts(limits);
        let (mut now, mut heard) = (0, 0);
        let mut model: BTreeMap<u64, (u8, bool, u64)> = BTreeMap::new();
        let mut taken: Vec<u64> = Vec::new();
        for (later, step) in steps {
            now += later;
            match step {
                Step::Begin { id, flow: last, time, dry: wish } => {
                    let reply = acts.begin(Nanos(now), &message(id, last, time, wish));
                    let is_dry = wish || dry;
                    let recent = taken.iter().filter(|at| now - **at < 60 * SECOND).count();
                    let fits = match model.get(&id) {
                        Some((flow, was_dry, _)) => (*flow, *was_dry) == (last, is_dry),
                        None => model.len() < most,
                    };
                    let is_taken = time <= limits.longest.0 && recent < per_minute as usize && fits;
                    let state = if !is_taken { ActState::ActRefused } else if is_dry { ActState::ActDry } else { ActState::ActApplied };
                    prop_assert_eq!(reply.state(), state, "{:?}", reply);
                    if is_taken {
                        let until = model.get(&id).map_or(0, |(_, _, until)| *until).max(now + time);
                        model.insert(id, (last, is_dry, until));
                        taken.push(now);
                        heard = now;
                    }
                }
                Step::Tick => {
                    let ended = acts.tick(Nanos(now)).len();
                    let before = model.len();
                    let is_silent = now - heard >= LEASE.0;
                    model.retain(|_, (_, _, until)| *until > now && !is_silent);
                    prop_assert_eq!(ended, before - model.len());
                }
                Step::Heard => {
                    acts.heard(Nanos(now));
                    heard = now;
                }
                Step::Hold(ids) => {
                    acts.hold(&ids);
                    model.retain(|id, _| ids.contains(id));
                }
                Step::Lost => {
                    acts.end_all("lost");
                    model.clear();
                }
            }
            let kernel = lock(&fake.0);
            let has: Vec<_> = kernel.open.iter().map(|(id, order)| (*id, order.flow, order.dry)).collect();
            let wanted: Vec<_> = model.iter().map(|(id, (last, dry, _))| (*id, flow(*last), *dry)).collect();
            prop_assert_eq!(has, wanted);
        }
    }

    /// Whatever a coordinator sends, nothing panics, and nothing is done for longer than allowed.
    #[test]
    fn any_message_is_bounded(
        (id, nanoseconds, dry) in any::<(u64, u64, bool)>(),
        action in prop::option::of(prop_oneof![
            any::<bool>().prop_map(protocol::act::Action::Mark),
            any::<u64>().prop_map(protocol::act::Action::Limit),
        ]),
        src in prop::collection::vec(any::<u8>(), 0..20),
        ports in any::<(Option<u32>, Option<u32>, Option<u32>)>(),
        text in any::<String>(),
    ) {
        let (src_port, dst_port, protocol) = ports;
        let flow = Some(protocol::Flow { src, dst: Vec::new(), src_port, dst_port, protocol });
        let message = protocol::Act { id, program: text.clone(), cause: text, flow, action, nanoseconds, dry };
        let (mut acts, fake) = acts(limits());
        let reply = acts.begin(Nanos(u64::MAX / 2), &message);
        prop_assert!(reply.left <= limits().longest.0);
        prop_assert!(lock(&fake.0).open.values().all(|order| order.time <= limits().longest));
    }
}
