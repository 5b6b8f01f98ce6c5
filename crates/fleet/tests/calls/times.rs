//! Questions and cuts by time, the clocks of hosts, and packets that violate the order of a cut.

use super::home::{Home, patiently};
use queuescope_archive::{Recorder, RecorderOptions};
use queuescope_fleet::agent::Served;
use queuescope_fleet::answer::{Asked, IpcLimits, Merged};
use queuescope_fleet::protocol::{QueryRequest, QueryResponse, State};
use queuescope_fleet::violations::violations;
use queuescope_log::{Number, Schema, packet};
use queuescope_wire::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

const MINUTE: u64 = 60_000_000_000;
const LIMITS: IpcLimits = IpcLimits { bytes: 1 << 20, rows: 100 };

/// A host that says up to which time its records are complete, if `complete` is given.
struct TimedHost {
    recorder: Arc<Recorder>,
}

impl TimedHost {
    async fn start(home: &Home, name: &str, complete: Option<&Arc<AtomicU64>>) -> Self {
        home.join(name, "agent").await;
        let folder = home.path(&format!("{name}-log"));
        let options = RecorderOptions { memory: 150_000_000, ..RecorderOptions::default() };
        let recorder = Arc::new(Recorder::open(&folder, Schema::packet(), options).expect("it is new").0);
        let served = Served::new(Arc::clone(&recorder), folder, "a test".to_owned(), Arc::default());
        let served = match complete {
            Some(complete) => served.completing(Arc::clone(complete)),
            None => served,
        };
        home.serve_as(name, served);
        home.wait_for(name, State::Answered).await;
        Self { recorder }
    }

    /// Records a packet.
    fn packet(&self, ts: u64, number: u64, ttl: u64) {
        let schema = Schema::packet();
        let mut record = vec![0; packet::SIZE];
        for (name, key) in [("ts", ts), ("tcp_seq", number), ("ttl", ttl)] {
            schema.reader(schema.find(name).expect(name)).write(&mut record, key.into());
        }
        assert_eq!(self.recorder.append(&record).expect("there is room").refused, 0);
    }
}

fn count(answer: &QueryResponse, request: &QueryRequest) -> u128 {
    let asked = Asked::of_request(request).expect("it is valid");
    match Merged::decode(&answer.rows, &asked, LIMITS).expect("it is whole").groups[0].1[..] {
        [Number::Unsigned(count)] => count,
        ref other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_host_answers_for_its_records_up_to_a_time() {
    let home = Home::start().await;
    let (one, two) = (Arc::new(AtomicU64::new(u64::MAX)), Arc::new(AtomicU64::new(0)));
    for (name, complete) in [("one", Some(&one)), ("two", Some(&two)), ("three", None)] {
        let host = TimedHost::start(&home, name, complete).await;
        (0..10).for_each(|n| host.packet(100 * n, n, 64));
    }
    let mut admin = home.admin().await;
    // Clocks are measured by cuts, and now and then.
    let cut = admin.cut(&[], Nanos(MINUTE)).await.expect("nobody else makes one");
    assert!(cut.members.iter().all(|member| member.clock.is_some_and(|clock| clock.least <= clock.most)), "{cut:?}");
    let request = QueryRequest { select: "count".to_owned(), at: Some(500), within: 2_000, ..QueryRequest::default() };
    let answer = admin.query(request.clone()).await.expect("it answers");
    assert_eq!(count(&answer, &request), 12, "six packets of two hosts");
    let [first, third, second] = &answer.members[..] else { panic!("{answer:?}") };
    assert_eq!([first.state(), third.state(), second.state()], [State::Answered, State::Answered, State::Late]);
    assert!(second.problem.starts_with("its records up to that time are not complete yet"), "{second:?}");
    assert_eq!((first.notes.len(), third.notes.len()), (0, 1));
    assert!(third.notes[0].contains("does not say"), "{third:?}");
    // One process has one clock.
    for member in &answer.members {
        let clock = member.clock.expect("it was measured");
        assert!(clock.least <= 0 && 0 <= clock.most, "{clock:?}");
    }
    let by_time = admin.cut_at(&[], Nanos(300), Nanos(1_000_000_000)).await.expect("it answers");
    let members: Vec<_> =
        by_time.members.iter().map(|member| (member.name.as_str(), member.state(), member.position)).collect();
    assert_eq!(members, [("one", State::Answered, 4), ("three", State::Answered, 4), ("two", State::Late, 0)]);
    assert_eq!((by_time.cut, by_time.void.as_str()), (0, ""));

    // A host that becomes complete while the question waits answers.
    let waiting = tokio::spawn(async move {
        let request = QueryRequest { within: MINUTE / 1_000_000, ..request };
        (admin.query(request.clone()).await.expect("it answers"), request)
    });
    two.store(501, Ordering::Release);
    let (answer, request) = waiting.await.expect("it does not panic");
    assert_eq!(count(&answer, &request), 18);
    // Other questions wait for nothing.
    two.store(0, Ordering::Release);
    let mut admin = home.admin().await;
    let request = QueryRequest { select: "count".to_owned(), within: 60_000, ..QueryRequest::default() };
    let answer = admin.query(request.clone()).await.expect("it answers");
    assert_eq!(count(&answer, &request), 30);
    assert!(answer.members.iter().all(|member| member.clock.is_none()));
    let members = patiently("clocks of members", async || {
        let members = admin.members().await.expect("it answers");
        members.iter().all(|member| member.clock.is_some()).then_some(members)
    })
    .await;
    assert_eq!(members.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_that_violate_the_order_of_a_cut_are_counted() {
    let home = Home::start().await;
    // More come, so it is not the last time that there is.
    let complete = Arc::new(AtomicU64::new(u64::MAX - 1));
    let sender = TimedHost::start(&home, "sender", Some(&complete)).await;
    let receiver = TimedHost::start(&home, "receiver", Some(&complete)).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_nanos() as u64;
    for number in 0..10 {
        receiver.packet(now + 1_000 * number + 500, number, 63);
        // The sender records the last three too late.
        if number < 7 {
            sender.packet(now + 1_000 * number, number, 64);
        }
    }
    // This one is on its way in the cut, which is in order.
    sender.packet(now + 20_000, 10, 64);
    let mut admin = home.admin().await;
    let cut = admin.cut(&[], Nanos(MINUTE)).await.expect("nobody else makes one");
    (7..10).for_each(|number| sender.packet(now + 1_000 * number, number, 64));
    receiver.packet(now + 20_500, 10, 63);
    let found = violations(&cut, Nanos(MINUTE), Nanos(MINUTE), async |question| admin.query(question).await).await;
    let found = found.expect("all answer");
    let violated: Vec<_> = found.violated.iter().map(|((has, lacks), n)| (has.as_str(), lacks.as_str(), *n)).collect();
    assert_eq!((found.packets, violated, found.undecided), (11, vec![("receiver", "sender", 3)], 0));
    assert!(found.missing.is_empty(), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_in_a_gap_of_the_records_is_noted() {
    let home = Home::start().await;
    let complete = Arc::new(AtomicU64::new(MINUTE * 5));
    let host = TimedHost::start(&home, "host", Some(&complete)).await;
    [1, 2, 3 * MINUTE].into_iter().for_each(|ts| host.packet(ts, ts, 64));
    let mut admin = home.admin().await;
    let note = async |admin: &mut queuescope_fleet::client::Client, at: u64| {
        let request =
            QueryRequest { select: "count".to_owned(), at: Some(at), within: 60_000, ..QueryRequest::default() };
        let answer = admin.query(request).await.expect("it answers");
        let [member] = &answer.members[..] else { panic!("{answer:?}") };
        assert_eq!((member.state(), member.problem.as_str()), (State::Answered, ""));
        let notes = member.notes.iter().filter(|note| !note.contains("clock"));
        notes.map(String::as_str).collect::<Vec<_>>().join("; ")
    };
    let why = ": it had no packets, or did not record then";
    let (first, last) = ("1970-01-01T00:00:00.000000002Z", "1970-01-01T00:03:00.000000000Z");
    assert_eq!(note(&mut admin, 5_000_000_000).await, "", "its last packet was just before");
    assert_eq!(note(&mut admin, MINUTE).await, format!("it has no records between {first} and {last}{why}"));
    assert_eq!(note(&mut admin, 4 * MINUTE).await, format!("it has no records after {last}{why}"));
    assert_eq!(note(&mut admin, 0).await, format!("it has no records before 1970-01-01T00:00:00.000000001Z{why}"));
    // A host whose clock was not measured is named.
    let request = QueryRequest { select: "count".to_owned(), at: Some(5), within: 60_000, ..QueryRequest::default() };
    let late = TimedHost::start(&home, "late", Some(&complete)).await;
    late.packet(1, 1, 64);
    let answer = admin.query(request).await.expect("it answers");
    let late = &answer.members[1];
    let is_noted = late.notes.iter().any(|note| note.contains("clock has not been measured"));
    assert_eq!(is_noted, late.clock.is_none(), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cuts_name_hosts_that_do_not_record_all_packets() {
    let home = Home::start().await;
    super::programs::shedding_host(&home, "shedding").await;
    let mut admin = home.admin().await;
    let cut = admin.cut(&[], Nanos(MINUTE)).await.expect("nobody else makes one");
    let by_time = admin.cut_at(&[], Nanos(5), Nanos(MINUTE)).await.expect("it answers");
    for cut in [cut, by_time] {
        let [member] = &cut.members[..] else { panic!("{cut:?}") };
        assert_eq!((member.state(), member.lacks.as_str()), (State::Answered, "it does not record all packets"));
    }
}
