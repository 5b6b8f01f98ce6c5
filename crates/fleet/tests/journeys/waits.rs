//! Why the packets of a flow or a time waited, in queues of any order: as the log of `queuescope why` has it over the whole history.

use super::culprits::{Drawn, answered, history, host, key, numbered, recorded};
use super::*;
use proptest::prelude::*;
use queuescope_fleet::journey::{QueueWaits, Waits, WaitsRequest, WhenAsked, waits, write_waits};
use queuescope_fleet::protocol::QueryRequest;
use queuescope_log::Log;
use queuescope_meter::{Culprits, Dropped};
use queuescope_wire::Granularity;

/// The answer about a host with these records.
fn asked(log: &Log, request: WaitsRequest) -> Result<Waits, JourneyError<String>> {
    let request = WaitsRequest { flows: 100, within: Nanos(1_000 * MS), ..request };
    let ask = async |question: QueryRequest| Ok::<_, String>(answered(log, &question));
    let runtime = Builder::new_current_thread().build().expect("there is a thread");
    runtime.block_on(waits(&request, &[host()], ask))
}

/// Whether a queue of an answer is as the whole history has it.
fn compare(queue: &QueueWaits, truth: &Culprits<FlowId>) {
    let Culprits { victims, standing, .. } = truth;
    assert_eq!(
        (queue.packets, queue.bytes, queue.waited),
        (victims.packets, victims.bytes, victims.waited),
        "{queue:?}"
    );
    assert_eq!((queue.at, queue.backlog), (standing.at, standing.backlog), "{queue:?}");
    assert_eq!(
        queue.longest.map(|longest| longest.wait),
        victims.longest.map(|longest| longest.sojourn()),
        "{queue:?}"
    );
    assert!(queue.culprits.is_complete && queue.part.is_none(), "{queue:?}");
    let truth = truth.by(|flow| u128::from(flow.0) + 1_000);
    let HopKinds(kinds) = HopKinds::of(queue);
    for (kind, truth) in kinds.into_iter().zip([truth.direct, truth.indirect, truth.original]) {
        let truth: Bytes = truth.parts.iter().map(|(port, amount)| ((*port, 443), amount.bytes)).collect();
        assert_eq!(kind, truth, "{queue:?}");
    }
}

/// The bytes of each kind of culprits.
struct HopKinds([Bytes; 3]);

impl HopKinds {
    fn of(queue: &QueueWaits) -> Self {
        let culprits = &queue.culprits;
        Self([&culprits.direct, &culprits.indirect, &culprits.original].map(found))
    }
}

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    prop::collection::vec((0..4u16, 64..1_500u32, 0..2_000u64, 0..60u64, prop::bool::weighted(0.1)), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn waits_of_a_flow_are_those_of_the_whole_history(drawn in drawn(), is_fifo in any::<bool>(), flow in 0..4u16, from in 0..2_000u64, length in 1..3_000u64, ever in any::<bool>()) {
        let packets = numbered(drawn, is_fifo);
        let truth = history(&packets);
        let during = if ever { Nanos::ZERO..Nanos::MAX } else { Nanos(from)..Nanos(from + length) };
        let culprits = truth.of_flows(|other| other.0 == u32::from(flow), during.clone());
        let request = WaitsRequest {
            flow: Some(Granularity::FiveTuple.name(&key(flow))),
            at: (!ever).then_some(WhenAsked::Range(during.start, during.end)),
            ..WaitsRequest::default()
        };
        let answer = asked(&recorded(&packets), request);
        match culprits {
            Some(culprits) => {
                let answer = answer.unwrap_or_else(|error| panic!("{error}"));
                prop_assert_eq!(answer.queues.len(), 2);
                answer.queues.iter().for_each(|queue| compare(queue, &culprits));
                // Both queues are the same, and the first is blamed.
                prop_assert_eq!(answer.blamed, culprits.victims.waited.0.min(1).checked_sub(1).map(|_| 0));
            }
            // Only drops, or nothing.
            None => match answer {
                Ok(answer) => prop_assert!(answer.queues.iter().all(|queue| queue.packets == 0 && queue.drops > 0), "{:?}", answer),
                Err(error) => prop_assert!(error.to_string().contains(" waited or was dropped"), "{}", error),
            },
        }
    }

    #[test]
    fn waits_of_a_time_and_the_queue_of_a_moment_are_those_of_the_whole_history(drawn in drawn(), is_fifo in any::<bool>(), from in 0..2_000u64, length in 1..3_000u64) {
        let packets = numbered(drawn, is_fifo);
        let (truth, log) = (history(&packets), recorded(&packets));
        let range = WaitsRequest { at: Some(WhenAsked::Range(Nanos(from), Nanos(from + length))), ..WaitsRequest::default() };
        if let Some(culprits) = truth.of_range(Nanos(from)..Nanos(from + length)) {
            let answer = asked(&log, range).unwrap_or_else(|error| panic!("{error}"));
            prop_assert_eq!(answer.queues.len(), 2);
            answer.queues.iter().for_each(|queue| compare(queue, &culprits));
        }
        let nobody = Dropped { packet: PacketId((1 << 56) - 1), flow: FlowId(0), class: Class(0), size: 0, at: Nanos(from) };
        let mut culprits = truth.of_drop(&nobody);
        culprits.victims = Default::default();
        let moment = WaitsRequest { at: Some(WhenAsked::Moment(Nanos(from))), ..WaitsRequest::default() };
        let answer = asked(&log, moment).unwrap_or_else(|error| panic!("{error}"));
        let is_empty = culprits.standing.backlog.packets == 0;
        prop_assert_eq!(answer.queues.len(), if is_empty { 0 } else { 2 });
        answer.queues.iter().for_each(|queue| compare(queue, &culprits));
    }
}

#[test]
fn the_answer_is_in_the_words_of_the_local_command() {
    // Three packets come at once, and leave one after the other.
    let packets = numbered(
        vec![(0, 1_000, 100, 0, false), (1, 1_000, 100, 500, false), (2, 500, 100, 900, false), (2, 500, 150, 0, true)],
        false,
    );
    let log = recorded(&packets);
    let request = WaitsRequest { flow: Some("1002".to_owned()), ..WaitsRequest::default() };
    let answer = asked(&log, request).unwrap_or_else(|error| panic!("{error}"));
    let mut text = Vec::new();
    write_waits(&answer, false, &mut text).expect("it is memory");
    let text = String::from_utf8(text).expect("it is text");
    let digest = answer.queues[0].longest.and_then(|longest| longest.digest).expect("it is known");
    let queue = |number: u64, blame: &str| {
        format!(
            "host, queue {number}: 1 packet, 500 B, waited 900 ns together{blame}; 1 packet was dropped
    longest: 900 ns, came at 1970-01-01T00:00:00.000000100Z; its way: --packet {digest}
    queue at 1970-01-01T00:00:00.000000100Z: 2.00 kB in 2 packets, not empty for 0 s
    Direct culprits (left while it waited):
      10.0.0.1:1000 > 10.0.0.2:443 udp  1.00 kB, 1 packet
      10.0.0.1:1001 > 10.0.0.2:443 udp  1.00 kB, 1 packet
    Indirect culprits: none (left before that, since the queue was last empty)
    Original culprits (raised the queue to its levels as it came):
      10.0.0.1:1000 > 10.0.0.2:443 udp  1.00 kB, 1 packet
      10.0.0.1:1001 > 10.0.0.2:443 udp  1.00 kB, 1 packet
    by its clock; how far it is off is not known
"
        )
    };
    let expected = "why 10.0.0.1:1002 > 10.0.0.2:443 udp waited\n".to_owned()
        + &queue(3, ", the longest wait of all queues")
        + &queue(4, "");
    assert_eq!(text, expected);
}

#[test]
fn a_newcomer_understands_why_there_is_no_answer() {
    let log = recorded(&numbered(vec![(0, 1_000, 100, 10, false), (1, 1_000, 100, 20, false)], false));
    let error = |request: WaitsRequest| asked(&log, request).expect_err("there is no answer").to_string();
    let flow = |text: &str| WaitsRequest { flow: Some(text.to_owned()), ..WaitsRequest::default() };
    assert_eq!(
        error(flow("web")),
        "no flow has a name with 'web' in it; names are as analyze prints them: 10.0.0.1:443 > 10.0.0.2:50010 tcp"
    );
    assert_eq!(
        error(flow("10.0.0.1")),
        "2 flows have '10.0.0.1' in their names; name one:\n  10.0.0.1:1000 > 10.0.0.2:443 udp\n  10.0.0.1:1001 > 10.0.0.2:443 udp"
    );
    assert_eq!(
        error(flow("10.0.0.9 > 10.0.0.2")),
        "no packet in a queue of 10.0.0.9 > 10.0.0.2 waited or was dropped; there are records of queues of host (4 packets, \
         1970-01-01T00:00:00.000000110Z to 1970-01-01T00:00:00.000000120Z)"
    );
    let moment = Some(WhenAsked::Moment(Nanos(100)));
    assert_eq!(
        error(WaitsRequest { at: moment, ..flow("1000") }),
        "packets wait for a range of time, and 1970-01-01T00:00:00.000000100Z is a moment: write --at FROM..TO"
    );
    let none = Builder::new_current_thread().build().expect("there is a thread").block_on(waits(
        &WaitsRequest::default(),
        &[],
        async |_| Err("no host answers".to_owned()),
    ));
    assert!(matches!(none, Err(JourneyError::NoQueues)), "{none:?}");
}
