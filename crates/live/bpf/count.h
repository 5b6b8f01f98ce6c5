/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What is asked for, and what is counted for it: of all packets, and in slices of time of each queue. */
#pragma once
#include "drops.h"

/* Queues of a device that are told apart; those behind them share. */
#define QUEUES 16
/* A slice of time of the summary, in nanoseconds, as a power of two (67 ms); and how many are kept. */
#define SLICE 26
#define SLICES 64

/* Delays are counted by how many bits a microsecond's worth (1024 ns) of them has. */
#define DELAYS 32
#define DELAY 10

/* What is asked for; may change while it runs. */
struct config {
	u32 netns, ifindex;
	/* Nanoseconds that a packet waits before it counts as congested. */
	u64 tau;
	/* A flow contributes if it has more than so many 65536ths of what left meanwhile. */
	u32 alpha;
	/* Whether all packets are told, and not only those that waited for at least half of tau. */
	u32 all;
	/* The length of a window of the sketch, as a power of two of nanoseconds. */
	u32 shift;
	u32 unused;
	/* Nanoseconds: no packet was stamped before. */
	u64 since;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct config);
} config SEC(".maps");

/* What is counted. */
struct counters {
	/* Of packets that came, exactly: super-packets as such, their bytes, and on the wire. */
	u64 stamped, stamped_bytes, came;
	/* Of packets that left: super-packets, wire packets, bytes on the wire. */
	u64 seen, packets, bytes;
	/* On the wire, too. */
	u64 congested, contributing;
	/* Without a stamp of ours; not IP, of those that were asked whose they are; more at once than are looked at; that did not fit
	 * in the ring buffer. */
	u64 unstamped, other, bulk, untold;
	/* That were not asked whose they are; that the device gave back, and that left once more: seen, and not. */
	u64 alone, requeued, requeued_unseen;
	/* On the wire, that came without a mark and left with one. */
	u64 marked;
	/* On the wire, that were dropped by the qdisc, by reason. */
	u64 drops[REASONS];
	/* Nanoseconds that wire packets waited, and those by how long. */
	u64 delay;
	u64 delays[DELAYS];
};

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct counters);
} counters SEC(".maps");

/* A slice of time of one queue. */
struct slice {
	/* Which, since the machine was started. */
	u64 number;
	u64 packets, bytes, congested;
	/* Nanoseconds; the sum over wire packets. */
	u64 delay_sum, delay_max;
	/* Bytes and packets in the queue, at most. */
	u32 backlog_max, length_max;
};

/* The slices of one queue, then those of the next. */
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, QUEUES * SLICES);
	TYPE(key, u32);
	TYPE(value, struct slice);
} slices SEC(".maps");

/* Whether a device is the one that is watched. */
INLINE bool is_watched(struct net_device *device, struct config *asked)
{
	return device->ifindex == asked->ifindex && device->nd_net.net->ns.inum == asked->netns;
}

/* The packets that one is on the wire. */
INLINE u32 segments_of(struct sk_buff *skb)
{
	u16 segments = ((struct skb_shared_info *)(skb->head + skb->end))->gso_segs;

	return segments ? segments : 1;
}

/* The bits that a number has; as many as there are places for at most. */
GLOBAL u32 bits_of(u64 number)
{
	u32 bits = 0;

	for (u32 half = 16; half; half /= 2) {
		if (number >> half) {
			number >>= half;
			bits += half;
		}
	}
	bits += number > 0;
	return bits < DELAYS ? bits : DELAYS - 1;
}

/* The slice of a queue that a time is in. */
INLINE struct slice *slice_of(u32 queue, u64 now)
{
	u64 number = now >> SLICE;
	u32 place = queue * SLICES + number % SLICES;
	struct slice *slice = map_lookup(&slices, &place);

	if (slice && slice->number != number) {
		__builtin_memset(slice, 0, sizeof(*slice));
		slice->number = number;
	}
	return slice;
}

INLINE void sum_up(u32 queue, u64 now, u64 delay, u32 bytes, u32 packets, bool congested, struct Qdisc *qdisc)
{
	struct slice *slice = slice_of(queue, now);
	u32 backlog = qdisc->qstats.backlog, length = qdisc->q.qlen;

	if (!slice)
		return;
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
