/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Acts on flows that contribute to a queue. Packets that leave the queue register their flow, and later packets of the flow are acted on
 * before the queue ("act on future packets", section 4.2 of the ConQuest paper). */
#pragma once
#include "listed.h"

/* Flows that are remembered, at most; a new one replaces the least recently used. */
#define VICTIMS 4096
/* Steps of the function; one more than can be used, so that the binary search needs no bounds check. */
#define STEPS 64
/* The probability 1. */
#define CERTAIN (1ull << 32)

enum { NOTHING, MARK_ONLY, MARK_OR_DROP, DROP, LIMIT };
enum { BYTES, SHARE, QUEUE };

/* Parameters of the action. They may change while a packet is handled; that packet may then see some old and some new values. */
struct acting {
	/* How long a flow is acted on after a packet of it contributed, nanoseconds. */
	u64 hold;
	/* For LIMIT: 65536ths of a nanosecond for each byte, and the nanoseconds that a flow may be ahead of its rate. */
	u64 cost, burst;
	u32 action, weigh;
	/* Whether to count only, and change nothing. */
	u32 dry;
	/* Where the binary search among the steps begins. */
	u32 middle;
	/* No action from this time on: the requesting program has stopped, or its time is over. */
	u64 until;
	/* In order of weight; unused ones at the end have a weight that cannot occur. */
	struct step {
		/* The lowest weight to which the probability applies; the probability in parts of CERTAIN. */
		u64 from, probability;
	} steps[STEPS];
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct acting);
} acting SEC(".maps");

/* A flow that contributes to the queue. */
struct victim {
	/* When the action on it ends. */
	u64 until;
	/* Bytes of the flow that left while its last packet waited, and their share of all bytes that left, in 65536ths. */
	u64 weight, share;
	/* When LIMIT lets its next byte pass. */
	u64 due;
	/* Whether its last packet was exempt. */
	u64 exempt;
};

struct {
	NUMBER(type, MAP_LRU_HASH);
	NUMBER(max_entries, VICTIMS);
	TYPE(key, u64);
	TYPE(value, struct victim);
} victims SEC(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct never);
} never SEC(".maps");

/* The state of the queue that a packet left last. */
struct standing {
	/* The whole queue, treated as one flow. */
	struct victim all;
	/* Whether a packet has left since acting began. */
	u64 begun;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct standing);
} standing SEC(".maps");

/* Counts of outcomes; a super-packet counts as one. Each packet in `met` has one of the outcomes in the fields after it. */
struct acted {
	/* Packets of flows that are acted on. */
	u64 met;
	/* Not chosen, or within the limit. */
	u64 spared;
	u64 marked, would_mark, marked_before, unmarkable;
	u64 dropped, would_drop, limited, would_limit;
	/* Of the marked packets, their number on the wire. */
	u64 marked_wire;
	/* Packets of flows whose time of action is over. */
	u64 expired;
	/* Flows that were added, and flows for which there was no room. */
	u64 victims, full;
	/* Packets of flows that are never acted on, but would be without that list. */
	u64 exempt;
};

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct acted);
} acted SEC(".maps");

/* The probability with which a packet of a flow of this weight is chosen. */
INLINE u64 probability_of(const struct acting *asked, u64 weight)
{
	u32 above = 0;

	for (u32 half = asked->middle % STEPS; half; half /= 2)
		if (asked->steps[(above + half - 1) % STEPS].from <= weight)
			above += half;
	return above ? asked->steps[(above - 1) % STEPS].probability : 0;
}

/* Whether a flow is in the list of those that are never acted on. */
INLINE bool is_never(const struct known *known)
{
	u32 zero = 0;
	const struct never *list = map_lookup(&never, &zero);

	return list && is_listed(list, known);
}

/* Records the weight of a packet's flow as the packet leaves a queue, for the flow's next packet. */
INLINE void remember(u64 digest, u64 flow, u64 all, bool contributing, u32 backlog, u64 now)
{
	u32 zero = 0;
	struct acting *asked = map_lookup(&acting, &zero);
	struct acted *count = map_lookup(&acted, &zero);
	struct standing *here = map_lookup(&standing, &zero);
	struct victim *known, victim = { 0, 0, 0, 0, 0 };

	if (!asked || !asked->action || now >= asked->until || !here || !count)
		return;
	/* Written rarely, so that the cache lines stay with the processors that read it. */
	if (!here->begun)
		here->begun = 1;
	if (asked->weigh == QUEUE) {
		here->all.until = now + asked->hold;
		here->all.weight = backlog;
		return;
	}
	if (!contributing)
		return;
	victim.until = now + asked->hold;
	victim.weight = flow;
	/* The sketch may estimate a flow above the total, but here never as zero. */
	victim.share = all ? (flow << 16) / all : 1 << 16;
	if ((asked->weigh == SHARE ? victim.share : victim.weight) < asked->steps[0].from)
		return;
	known = map_lookup(&victims, &digest);
	if (known) {
		known->until = victim.until;
		known->weight = victim.weight;
		known->share = victim.share;
	} else if (map_update(&victims, &digest, &victim, 0)) {
		count->full++;
	} else {
		count->victims++;
	}
}

/* Whether a flow stays within its limit with these bytes. Two processors that run this at the same time may let one packet too many pass. */
INLINE bool passes(const struct acting *asked, struct victim *victim, u32 bytes, u64 now)
{
	u64 due = victim->due > now ? victim->due : now;

	if (due - now > asked->burst)
		return 0;
	victim->due = due + (bytes * asked->cost >> 16);
	return 1;
}

/* Acts on a packet that was chosen. `at` is where its IP header begins, if it has one. */
INLINE int respond(struct __sk_buff *skb, const struct acting *asked, struct acted *count, const u8 *headers, u32 at, bool is_ip)
{
	bool is_whole = is_ip && at + (*AT(at) >> 4 == 4 ? 20 : 40) <= skb->len;
	u32 ecn = is_whole ? ecn_of(headers, at) : NOT_ECT;

	if (asked->action == DROP || (asked->action == MARK_OR_DROP && ecn == NOT_ECT)) {
		if (asked->dry)
			count->would_drop++;
		else
			count->dropped++;
		return asked->dry ? NEXT : SHOT;
	}
	if (ecn == NOT_ECT) {
		count->unmarkable++;
	} else if (ecn == CE) {
		count->marked_before++;
	} else if (asked->dry) {
		count->would_mark++;
	} else if (mark(skb, headers, at)) {
		count->marked++;
		count->marked_wire += skb->gso_segs ? skb->gso_segs : 1;
	} else {
		count->unmarkable++;
	}
	return NEXT;
}

/* Whether a packet's flow is never acted on; the main program defines it. */
GLOBAL int is_exempt(void);

/* Decides about a packet whose flow is in the table. */
INLINE int decide(struct __sk_buff *skb, const struct acting *asked, struct acted *count, struct victim *victim,
		  const u8 *headers, u32 at, bool is_ip, u64 now)
{
	u64 probability;

	if (now >= victim->until) {
		count->expired++;
		return NEXT;
	}
	victim->exempt = is_exempt();
	if (victim->exempt) {
		count->exempt++;
		return NEXT;
	}
	count->met++;
	probability = probability_of(asked, asked->weigh == SHARE ? victim->share : victim->weight);
	if (asked->action == LIMIT) {
		if (!probability || passes(asked, victim, skb->wire_len, now)) {
			count->spared++;
			return NEXT;
		}
		if (asked->dry)
			count->would_limit++;
		else
			count->limited++;
		return asked->dry ? NEXT : SHOT;
	}
	if (random() >= probability) {
		count->spared++;
		return NEXT;
	}
	return respond(skb, asked, count, headers, at, is_ip);
}
