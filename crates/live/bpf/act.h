/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Acts on flows that contribute: what leaves the queue names them, and their next packets are met before it ("act on
 * future packets", section 4.2 of the ConQuest paper). */
#pragma once
#include "flow.h"

/* Flows that are remembered, at most; the longest untouched goes for a new one. */
#define VICTIMS 4096
/* Steps of the function; one more than are used, so that a search by halves needs no end of its own. */
#define STEPS 64
/* What a probability of 1 is. */
#define CERTAIN (1ull << 32)

enum { NOTHING, MARK_ONLY, MARK_OR_DROP, DROP, LIMIT };
enum { BYTES, SHARE, QUEUE };
enum { UNKNOWN, FRAMED, BARE };

/* What is done. It may change while a packet is looked at, which then meets a bit of both. */
struct acting {
	/* Nanoseconds that a flow is acted on, after a packet of it contributed. */
	u64 hold;
	/* Of a limit: 65536ths of a nanosecond for each byte, and nanoseconds that a flow may be ahead. */
	u64 cost, burst;
	u32 action, weigh;
	/* Counted only, and nothing changed. */
	u32 dry;
	/* Where a search among the steps begins. */
	u32 middle;
	u64 spare;
	/* In order, and behind them some from a weight that there is not. */
	struct step {
		/* From which weight on the probability holds, in parts of CERTAIN. */
		u64 from, probability;
	} steps[STEPS];
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct acting);
} acting SEC(".maps");

/* A flow that contributes. */
struct victim {
	/* Until when it is acted on. */
	u64 until;
	/* Bytes of it that left while its last packet waited, and 65536ths of all that did. */
	u64 weight, share;
	/* When a limit lets its next byte pass. */
	u64 due;
};

struct {
	NUMBER(type, MAP_LRU_HASH);
	NUMBER(max_entries, VICTIMS);
	TYPE(key, u64);
	TYPE(value, struct victim);
} victims SEC(".maps");

/* What is known of the queue that was last left. */
struct standing {
	/* All of it, as if it was one flow. */
	struct victim all;
	/* Whether its packets begin with headers of Ethernet. */
	u64 framed;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct standing);
} standing SEC(".maps");

/* What became of packets; super-packets count as one. Each that is met has one of the outcomes behind it. */
struct acted {
	/* Of flows that are acted on. */
	u64 met;
	/* Not chosen, or within the limit. */
	u64 spared;
	u64 marked, would_mark, marked_before, unmarkable;
	u64 dropped, would_drop, limited, would_limit;
	/* On the wire, of those marked. */
	u64 marked_wire;
	/* Of flows that were acted on, but whose time is over. */
	u64 expired;
	/* Flows that came to be acted on, and those for which there was no room. */
	u64 victims, full;
};

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct acted);
} acted SEC(".maps");

/* With which probability a packet of a flow of this weight is chosen. */
INLINE u64 probability_of(const struct acting *asked, u64 weight)
{
	u32 above = 0;

	for (u32 half = asked->middle % STEPS; half; half /= 2)
		if (asked->steps[(above + half - 1) % STEPS].from <= weight)
			above += half;
	return above ? asked->steps[(above - 1) % STEPS].probability : 0;
}

/* A packet has left a queue in which this stands now: what is to be known of its flow when the next one comes. */
INLINE void remember(u64 digest, u64 flow, u64 all, bool contributing, u32 backlog, bool framed, u64 now)
{
	u32 zero = 0;
	struct acting *asked = map_lookup(&acting, &zero);
	struct acted *count = map_lookup(&acted, &zero);
	struct standing *here = map_lookup(&standing, &zero);
	struct victim *known, victim = { 0, 0, 0, 0 };

	if (!asked || !asked->action || !here || !count)
		return;
	/* Written seldom, so that it stays with the processors that read it. */
	if (here->framed == UNKNOWN)
		here->framed = framed ? FRAMED : BARE;
	if (asked->weigh == QUEUE) {
		here->all.until = now + asked->hold;
		here->all.weight = backlog;
		return;
	}
	if (!contributing)
		return;
	victim.until = now + asked->hold;
	victim.weight = flow;
	/* The sketch may say that a flow was more than all, but never here that it was nothing. */
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

/* Whether a flow keeps its limit with so many bytes more. Two processors that do this at once may let one more pass. */
INLINE bool passes(const struct acting *asked, struct victim *victim, u32 bytes, u64 now)
{
	u64 due = victim->due > now ? victim->due : now;

	if (due - now > asked->burst)
		return 0;
	victim->due = due + (bytes * asked->cost >> 16);
	return 1;
}

/* The two bits of a packet for congestion; its IP header begins `at`. */
INLINE u32 ecn_of(const u8 *headers, u32 at)
{
	return (*AT(at) >> 4 == 4 ? *AT(at + 1) : *AT(at + 1) >> 4) & 3;
}

/* Sets them, in the outermost IP header; whether that could be done. */
INLINE bool mark(struct __sk_buff *skb, const u8 *headers, u32 at)
{
	u8 marked;
	u16 before = *(const u16 *)AT(at);

	if (*AT(at) >> 4 == 4) {
		marked = *AT(at + 1) | CE;
		if (l3_csum_replace(skb, at + 10, before, before | CE << 8, 2))
			return 0;
	} else {
		marked = *AT(at + 1) | CE << 4;
	}
	return !skb_store_bytes(skb, at + 1, &marked, 1, 0);
}

/* What becomes of a packet that was chosen. `at` is where its IP header begins, or none. */
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

/* What becomes of a packet of a flow, if that is acted on. */
INLINE int decide(struct __sk_buff *skb, const struct acting *asked, struct acted *count, struct victim *victim,
		  const u8 *headers, u32 at, bool is_ip, u64 now)
{
	u64 probability;

	if (now >= victim->until) {
		count->expired++;
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
