/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The configuration, and what is counted: over all packets, and in time slices of each queue. */
#pragma once
#include "drops.h"

/* Queues of a device that are counted separately; further queues share an index. */
#define QUEUES 16
/* The length of a time slice of the summary, in nanoseconds, as a power of two (67 ms); and the number of slices kept. */
#define SLICE 26
#define SLICES 64

/* Delays are counted by the number of significant bits of the delay in units of 1024 ns. */
#define DELAYS 32
#define DELAY 10

/* The configuration; it may change while the program runs. */
struct config {
	u32 netns, ifindex;
	/* Packets that wait longer than this count as congested, nanoseconds. */
	u64 tau;
	/* A flow contributes if its share of the bytes that left meanwhile is more than this, in 65536ths. */
	u32 alpha;
	/* Whether all packets are reported, and not only those that waited for at least half of tau. */
	u32 all;
	/* The length of a window of the sketch, as a power of two of nanoseconds. */
	u32 shift;
	u32 unused;
	/* No packet was stamped before this time, nanoseconds. */
	u64 since;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct config);
} config SEC(".maps");

/* The counters. */
struct counters {
	/* Packets that came, exactly: with a super-packet as one, their bytes, and their number on the wire. */
	u64 stamped, stamped_bytes, came;
	/* Packets that left: with a super-packet as one, their number on the wire, and their bytes on the wire. */
	u64 seen, packets, bytes;
	/* Packets on the wire, too. */
	u64 congested, contributing;
	/* Packets on the wire without a stamp of this probe; identified packets that are not IP; bulks with more packets than are examined; packets for
		 * which the ring buffer had no room. */
	u64 unstamped, other, bulk, untold;
	/* Packets whose flow was not identified; packets that the device requeued: those seen to leave again, and those not seen. */
	u64 alone, requeued, requeued_unseen;
	/* Packets on the wire that came without a CE mark and left with one. */
	u64 marked;
	/* Packets on the wire that the qdisc dropped, by reason; and all of them as the qdisc itself counts (tc -s): a super-packet that it
	 * drops whole is one. */
	u64 drops[REASONS], tc_drops;
	/* The sum of the sojourn times of packets on the wire, nanoseconds, and the histogram of these times. */
	u64 delay;
	u64 delays[DELAYS];
};

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct counters);
} counters SEC(".maps");

/* A time slice of one queue. */
struct slice {
	/* Its number since the machine was started. */
	u64 number;
	u64 packets, bytes, congested;
	/* Nanoseconds; the sum is over packets on the wire. */
	u64 delay_sum, delay_max;
	/* The largest backlog in bytes and in packets. */
	u32 backlog_max, length_max;
};

/* All slices of the first queue, then those of the next. */
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, QUEUES * SLICES);
	TYPE(key, u32);
	TYPE(value, struct slice);
} slices SEC(".maps");

/* Whether the probe watches this device. */
INLINE bool is_watched(struct net_device *device, struct config *asked)
{
	return device->ifindex == asked->ifindex && device->nd_net.net->ns.inum == asked->netns;
}

/* The number of packets that a super-packet has on the wire. */
INLINE u32 segments_of(struct sk_buff *skb)
{
	u16 segments = ((struct skb_shared_info *)(skb->head + skb->end))->gso_segs;

	return segments ? segments : 1;
}

/* The number of significant bits, limited to the histogram's last bin. */
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

/* The slice of a queue that contains a time. */
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
