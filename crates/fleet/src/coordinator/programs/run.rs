//! Runs of control programs: they ask members, and raise alerts over the answers.

use super::super::query::Answered;
use super::super::{AskedMembers, Coordinator, CutError};
use super::Counts;
use crate::answer::Merging;
use crate::clock;
use crate::locked::lock;
use crate::program::{Ask, Held, Program, Raise, Run, Saw};
use crate::protocol::{Alert, MemberAnswer, QueryRequest, Question, State};
use queuescope_log::Schema;
use queuescope_recording::query::keys_text;
use queuescope_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep_until;

/// The most alerts that a condition raises in a run; one more has the number of the others.
const MOST: usize = 16;
/// The longest detail of an alert, in characters.
const LONGEST: usize = 1_024;
/// How often a cut is tried while other cuts are made, and the time between two tries.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(5);
/// Alerts that are looked at together.
const ALERTS: usize = 1_024;
/// The longest sleep: longer intervals are slept in parts.
const SLEEP: Nanos = Nanos(3_600_000_000_000);

/// A run that has not begun.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    /// The moment that it is about, by the packets' clock.
    at: Nanos,
    /// How long to wait before the questions go out.
    wait: Nanos,
    /// Whether it is for a new alert: then it raises again what was raised before.
    is_new: bool,
}

/// When runs begin by the clock.
#[derive(Debug, Clone, Copy)]
pub struct Timetable {
    every: Nanos,
    /// When the next run begins, and when runs end, by the steady clock.
    next: Nanos,
    until: Nanos,
    /// The moment that a run is about.
    about: About,
}

#[derive(Debug, Clone, Copy)]
enum About {
    /// So long before the run, by the system's clock.
    Before(Nanos),
    /// So long after an alert as the run is after a time of the steady clock.
    Alert { at: Nanos, begun: Nanos },
}

impl Timetable {
    /// That of a program that runs all the time.
    pub fn always(run: &Run) -> Option<Self> {
        let every = run.every.filter(|_| run.on.is_empty())?;
        Some(Self { every, next: Nanos::ZERO, until: Nanos(u64::MAX), about: About::Before(run.settle) })
    }

    /// That of a program whose runs are repeated after an alert of this time.
    fn after(run: &Run, at: Nanos, now: Nanos) -> Option<Self> {
        let begun = now.saturating_add(run.settle);
        let (every, until) = (run.every?, begun.saturating_add(run.during));
        let next = begun.saturating_add(every);
        (next <= until).then_some(Self { every, next, until, about: About::Alert { at, begun } })
    }

    /// The moment that a run of now is about.
    fn moment(&self, now: Nanos) -> Nanos {
        match self.about {
            About::Before(settle) => clock::wall().saturating_sub(settle),
            About::Alert { at, begun } => at.saturating_add(now.saturating_sub(begun)),
        }
    }

    /// The timetable after a run that begins now.
    fn behind(self, now: Nanos) -> Option<Self> {
        let next = now.saturating_add(self.every);
        (next <= self.until).then_some(Self { next, ..self })
    }
}

/// What a run found.
#[derive(Default)]
struct Found {
    /// For each condition the groups with which it holds; `None`: it was not decided.
    held: Vec<Option<Vec<HeldAlert>>>,
    trouble: String,
}

/// A group with which a condition holds: its alert, and what distinguishes it from others.
pub(super) struct HeldAlert {
    digest: u64,
    pub(super) alert: Alert,
    /// The question whose group it is, and the group's keys.
    pub(super) group: Option<(usize, Vec<u128>)>,
}

/// The groups with which conditions held in the last run: there is an alert when one comes, and not in each run. By the indices of conditions.
#[derive(Debug, Default)]
pub struct LastHeld {
    held: BTreeMap<usize, BTreeSet<u64>>,
}

impl LastHeld {
    fn clear(&mut self) {
        self.held.clear();
    }

    /// Takes what holds now. Returns the alerts about what did not hold before, and the number of conditions that were not decided.
    fn replace(&mut self, now: Vec<Option<Vec<HeldAlert>>>) -> (Vec<(usize, HeldAlert)>, u64) {
        let (mut alerts, mut undecided) = (Vec::new(), 0);
        for (index, now) in now.into_iter().enumerate() {
            let Some(now) = now else {
                undecided += 1;
                continue;
            };
            let before = self.held.insert(index, now.iter().map(|held| held.digest).collect()).unwrap_or_default();
            let mut new: Vec<_> = now.into_iter().filter(|held| !before.contains(&held.digest)).collect();
            let more = new.len().saturating_sub(MOST);
            if more > 0 {
                new.truncate(MOST + 1);
                if let Some(last) = new.last_mut() {
                    (last.alert.value, last.alert.packets) = (more as f64, 0);
                    last.alert.detail = format!("{more} more groups");
                    last.group = None;
                }
            }
            alerts.extend(new.into_iter().map(|held| (index, held)));
        }
        (alerts, undecided)
    }

    /// An alert could not be stored: the next run raises it again, if it still holds then.
    fn forget(&mut self, index: usize, digest: u64) {
        if let Some(held) = self.held.get_mut(&index) {
            held.remove(&digest);
        }
    }
}

impl Coordinator {
    /// Runs the control programs when their time comes, and after alerts of their triggers that come from now on. Never returns.
    pub async fn follow_programs(&self) {
        let mut count = self.alerts().count();
        let mut next = *count.borrow_and_update() + 1;
        loop {
            loop {
                let alerts = self.alerts().from(next, ALERTS);
                let Some(last) = alerts.last() else { break };
                next = last.number + 1;
                alerts.iter().for_each(|alert| self.note_alert(alert));
            }
            let due = self.begin_runs();
            tokio::select! {
                // The sender lives as long as the coordinator.
                _ = count.changed() => {}
                () = self.shared.programs_changed.notified() => {}
                () = sleep_until(clock::instant(due)) => {}
            }
        }
    }

    /// Runs a program now, about a moment of the packets' clock. Returns whether there is one of this name that asks something, and that is not running.
    pub async fn run_program(&self, name: &str, at: Nanos) -> bool {
        let program = {
            let mut programs = lock(&self.shared.programs);
            let known = programs.all.get_mut(name).filter(|known| !known.is_running && known.program.run().is_some());
            let Some(known) = known else { return false };
            known.is_running = true;
            Arc::clone(&known.program)
        };
        self.run_once(name, &program, at).await;
        self.shared.programs_changed.notify_one();
        true
    }

    /// A program that waits for this alert runs soon. Alerts that come before that have one run, about the last of them.
    fn note_alert(&self, alert: &Alert) {
        // Alerts of programs themselves have no member.
        let Some((name, trigger)) = alert.trigger.split_once('.').filter(|_| !alert.member.is_empty()) else { return };
        let mut programs = lock(&self.shared.programs);
        let Some(known) = programs.all.get_mut(name) else { return };
        if let Some(run) = known.program.run().filter(|run| run.on.iter().any(|on| on == trigger)) {
            let at = Nanos(alert.at);
            known.timetable = Timetable::after(run, at, clock::steady());
            let earlier = known.pending.replace(Pending { at, wait: run.settle, is_new: true });
            known.counts.joined += u64::from(earlier.is_some());
        }
    }

    /// Begins the runs that are due. Returns when the next one is, by the steady clock.
    fn begin_runs(&self) -> Nanos {
        let now = clock::steady();
        let mut next = now.saturating_add(SLEEP);
        let mut programs = lock(&self.shared.programs);
        for (name, known) in &mut programs.all {
            if let Some(timetable) = known.timetable.filter(|timetable| timetable.next <= now) {
                known.counts.joined += u64::from(known.pending.is_some());
                known.pending.get_or_insert(Pending { at: timetable.moment(now), wait: Nanos::ZERO, is_new: false });
                known.timetable = timetable.behind(now);
            }
            next = known.timetable.map_or(next, |timetable| next.min(timetable.next));
            if !known.is_running
                && let Some(pending) = known.pending.take()
            {
                known.is_running = true;
                if pending.is_new {
                    known.held.clear();
                }
                let (coordinator, program, name) = (self.clone(), Arc::clone(&known.program), name.clone());
                tokio::spawn(async move {
                    if pending.wait > Nanos::ZERO {
                        tokio::time::sleep(Duration::from_nanos(pending.wait.0)).await;
                    }
                    coordinator.run_once(&name, &program, pending.at).await;
                    coordinator.shared.programs_changed.notify_one();
                });
            }
        }
        next
    }

    /// Runs a program about a moment, and notes what became of it.
    async fn run_once(&self, name: &str, program: &Arc<Program>, at: Nanos) {
        let finding = {
            let (coordinator, name, program) = (self.clone(), name.to_owned(), Arc::clone(program));
            tokio::spawn(async move { coordinator.find(&name, &program, at).await })
        };
        // A bug of ours must not end all later runs.
        let failed =
            |_| Found { trouble: "a run failed; the coordinator's log has the reason".to_owned(), ..Found::default() };
        let Found { held, mut trouble } = finding.await.unwrap_or_else(failed);
        let (alerts, undecided) = {
            let mut programs = lock(&self.shared.programs);
            match programs.all.get_mut(name).filter(|known| Arc::ptr_eq(&known.program, program)) {
                Some(known) => known.held.replace(held),
                // It was removed, or replaced by another of its name.
                None => return,
            }
        };
        let (mut raised, mut lost) = (0, Vec::new());
        let of: Vec<_> = alerts.iter().map(|(at, held)| (*at, held.digest)).collect();
        let stored = {
            let (coordinator, name, program) = (self.clone(), name.to_owned(), Arc::clone(program));
            // It waits for the disk.
            tokio::task::spawn_blocking(move || coordinator.raise(&name, &program, &alerts)).await
        };
        let stored = stored.unwrap_or_else(|_| {
            "storing its alerts failed; the coordinator's log has the reason".clone_into(&mut trouble);
            Vec::new()
        });
        for (at, (index, digest)) in of.into_iter().enumerate() {
            match stored.get(at) {
                Some(Ok(())) => raised += 1,
                Some(Err(why)) => {
                    trouble = why.to_string();
                    lost.push((index, digest));
                }
                None => lost.push((index, digest)),
            }
        }
        let mut programs = lock(&self.shared.programs);
        if let Some(known) = programs.all.get_mut(name).filter(|known| Arc::ptr_eq(&known.program, program)) {
            // The same trouble in each run is reported once.
            if !trouble.is_empty() && trouble != known.trouble {
                self.troubled(format!("the program {name}: {trouble}"));
            }
            let Counts { runs, raised: before, undecided: others, joined } = known.counts;
            lost.into_iter().for_each(|(index, digest)| known.held.forget(index, digest));
            known.counts = Counts { runs: runs + 1, raised: before + raised, undecided: others + undecided, joined };
            known.trouble = trouble;
            known.is_running = false;
        }
    }

    async fn find(&self, name: &str, program: &Program, at: Nanos) -> Found {
        let Some(run) = program.run() else { return Found::default() };
        let failed = |trouble: String| Found { trouble, ..Found::default() };
        let chosen = match self.choose(program, run, at).await {
            Ok(chosen) => chosen,
            Err(why) => return failed(why),
        };
        let cut = match self.cut_of(&chosen, run).await {
            Ok(cut) => cut,
            Err(why) => return failed(format!("there is no cut for its questions: {why}")),
        };
        let each = program.asks().iter().zip(&chosen);
        let answers = each.map(|(ask, hosts)| self.ask_members(name, ask, hosts.names.clone(), run, cut, at));
        let mut answered: Vec<Answered> = Vec::new();
        // Each question waits for its slowest host, so all go out at once.
        let tasks: Vec<_> = answers.map(tokio::spawn).collect();
        for (ask, task) in program.asks().iter().zip(tasks) {
            match task.await {
                Ok(Ok(answer)) => answered.push(answer),
                Ok(Err(why)) => return failed(format!("the question {}: {why}", ask.name)),
                Err(_) => {
                    return failed(format!("the question {} failed; the coordinator's log has the reason", ask.name));
                }
            }
        }
        held(name, program, &answered, at, &seen_at(&chosen))
    }

    /// The members that each question goes to.
    async fn choose(&self, program: &Program, run: &Run, at: Nanos) -> Result<Vec<ChosenHosts>, String> {
        let choices: Vec<_> = program
            .asks()
            .iter()
            .map(|ask| {
                let (coordinator, names, hosts, run) = (self.clone(), self.names(ask), ask.hosts.clone(), run.clone());
                tokio::spawn(async move {
                    match hosts.saw {
                        None => Ok(ChosenHosts { names, seen_at: None }),
                        Some(saw) => coordinator.that_saw(names, &saw, &run, at).await,
                    }
                })
            })
            .collect();
        let mut chosen = Vec::new();
        for (ask, choice) in program.asks().iter().zip(choices) {
            let hosts =
                choice.await.map_err(|_| "choosing hosts failed; the coordinator's log has the reason".to_owned())?;
            chosen.push(hosts.map_err(|why| format!("the hosts of the question {}: {why}", ask.name))?);
        }
        Ok(chosen)
    }

    /// Those of some members that saw what is wanted; and those that did not answer, which the question will miss.
    async fn that_saw(&self, names: Vec<String>, saw: &Saw, run: &Run, at: Nanos) -> Result<ChosenHosts, String> {
        // Without names, it would go to all members.
        if names.is_empty() {
            return Err("no host has such a name".to_owned());
        }
        let last = saw.last.or(run.last);
        let question = Question {
            expression: saw.expression.clone(),
            from: last.map(|last| at.0.saturating_sub(last.0)),
            to: last.map(|_| at.0.saturating_add(1)),
            ..Question::default()
        };
        let asked = AskedMembers { question, members: names, within: run.within, ..AskedMembers::default() };
        let replies = self.count(asked).await.map_err(|why| why.to_string())?;
        let (mut names, mut seen_at) = (Vec::new(), Vec::new());
        for (reply, packets) in replies {
            let has_answered = matches!(reply.state, State::Answered | State::Shedding);
            if has_answered && packets > 0 {
                seen_at.push(reply.name.clone());
            }
            if !has_answered || packets > 0 {
                names.push(reply.name);
            }
        }
        Ok(ChosenHosts { names, seen_at: Some(seen_at) })
    }

    /// The cut that the questions of a run are about, if they are about one.
    async fn cut_of(&self, chosen: &[ChosenHosts], run: &Run) -> Result<Option<u64>, CutError> {
        let mut names: Vec<_> = chosen.iter().flat_map(|hosts| hosts.names.iter().cloned()).collect();
        // A cut without names would be of all members.
        if !run.cut || names.is_empty() {
            return Ok(None);
        }
        names.sort();
        names.dedup();
        let within = Nanos(self.options().lease.0 / 2);
        for _ in 1..TRIES {
            match self.cut(&names, within).await {
                Err(CutError::Busy(_)) => tokio::time::sleep(PAUSE).await,
                Ok(made) if made.lapsed.is_empty() => return Ok(Some(made.number)),
                Ok(_) => {}
                Err(other) => return Err(other),
            }
        }
        let made = self.cut(&names, within).await?;
        match made.lapsed.is_empty() {
            true => Ok(Some(made.number)),
            false => Err(CutError::Void { number: made.number, members: made.lapsed.clone() }),
        }
    }

    /// The members that a question goes to: programs are about captured packets.
    fn names(&self, ask: &Ask) -> Vec<String> {
        let members = self.members();
        let packets = Schema::packet().name();
        let captures = members.iter().filter(|member| member.schema.is_empty() || member.schema == packets);
        ask.hosts.named.of(captures.map(|member| member.name.as_str()))
    }

    fn ask_members(
        &self,
        program: &str,
        ask: &Ask,
        members: Vec<String>,
        run: &Run,
        cut: Option<u64>,
        at: Nanos,
    ) -> impl Future<Output = Result<Answered, String>> + Send + use<> {
        let has_chosen = ask.hosts.saw.is_some();
        let request = QueryRequest {
            expression: ask.expression.clone(),
            select: ask.select.clone(),
            group: ask.group.clone(),
            top: ask.top,
            from: run.last.map(|last| at.0.saturating_sub(last.0)),
            to: run.last.map(|_| at.0.saturating_add(1)),
            cut,
            members,
            within: run.within.0 / 1_000_000,
            filter: ask.filter.as_ref().map(|filter| format!("{program}.{filter}")).unwrap_or_default(),
            schema: String::new(),
            at: None,
        };
        let (coordinator, asked) = (self.clone(), Arc::clone(&ask.asked));
        async move {
            // Without names, it would go to all members.
            if request.members.is_empty() && has_chosen {
                return Ok(Answered { merged: Merging::new(&asked).finish(), members: Vec::new() });
            }
            if request.members.is_empty() {
                return Err("no host has a name that it asks for".to_owned());
            }
            coordinator.answer(asked, request).await.map_err(|why| why.to_string())
        }
    }
}

/// The members that a question goes to.
struct ChosenHosts {
    names: Vec<String>,
    /// Those that saw what the question wants, if it wants that.
    seen_at: Option<Vec<String>>,
}

/// The hosts that saw what questions want, for people; empty if none wants that.
fn seen_at(chosen: &[ChosenHosts]) -> String {
    let of_all: BTreeSet<_> = chosen.iter().filter_map(|hosts| hosts.seen_at.as_ref()).flatten().collect();
    if of_all.is_empty() {
        return String::new();
    }
    let more = of_all.len().saturating_sub(MOST);
    let shown: Vec<_> = of_all.iter().take(MOST).map(|name| name.as_str()).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("seen at {}{more}", shown.join(", "))
}

/// The groups with which the conditions of a program hold. `seen_at` names the hosts that were chosen by what they saw.
fn held(name: &str, program: &Program, answered: &[Answered], at: Nanos, seen_at: &str) -> Found {
    let missing: BTreeSet<_> = answered.iter().flat_map(|answer| &answer.members).filter_map(why_missing).collect();
    let missing = missing.into_iter().collect::<Vec<_>>().join(", ");
    let without = if missing.is_empty() { String::new() } else { format!("without {missing}") };
    let merged: Vec<_> = answered.iter().map(|answer| &answer.merged).collect();
    let of_raise = |raise: &Raise| {
        if raise.condition.needs_all() && !missing.is_empty() {
            return None;
        }
        let alert = |Held { keys, value }: Held| {
            let mut hasher = DefaultHasher::new();
            keys.hash(&mut hasher);
            let group = keys.clone();
            let (about, packets) = match keys {
                Some((question, keys)) => {
                    let asked = &program.asks()[question].asked;
                    (keys_text(asked.selection(), &(keys, Vec::new()), asked.schema()), merged[question].packets)
                }
                None => (String::new(), merged.first().map_or(0, |merged| merged.packets)),
            };
            let parts: Vec<_> =
                [about, seen_at.to_owned(), without.clone()].into_iter().filter(|part| !part.is_empty()).collect();
            let (trigger, detail) =
                (format!("{name}.{}", raise.name), parts.join("; ").chars().take(LONGEST).collect());
            let alert = Alert { trigger, at: at.0, value: value.to_f64(), packets, detail, ..Alert::default() };
            HeldAlert { digest: hasher.finish(), alert, group }
        };
        Some(raise.condition.held(&merged).into_iter().map(alert).collect())
    };
    let held: Vec<_> = program.raises().iter().map(of_raise).collect();
    let trouble = if held.iter().any(Option::is_none) {
        format!("conditions that need all hosts were not evaluated, {without}")
    } else {
        String::new()
    };
    Found { held, trouble }
}

/// Why a member's part of an answer is missing or incomplete, if it is.
fn why_missing(member: &MemberAnswer) -> Option<String> {
    let state = match member.state() {
        State::Answered if member.problem.is_empty() && member.left_out == 0 => return None,
        State::Answered => "incomplete",
        State::Shedding => "shedding",
        State::Absent => "absent",
        State::Late => "late",
        State::OtherVersion => "other version",
        State::Failed | State::Unspecified => "failed",
    };
    Some(format!("{} ({state})", member.name))
}
