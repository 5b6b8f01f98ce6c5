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

/* The configuration, which may change while the programs run, and the number of reports that were read. */
struct config {
	/* So that the rest is in one line of the cache: the values of maps begin eight bytes before one. */
	u64 unused_first;
	u32 netns, ifindex;
	/* Packets that wait longer than this count as congested, nanoseconds. */
	u64 tau;
	/* A flow contributes if its share of the bytes that left meanwhile is more than this, in 65536ths. */
	u32 alpha;
	/* Whether all packets are reported, and not only those that waited for at least half of tau. */
	u32 all;
	/* Whether packets begin with an Ethernet header, whether flows are acted on, whether reports have the headers of each packet, and whether
	 * drops are reported. */
	u32 framed, acts, each, drops;
	/* No packet was stamped before this time, nanoseconds. */
	u64 since;
	u64 read;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct config);
} config SEC(".maps");

/* The counters; those of each packet come first. */
struct counters {
	/* Packets that came, exactly: with a super-packet as one, their bytes, and their number on the wire. */
	u64 stamped, stamped_bytes, came;
	/* Packets that left: with a super-packet as one, their number on the wire, and their bytes on the wire. */
	u64 seen, packets, bytes;
	/* Packets on the wire, too. */
	u64 congested, contributing;
	/* The sum of the sojourn times of packets on the wire, nanoseconds. */
	u64 delay;
	/* Packets whose flow was not identified. */
	u64 alone;
	/* Packets on the wire without a stamp of this probe; identified packets that are not IP; bulks with more packets than are examined; packets
	 * for which the ring had no room. */
	u64 unstamped, other, bulk, untold;
	/* Packets that the device requeued: those seen to leave again, and those not seen. */
	u64 requeued, requeued_unseen;
	/* Packets on the wire that came without a CE mark and left with one; congested ones of which it is unknown what left of their flow. */
	u64 marked, unjudged;
	/* Packets on the wire that the qdisc dropped, by reason; and all of them as the qdisc itself counts (tc -s): a super-packet that it
	 * drops whole is one. */
	u64 drops[REASONS], tc_drops;
	/* The histogram of the sojourn times of packets on the wire. */
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
	u64 unused;
};

/* All earlier slices of the first queue, then those of the next. The present ones are with the queues. */
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, QUEUES * SLICES);
	TYPE(key, u32);
	TYPE(value, struct slice);
} slices SEC(".maps");

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

#pragma unroll
	for (u32 half = 16; half; half /= 2) {
		u32 step = number >> half ? half : 0;

		number >>= step;
		bits += step;
	}
	bits += number > 0;
	return bits < DELAYS ? bits : DELAYS - 1;
}
