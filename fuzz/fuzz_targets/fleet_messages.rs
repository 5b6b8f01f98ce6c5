//! Messages of any content between an agent and a coordinator, each with a certificate that is good: neither may fail. A cut and a question wait
//! for the agent's replies meanwhile. Alerts are numbered without gaps, and none is stored twice.

#![no_main]

use libfuzzer_sys::fuzz_target;
use prost::Message;
use queuescope_archive::{Recorder, RecorderOptions};
use queuescope_fleet::agent::Served;
use queuescope_fleet::coordinator::{AlertStore, Coordinator, CoordinatorOptions, ProgramStore, Programs};
use queuescope_fleet::protocol::{
    FromAgent, Hello, PROTOCOL, QueryRequest, ToAgent, Welcome, from_agent, to_agent,
};
use queuescope_log::Schema;
use queuescope_wire::Nanos;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, LazyLock};
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::sync::mpsc::channel;

/// Messages of an input.
const MOST: usize = 64;
/// Alerts that the coordinator keeps.
const KEPT: usize = 5;

/// An agent without records.
static SERVED: LazyLock<(TempDir, Served)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let options = RecorderOptions { memory: 150_000_000, ..RecorderOptions::default() };
    let (recorder, _) = Recorder::open(&dir.path().join("log"), Schema::packet(), options).unwrap();
    let folder = dir.path().join("log");
    let served = Served::new(Arc::new(recorder), folder, "a test".to_owned(), Arc::new(AtomicU64::new(0)));
    (dir, served)
});

fuzz_target!(|data: &[u8]| {
    let Some((which, bytes)) = data.split_first() else { return };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    if which % 2 == 0 { runtime.block_on(to_coordinator(bytes)) } else { runtime.block_on(to_agent(bytes)) }
    runtime.shutdown_background();
});

/// The messages that the bytes have, each behind its length.
fn messages<M: Message + Default>(mut bytes: &[u8]) -> Vec<M> {
    std::iter::from_fn(|| M::decode_length_delimited(&mut bytes).ok()).take(MOST).collect()
}

async fn to_coordinator(bytes: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let alerts = AlertStore::open(&dir.path().join("alerts.jsonl"), KEPT).unwrap();
    let programs = Programs::open(ProgramStore::open(&dir.path().join("programs")).unwrap()).unwrap();
    let coordinator = Coordinator::new(CoordinatorOptions::default(), 1, alerts, programs);
    let hello = Hello { protocol: PROTOCOL, store: 7, ..Hello::default() };
    let (session, mut come) = coordinator.attach("host", hello, None).unwrap();
    let (cutter, asker) = (coordinator.clone(), coordinator.clone());
    tokio::spawn(async move { cutter.cut(&[], Nanos(1_000_000_000)).await });
    let question = QueryRequest {
        select: "sum(length),count".to_owned(),
        group: "src_ip".to_owned(),
        within: 1_000,
        ..QueryRequest::default()
    };
    tokio::spawn(async move { asker.query(question).await });
    tokio::task::yield_now().await;
    let (mut cut, mut number) = (0, 0);
    while let Ok(ToAgent { message }) = come.try_recv() {
        match message {
            Some(to_agent::Message::Freeze(freeze)) => cut = freeze.cut,
            Some(to_agent::Message::Question(question)) => number = question.number,
            _ => {}
        }
    }
    for mut message in messages::<FromAgent>(bytes) {
        // Replies to the cut and the question are rare by chance.
        match &mut message.message {
            Some(from_agent::Message::Frozen(frozen)) if frozen.cut % 2 == 0 => frozen.cut = cut,
            Some(from_agent::Message::Thawed(thawed)) if thawed.cut % 2 == 0 => thawed.cut = cut,
            Some(from_agent::Message::Answer(answer)) if answer.number % 2 == 0 => answer.number = number,
            _ => {}
        }
        coordinator.receive(&session, message).await;
        tokio::task::yield_now().await;
    }
    let kept = coordinator.alerts().from(1, usize::MAX);
    assert!(kept.len() <= KEPT && kept.windows(2).all(|pair| pair[0].number + 1 == pair[1].number));
    let origins: BTreeSet<_> = kept.iter().map(|alert| (alert.store, alert.sequence)).collect();
    assert!(origins.len() == kept.len() && kept.iter().all(|alert| alert.member == "host" && alert.store == 7));
    assert_eq!(coordinator.members().len(), 1);
}

async fn to_agent(bytes: &[u8]) {
    let welcome = Welcome { protocol: PROTOCOL, ..Welcome::default() };
    let mut all = vec![ToAgent { message: Some(to_agent::Message::Welcome(welcome)) }];
    all.extend(messages::<ToAgent>(bytes));
    let (go, mut replies) = channel(MOST);
    let sent = tokio_stream::iter(all.into_iter().map(Ok::<_, String>));
    let session = SERVED.1.session(sent, go, || ());
    tokio::pin!(session);
    loop {
        tokio::select! {
            _ = &mut session => break,
            reply = replies.recv() => if reply.is_none() { break },
        }
    }
}
