//! Disciplines.

use crate::keys::{Keys, choice};
use queuescope_queue::{DisciplineParams, HashQueuesParams, Limit, MultiQueueParams, Scheduler, TailDropParams};
use queuescope_wire::ByteCount;
use std::num::NonZeroU16;

choice! {
    DisciplineParams, "discipline", keys;
    "tail-drop", "First in, first out, and what does not fit is dropped.",
        Self::TailDrop(TailDropParams::default()), Self::TailDrop(_) => {};
    "multi-queue", "A queue for each class of service. `limit` of the link is for all together.",
        Self::MultiQueue(MultiQueueParams::default()), Self::MultiQueue(params) => multi_queue(params, keys);
    "hash-queues", "A queue for each hash of the flow, served round robin. `limit` of the link is for all together.",
        Self::HashQueues(HashQueuesParams::default()), Self::HashQueues(params) => hash_queues(params, keys);
}

/// The same discipline with the limit of its link.
pub(crate) fn with_limit(params: &DisciplineParams, limit: Limit) -> DisciplineParams {
    let mut params = params.clone();
    match &mut params {
        DisciplineParams::TailDrop(params) => params.limit = limit,
        DisciplineParams::MultiQueue(params) => params.shared_limit = limit,
        DisciplineParams::HashQueues(params) => params.shared_limit = limit,
    }
    params
}

const MOST_QUEUES: NonZeroU16 = NonZeroU16::new(4096).unwrap();

fn multi_queue<K: Keys>(params: &mut MultiQueueParams, keys: &mut K) {
    keys.within("queues", &mut params.queues, NonZeroU16::MIN..=MOST_QUEUES, "How many queues; a class above stands in the last.");
    keys.key("scheduler", &mut params.scheduler, "Which queue is served next.");
    keys.key("queue-limit", &mut params.limit, "How much each queue holds.");
}

fn hash_queues<K: Keys>(params: &mut HashQueuesParams, keys: &mut K) {
    keys.within("queues", &mut params.queues, NonZeroU16::MIN..=MOST_QUEUES, "How many queues.");
    keys.key("queue-limit", &mut params.limit, "How much each queue holds.");
}

choice! {
    Scheduler, "scheduler", keys;
    "round-robin", "Each queue that has packets in turn, packet by packet.",
        Self::RoundRobin, Self::RoundRobin => {};
    "deficit", "Each queue that has packets in turn, as many bytes as the quantum on average.",
        Self::Deficit { quantum: ByteCount(1514) }, Self::Deficit { quantum } => {
            keys.within("quantum", quantum, ByteCount(1)..=ByteCount(1 << 30), "Bytes a turn.");
        };
    "strict-priority", "The first queue that has packets, by number.",
        Self::StrictPriority, Self::StrictPriority => {};
}
