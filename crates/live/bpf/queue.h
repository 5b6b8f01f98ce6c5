/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The queues of the device: what is known of each, and whether a packet is of one. */
#pragma once
#include "count.h"

/* One queue: packets leave it under the lock of the qdisc. */
struct queue {
	/* The qdisc, its count of requeues when last read, and the number of requeued packets that have not left again. */
	u64 qdisc;
	u32 requeues, again;
	/* Bytes that left; only differences count. */
	u32 left;
	/* What left while the packet waited that left last, and for how long it waited; nanoseconds. */
	u32 meanwhile;
	u64 waited;
	u64 unused[4];
	struct slice slice;
};

/* What the programs share, in one place: memory that is spread over many pages costs a packet more than what is done with it. Each part is in a
 * line of the cache of its own; the values of maps begin eight bytes before one. */
struct shared {
	u64 unused;
	/* Until when packets that come get a note, and notes are also kept apart; nanoseconds. Then the device as it was found last, and in which
	 * slice. All are written rarely, so that the line stays with the processors that read it. */
	u64 noting, keeping, device, checked;
	u64 unused_too[4];
	/* The number of reports that were begun. */
	u64 begun;
	u64 unused_also[7];
	struct queue queues[QUEUES];
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct shared);
} shared SEC(".maps");

/* Whether the probe watches this device, whose index is that of the watched one. Its namespace is looked at once in each slice. */
INLINE bool is_watched(struct net_device *device, const struct config *asked, struct shared *here, u64 now)
{
	if (here->device == (u64)device && here->checked == now >> SLICE)
		return 1;
	if (device->nd_net.net->ns.inum != asked->netns)
		return 0;
	here->device = (u64)device;
	here->checked = now >> SLICE;
	return 1;
}

/* The index of the queue that a packet left. A qdisc may serve all transmit queues of a device: then its packets share one queue. */
INLINE u32 queue_of(struct Qdisc *qdisc, struct sk_buff *skb)
{
	return qdisc->flags & OF_ONE_TRANSMIT_QUEUE ? skb->queue_mapping % QUEUES : 0;
}

/* Whether a queue is empty. Some qdiscs count on each processor separately, so that this count says nothing. */
INLINE bool is_empty(struct Qdisc *qdisc)
{
	return !qdisc->q.qlen && !(qdisc->flags & (COUNTED_APART | WITHOUT_LOCK));
}

/* Counts the packets that the device requeued since the last look; returns whether this is one of them, which leave first. Where the kernel
 * skipped runs of this program, the packets that are still requeued bound the number: the others left unseen. */
GLOBAL int is_again(struct queue *queue, u32 requeues, u32 most)
{
	u32 zero = 0;
	struct counters *count = map_lookup(&counters, &zero);

	if (!queue || !count)
		return 0;
	queue->again += requeues - queue->requeues;
	queue->requeues = requeues;
	if (queue->again > most) {
		count->requeued_unseen += queue->again - most;
		queue->again = most;
	}
	if (!queue->again)
		return 0;
	queue->again--;
	count->requeued++;
	return 1;
}

/* Whether a packet had left before and was requeued. Qdiscs without a lock count on each processor, so that their requeues are unknown. */
INLINE bool is_back(struct Qdisc *qdisc, struct queue *queue)
{
	u32 requeues = qdisc->qstats.requeues;

	if (queue->qdisc != (u64)qdisc) {
		queue->qdisc = (u64)qdisc;
		queue->requeues = requeues;
		queue->again = 0;
	}
	if (queue->requeues == requeues && !queue->again)
		return 0;
	return is_again(queue, requeues, qdisc->gso_skb.qlen + 1);
}

/* Puts the slice of a queue aside, and begins the one with this number. */
GLOBAL int begin_slice(struct slice *slice, u32 queue, u64 number)
{
	u32 place;
	struct slice *kept;

	if (!slice)
		return 0;
	place = queue % QUEUES * SLICES + slice->number % SLICES;
	kept = map_lookup(&slices, &place);
	if (kept)
		*kept = *slice;
	__builtin_memset(slice, 0, sizeof(*slice));
	slice->number = number;
	return 0;
}

INLINE void sum_up(struct slice *slice, u32 queue, u64 now, u64 delay, u32 bytes, u32 packets, bool congested, u32 backlog,
		   u32 length)
{
	u64 number = now >> SLICE;

	if (slice->number != number)
		begin_slice(slice, queue, number);
	slice->packets += packets;
	slice->bytes += bytes;
	slice->congested += congested ? packets : 0;
	slice->delay_sum += delay * packets;
	if (delay > slice->delay_max)
		slice->delay_max = delay;
	if (backlog > slice->backlog_max)
		slice->backlog_max = backlog;
	if (length > slice->length_max)
		slice->length_max = length;
}
