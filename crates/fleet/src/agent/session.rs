//! An agent's side of one stream.

use super::Served;
use super::alerts::Alerts;
use super::folder::{Looked, OtherFolder};
use super::source::Records;
use crate::clock;
use crate::cut::Freezer;
use crate::locked::lock;
use crate::protocol::{
    Acted, Alert, Answer, FromAgent, Frozen, Hello, LeftOut, PROTOCOL, Programs, Question, Shown, Status, Thawed,
    ToAgent, answer, from_agent, to_agent,
};
use queuescope_log::FrozenTail;
use queuescope_wire::Nanos;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::Sender;
use tokio::time::{MissedTickBehavior, interval, sleep_until};
use tokio_stream::{Stream, StreamExt};

/// Time between two messages about this agent's state. Alerts of which no notice came are found then, too.
const STATUS: Duration = Duration::from_secs(1);
/// Alerts that the coordinator has not stored for this number of times are sent again: its disk may have been full.
const AGAIN: u32 = 3;
/// Time between two looks at actions that may be over.
const ACTS: Duration = Duration::from_millis(100);
/// Questions that are answered at the same time; others wait.
const AT_ONCE: usize = 2;
/// Questions that are answered or wait; others are refused.
const PLACES: usize = 64;

/// Why a stream ended.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The coordinator closed it, or it broke.
    #[error("the stream ended: {0}")]
    Ended(String),
    /// The coordinator has another version.
    #[error(
        "the coordinator has version {version} (protocol {protocol}), and this agent has {own} (protocol {PROTOCOL}): \
         protocols may differ by one; upgrade the older of the two"
    )]
    Version {
        /// Its version.
        version: String,
        /// Its protocol.
        protocol: u32,
        /// The version of the agent.
        own: &'static str,
    },
    /// Another recording, or another file of alerts, is in the folder: the next stream serves it from its start.
    #[error(
        "{folder} has another {what} in place of the one that was served, and it is read from its start now; of the earlier one, \
         {lost} alerts were not stored by the coordinator"
    )]
    Replaced {
        /// The folder.
        folder: String,
        /// What was replaced.
        what: &'static str,
        /// Alerts that were read and not stored.
        lost: u64,
    },
    /// The first alert is in the folder: it names the file of alerts, so the next stream has that name.
    #[error("{folder} has its first alert: the connection begins again with the name of its file")]
    FirstAlert {
        /// The folder.
        folder: String,
    },
    /// The folder cannot be read.
    #[error("cannot read the alerts in {folder}: {why}")]
    Alerts {
        /// The folder.
        folder: String,
        /// The error of the system.
        why: io::Error,
    },
}

impl Served {
    /// The first message.
    pub fn hello(&self) -> Hello {
        self.source.folder().inspect(|folder| folder.look_at_alerts());
        Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            schema: self.source.open().schema().name().to_owned(),
            source: self.about.clone(),
            store: self.source.store(),
            no_cuts: self.source.own().is_none(),
            earlier_store: self.source.earlier_store(),
        }
    }

    /// Serves a stream until it ends: `come` has the messages of the coordinator, `go` takes those of the agent. The first message,
    /// [`hello`](Self::hello), has been sent. `welcomed` is called when the coordinator has accepted it. Returns why the stream ended.
    pub async fn session<E: ToString>(
        &self,
        mut come: impl Stream<Item = Result<ToAgent, E>> + Unpin,
        go: Sender<FromAgent>,
        welcomed: impl FnOnce(),
    ) -> SessionError {
        let Err(why) = self.serve_stream(&mut come, go, welcomed).await;
        why
    }

    async fn serve_stream<E: ToString>(
        &self,
        come: &mut (impl Stream<Item = Result<ToAgent, E>> + Unpin),
        go: Sender<FromAgent>,
        welcomed: impl FnOnce(),
    ) -> Result<Infallible, SessionError> {
        let ended = |why: &str| SessionError::Ended(why.to_owned());
        let stored = match come.next().await {
            Some(Ok(ToAgent { message: Some(to_agent::Message::Welcome(welcome)) })) => {
                if welcome.protocol.abs_diff(PROTOCOL) > 1 {
                    let (version, protocol) = (welcome.version, welcome.protocol);
                    return Err(SessionError::Version { version, protocol, own: env!("CARGO_PKG_VERSION") });
                }
                welcome.stored
            }
            Some(Ok(_)) => return Err(ended("the coordinator did not begin with a welcome")),
            Some(Err(why)) => return Err(SessionError::Ended(why.to_string())),
            None => return Err(ended("the coordinator closed it at once")),
        };
        welcomed();
        let alerts = Alerts::after(&self.folder, self.source.store(), stored);
        let alerts = match self.source.folder() {
            None => alerts,
            Some(folder) => alerts.of_first_line(folder.first_line()),
        };
        let mut stream = Serving {
            served: self,
            go,
            freezer: Arc::default(),
            alerts,
            unstored: 0,
            replaced: None,
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            places: Arc::new(Semaphore::new(PLACES)),
        };
        let mut status = interval(STATUS);
        let mut acting = interval(ACTS);
        for timer in [&mut status, &mut acting] {
            timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        loop {
            tokio::select! {
                biased;
                message = come.next() => match message {
                    Some(Ok(message)) => stream.receive(message).await?,
                    Some(Err(why)) => return Err(SessionError::Ended(why.to_string())),
                    None => return Err(ended("the coordinator closed it")),
                },
                () = self.alerted.notified() => stream.alert().await?,
                _ = acting.tick(), if lock(&self.acts).is_acting() => {
                    let ended = lock(&self.acts).tick(clock::steady());
                    stream.acted(ended).await?;
                }
                _ = status.tick() => {
                    stream.repeat_alerts();
                    match self.source.folder() {
                        None => stream.alert().await?,
                        Some(folder) => stream.look(folder).await?,
                    }
                    stream.status().await?;
                    let news = lock(&self.acts).news(clock::steady());
                    stream.acted(news).await?;
                }
            }
        }
    }
}

/// A stream that is being served. When it ends, the tail thaws, and actions end.
struct Serving<'a> {
    served: &'a Served,
    go: Sender<FromAgent>,
    /// Leases end even while this stream waits for its peer, so their timers run beside it.
    freezer: Arc<Mutex<Freezer<FrozenTail<Records>>>>,
    alerts: Alerts,
    /// How often there were alerts that wait, and none was stored since the time before.
    unstored: u32,
    /// What was replaced in a folder of another process, and how often its earlier alerts were awaited to be stored since.
    replaced: Option<(&'static str, u32)>,
    turns: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        lock(&self.freezer).let_go();
        lock(&self.served.acts).end_all("the stream to the coordinator ended");
    }
}

impl Serving<'_> {
    async fn receive(&mut self, message: ToAgent) -> Result<(), SessionError> {
        lock(&self.served.acts).heard(clock::steady());
        match message.message {
            Some(to_agent::Message::Freeze(freeze)) => {
                // A coordinator that knows that there is no tail to freeze does not ask; to another, this host is late.
                let Some(records) = self.served.source.own() else { return Ok(()) };
                let (now, lease) = (clock::steady(), Nanos(freeze.lease));
                let frozen = lock(&self.freezer)
                    .freeze(now, freeze.cut, lease, || FrozenTail::of(records.clone()))
                    .map(FrozenTail::position);
                let Some(position) = frozen else { return Ok(()) };
                let freezer = Arc::clone(&self.freezer);
                tokio::spawn(async move {
                    sleep_until(clock::instant(now.saturating_add(lease))).await;
                    lock(&freezer).expire(clock::steady());
                });
                let (position, at) = (records.0.position(position), clock::wall().0);
                self.send(from_agent::Message::Frozen(Frozen { cut: freeze.cut, position, at })).await
            }
            Some(to_agent::Message::Thaw(thaw)) => {
                let lapsed = lock(&self.freezer).thaw(thaw.cut);
                self.send(from_agent::Message::Thawed(Thawed { cut: thaw.cut, lapsed })).await
            }
            Some(to_agent::Message::Ping(number)) => {
                self.send(from_agent::Message::Shown(Shown { number, at: clock::wall().0 })).await?;
                self.send(from_agent::Message::Pong(number)).await
            }
            Some(to_agent::Message::Stored(sequence)) => {
                self.unstored = 0;
                self.alerts.stored(sequence);
                Ok(())
            }
            Some(to_agent::Message::Question(question)) => {
                self.answer(question);
                Ok(())
            }
            Some(to_agent::Message::Programs(programs)) => {
                self.install(programs);
                Ok(())
            }
            Some(to_agent::Message::Act(act)) => {
                let acted = lock(&self.served.acts).begin(clock::steady(), &act);
                self.acted(vec![acted]).await
            }
            Some(to_agent::Message::Hold(hold)) => {
                let ended = lock(&self.served.acts).hold(&hold.ids);
                self.acted(ended).await
            }
            // A later version may have other messages; a second welcome says nothing new.
            Some(to_agent::Message::Welcome(_)) | None => Ok(()),
        }
    }

    /// Answers in a thread of its own: freezing must not wait for it. A question whose time is over is not answered, and there is a limit of
    /// those that wait.
    fn answer(&self, question: Question) {
        let until = Served::deadline(&question);
        let (served, go, turns) = (self.served.clone(), self.go.clone(), Arc::clone(&self.turns));
        let freezer = Arc::clone(&self.freezer);
        let place = Arc::clone(&self.places).try_acquire_owned();
        tokio::spawn(async move {
            let number = question.number;
            let result = match place {
                Err(_) => answer::Result::Error(format!("it has {PLACES} questions to answer already")),
                Ok(_place) => {
                    let is_complete = served.completed(&question, until, &freezer).await;
                    if let Err(incomplete) = is_complete {
                        let message = Some(from_agent::Message::Answer(Answer {
                            number,
                            result: Some(answer::Result::Part(incomplete)),
                        }));
                        // If the stream is over, nobody waits for the answer.
                        let _ = go.send(FromAgent { message }).await;
                        return;
                    }
                    // The semaphore is never closed.
                    let Ok(_turn) = turns.acquire().await else { return };
                    if clock::steady() >= until {
                        return;
                    }
                    match tokio::task::spawn_blocking(move || served.part(&question, until)).await {
                        Ok(Ok(part)) => answer::Result::Part(part),
                        Ok(Err(why)) => answer::Result::Error(why),
                        Err(_) => {
                            answer::Result::Error("it failed while it answered; its log has the reason".to_owned())
                        }
                    }
                }
            };
            let message = Some(from_agent::Message::Answer(Answer { number, result: Some(result) }));
            // If the stream is over, nobody waits for the answer.
            let _ = go.send(FromAgent { message }).await;
        });
    }

    /// Installs definitions in a thread of its own: freezing must not wait for it.
    fn install(&self, programs: Programs) {
        let (served, go, number) = (self.served.clone(), self.go.clone(), self.served.programs.receive());
        tokio::spawn(async move {
            // A panic was printed in its thread.
            let Ok(Some(installed)) = tokio::task::spawn_blocking(move || served.install(number, programs)).await
            else {
                return;
            };
            let message = Some(from_agent::Message::Installed(installed));
            // If the stream is over, the next one begins with another list.
            let _ = go.send(FromAgent { message }).await;
        });
    }

    /// Reads alerts again that have waited for some time.
    fn repeat_alerts(&mut self) {
        self.unstored = if self.alerts.waiting() == 0 { 0 } else { self.unstored + 1 };
        if self.unstored > AGAIN && self.replaced.is_none() {
            self.unstored = 0;
            self.alerts.again();
        }
    }

    async fn alert(&mut self) -> Result<(), SessionError> {
        let more = self.alerts.more().map_err(|why| self.unread(why))?;
        self.send_alerts(more).await
    }

    async fn send_alerts(&self, alerts: Vec<Alert>) -> Result<(), SessionError> {
        for alert in alerts {
            self.send(from_agent::Message::Alert(alert)).await?;
        }
        Ok(())
    }

    /// Looks at the folder of another process: its new alerts, and whether another recording or another file of alerts is there. If so, the stream ends,
    /// because the next one names these. Alerts that were read have some time to be stored.
    async fn look(&mut self, folder: &OtherFolder) -> Result<(), SessionError> {
        let was_open = self.alerts.is_open();
        let more = self.alerts.more().map_err(|why| self.unread(why))?;
        if self.replaced.is_none() && folder.look() == Looked::Replaced {
            self.replaced = Some(("recording", 0));
            if !was_open {
                // They may be of the later recording, which begins with the next stream.
                return Err(self.replaced(folder, 0));
            }
        }
        let is_last = more.is_empty();
        self.send_alerts(more).await?;
        let is_there = folder.trouble().is_none();
        if is_last
            && is_there
            && self.replaced.is_none()
            && self.alerts.is_replaced().map_err(|why| self.unread(why))?
        {
            // The first alert of a folder names its file, which replaces none.
            if self.alerts.is_other() && folder.first_line() == 0 {
                return Err(SessionError::FirstAlert { folder: self.served.folder.display().to_string() });
            }
            folder.alerts_replaced();
            self.replaced = Some(("file of alerts", 0));
        }
        let waiting = self.alerts.waiting();
        match &mut self.replaced {
            Some((_, awaited)) if is_last && (waiting == 0 || *awaited >= AGAIN) => Err(self.replaced(folder, waiting)),
            Some((_, awaited)) => {
                *awaited += 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn replaced(&self, folder: &OtherFolder, lost: u64) -> SessionError {
        folder.lose_alerts(lost);
        let what = self.replaced.map_or("recording", |(what, _)| what);
        SessionError::Replaced { folder: self.served.folder.display().to_string(), what, lost }
    }

    fn unread(&self, why: io::Error) -> SessionError {
        SessionError::Alerts { folder: self.served.folder.display().to_string(), why }
    }

    /// Reports what became of actions.
    async fn acted(&self, all: Vec<Acted>) -> Result<(), SessionError> {
        for acted in all {
            self.send(from_agent::Message::Acted(acted)).await?;
        }
        Ok(())
    }

    async fn status(&self) -> Result<(), SessionError> {
        let records = self.served.visible();
        let (shed, waiting) = (self.served.shed.load(Ordering::Relaxed), self.alerts.waiting());
        let (malformed, uploads) = (self.alerts.malformed(), self.served.upload_state());
        let mut left_out = self.served.left_out.get();
        let folder = self.served.source.folder();
        left_out.extend(folder.into_iter().flat_map(OtherFolder::left_out));
        if self.alerts.missing() > 0 {
            let meaning = "alerts that are stored are not in its alerts.jsonl any more, which was cut".to_owned();
            left_out.push(LeftOut { reason: "alerts_cut".to_owned(), count: self.alerts.missing(), meaning });
        }
        let trouble = folder.and_then(OtherFolder::trouble).unwrap_or_default();
        let status = Status { records, shed, waiting, malformed, uploads, left_out, trouble };
        self.send(from_agent::Message::Status(status)).await
    }

    async fn send(&self, message: from_agent::Message) -> Result<(), SessionError> {
        let sent = self.go.send(FromAgent { message: Some(message) }).await;
        sent.map_err(|_| SessionError::Ended("the connection broke".to_owned()))
    }
}
