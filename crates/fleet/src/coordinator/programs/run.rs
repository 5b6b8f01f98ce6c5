//! Runs of control programs: they ask members, and raise alerts over the answers.

use super::super::query::Answered;
use super::super::{Coordinator, CutError};
use super::Counts;
use super::held::Found;
use super::hosts::ChosenHosts;
use crate::answer::Merging;
use crate::clock;
use crate::locked::lock;
use crate::program::{Ask, Program, Run};
use crate::protocol::{Alert, QueryRequest};
use queuescope_wire::Nanos;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep_until;

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

    /// Runs a program now, about a moment of the packets' clock, for a caller with its own timetable, such as a simulation;
    /// [`follow_programs`](Self::follow_programs) does the same by the clock. Returns whether there is one of this name that asks something, and that is not running.
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
        let failed = |_| Found::failed("a run failed; the coordinator's log has the reason".to_owned());
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
        let chosen = match self.choose(program, run, at).await {
            Ok(chosen) => chosen,
            Err(why) => return Found::failed(why),
        };
        let cut = match self.cut_of(&chosen, run).await {
            Ok(cut) => cut,
            Err(why) => return Found::failed(format!("there is no cut for its questions: {why}")),
        };
        let each = program.asks().iter().zip(&chosen);
        let answers = each.map(|(ask, hosts)| self.ask_members(name, ask, hosts.names.clone(), run, cut, at));
        let mut answered = Vec::new();
        // Each question waits for its slowest host, so all go out at once.
        let tasks: Vec<_> = answers.map(tokio::spawn).collect();
        for (ask, task) in program.asks().iter().zip(tasks) {
            match task.await {
                Ok(Ok(Answered { merged, members })) => answered.push((merged, members)),
                Ok(Err(why)) => return Found::failed(format!("the question {}: {why}", ask.name)),
                Err(_) => {
                    return Found::failed(format!(
                        "the question {} failed; the coordinator's log has the reason",
                        ask.name
                    ));
                }
            }
        }
        Found::of(name, program, &chosen, &answered, at)
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

    fn ask_members(
        &self,
        program: &str,
        ask: &Ask,
        members: Vec<String>,
        run: &Run,
        cut: Option<u64>,
        at: Nanos,
    ) -> impl Future<Output = Result<Answered, String>> + Send + use<> {
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
            // No host saw what it wants. Without names, it would go to all members.
            if request.members.is_empty() {
                return Ok(Answered { merged: Merging::new(&asked).finish(), members: Vec::new() });
            }
            coordinator.answer(asked, request).await.map_err(|why| why.to_string())
        }
    }
}
