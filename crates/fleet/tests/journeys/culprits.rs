//! Culprits in queues of any order, with drops, many equal times and busy periods that are much longer than a wait: those of the whole history.

use super::*;
use proptest::prelude::*;
use queuescope_fleet::answer::{Asked, Extent, Merging};
use queuescope_fleet::protocol::{Member, MemberAnswer, QueryRequest, QueryResponse, State};
use queuescope_log::packet::{Known, fill_known};
use queuescope_log::{Log, Memory, Options, queued};
use queuescope_meter::{Culprits, Dropped};
use queuescope_recording::query::{PartLimits, Records as HostRecords};
use queuescope_wire::{Ecn, FlowKey};

/// A packet: its flow, its bytes, when it came, how long it waited, and whether it was dropped.
pub(super) type Drawn = (u16, u32, u64, u64, bool);

/// Packets with their numbers, in the order of departures.
pub(super) fn numbered(mut packets: Vec<Drawn>, is_fifo: bool) -> Vec<(u64, Drawn)> {
    packets.sort_by_key(|packet| packet.2);
    let mut free = 0;
    if is_fifo {
        for (_, size, came, wait, is_dropped) in &mut packets {
            let left = (*came).max(free);
            *wait = left - *came;
            if !*is_dropped {
                free = left + u64::from(*size / 64);
            }
        }
    }
    let mut packets: Vec<_> = (0..).zip(packets).collect();
    packets.sort_by_key(|(number, (.., came, wait, _))| (came + wait, *number));
    packets
}

/// The flow of a number.
pub(super) fn key(flow: u16) -> FlowKey {
    FlowKey::named(&format!("10.0.0.1:{} > 10.0.0.2:443 udp", 1_000 + flow)).expect("it is a name").1
}

/// The records of a host: all packets went through the same queue, and others through another at the same time.
pub(super) fn recorded(packets: &[(u64, Drawn)]) -> Log {
    let options = Options { records: 4 * packets.len() as u64 + 64, memory: Memory::Lazy };
    let log = Log::new(Schema::queued().clone(), options).unwrap_or_else(|error| panic!("{error}"));
    let (mut headers, mut record) = ([0; packet::SIZE], [0; queued::SIZE]);
    for &(number, (flow, size, came, wait, is_dropped)) in packets {
        let key = key(flow);
        fill_known(&mut headers, &Known { at: Nanos(came), length: size, key: &key, ecn: Ecn::NotEct, tcp: None });
        let packet = Packet { id: PacketId(number), size: ByteCount(size.into()), ..Packet::default() };
        for queue in [3, 4] {
            let (enqueued, dequeued) = (Nanos(came), Nanos(came + wait));
            let left = Departure { packet, enqueued, dequeued, queue: QueueId(queue), ..Departure::default() };
            queued::fill(&mut record, &headers, &left, if is_dropped { 1 } else { queued::LEFT });
            assert_eq!(log.append(&record).refused, 0);
        }
    }
    log
}

/// The answer of the only host.
pub(super) fn answered(log: &Log, request: &QueryRequest) -> QueryResponse {
    let asked = Asked::of_request(request).unwrap_or_else(|error| panic!("{error}"));
    let extent = Extent { from: request.from.unwrap_or(0), to: request.to.unwrap_or(u64::MAX), before: None };
    let limits = PartLimits { groups: 1_000_000, memory: ByteCount(100_000_000) };
    let part =
        asked.evaluate(HostRecords::Log(log), extent, limits, &|| true).unwrap_or_else(|error| panic!("{error}"));
    let mut merging = Merging::new(&asked);
    merging.add(&part).unwrap_or_else(|error| panic!("{error}"));
    let mut member = MemberAnswer { name: "host".to_owned(), ..MemberAnswer::default() };
    member.set_state(State::Answered);
    let rows = merging.finish().encode(&asked).unwrap_or_else(|error| panic!("{error}"));
    QueryResponse { rows, members: vec![member] }
}

/// The whole history of the queue.
pub(super) fn history(packets: &[(u64, Drawn)]) -> QueueLog {
    let mut log = QueueLog::new();
    for &(number, (flow, size, came, wait, is_dropped)) in packets {
        let (packet, flow, class) = (PacketId(number), FlowId(flow.into()), Class(0));
        if is_dropped {
            log.record_drop(&Dropped { packet, flow, class, size, at: Nanos(came + wait) }).expect("they are in order");
        } else {
            let (enqueued, dequeued) = (Nanos(came), Nanos(came + wait));
            log.record(&Departed { packet, flow, class, size, enqueued, dequeued }).expect("they are in order");
        }
    }
    log
}

/// The host.
pub(super) fn host() -> Member {
    let mut host = Member { name: "host".to_owned(), schema: Schema::queued().name().to_owned(), ..Member::default() };
    host.set_state(State::Answered);
    host
}

/// The culprits from the whole history of the queue.
fn truth(packets: &[(u64, Drawn)], own: u64) -> Culprits<FlowId> {
    let log = history(packets);
    let dropped = log.find_drop(PacketId(own));
    dropped.map_or_else(|| log.of_packet(PacketId(own)).expect("it left"), |dropped| log.of_drop(&dropped))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn culprits_are_those_of_the_whole_history(
        drawn in prop::collection::vec((0..4u16, 64..1_500u32, 0..2_000u64, 0..60u64, prop::bool::weighted(0.1)), 1..120),
        is_fifo in any::<bool>(), choice in any::<prop::sample::Index>(),
    ) {
        let packets = numbered(drawn, is_fifo);
        let (own, _) = packets[choice.index(packets.len())];
        let log = recorded(&packets);
        let request = JourneyRequest {
            expression: format!("packet == {}", own + 1),
            flows: 100,
            within: Nanos(1_000 * MS),
            ..JourneyRequest::default()
        };
        let mut questions = 0;
        let ask = async |request: QueryRequest| {
            questions += 1;
            Ok::<_, String>(answered(&log, &request))
        };
        let runtime = Builder::new_current_thread().build().expect("there is a thread");
        let journey = runtime.block_on(journey(&request, &[host()], ask)).unwrap_or_else(|error| panic!("{error}"));
        // A datagram has no identification here: of those that look the same, the longest visit counts.
        let hop = &journey.hops[0];
        let is_shown = |(_, (flow, .., came, wait, is_dropped)): &&(u64, Drawn)| {
            (Nanos(*came), Nanos(came + wait), *is_dropped) == (hop.enqueued, hop.dequeued, hop.dropped.is_some())
                && journey.packet.contains(&format!("src_port {},", 1_000 + flow))
        };
        let shown: Vec<_> = packets.iter().filter(is_shown).collect();
        prop_assume!(shown.len() == 1);
        let truth = truth(&packets, shown[0].0).by(|flow| u128::from(flow.0) + 1_000);
        for (kind, truth) in [(&hop.culprits.direct, truth.direct), (&hop.culprits.indirect, truth.indirect), (&hop.culprits.original, truth.original)] {
            let truth: Bytes = truth.parts.iter().map(|(port, amount)| ((*port, 443), amount.bytes)).collect();
            prop_assert_eq!(found(kind), truth, "{:?}", &journey);
        }
        prop_assert!(hop.culprits.is_complete);
        prop_assert_eq!(journey.hops.len(), 2, "two queues");
        prop_assert!(questions < 60, "{} questions", questions);
    }
}
