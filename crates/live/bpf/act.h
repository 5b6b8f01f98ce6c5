/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Acts on flows that contribute: what leaves the queue names them, and their next packets are met before it ("act on
 * future packets", section 4.2 of the ConQuest paper). */
#pragma once
#include "flow.h"

/* Flows that are remembered, at most; the longest untouched goes for a new one. */
#define VICTIMS 4096
/* Tests of the list of flows that are never acted on, at most. */
#define TESTS 64
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
	/* From this time on nothing is done: who asked for it has stopped, or its time is over. */
	u64 until;
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
	/* Whether its last packet was exempt. */
	u64 exempt;
};

struct {
	NUMBER(type, MAP_LRU_HASH);
	NUMBER(max_entries, VICTIMS);
	TYPE(key, u64);
	TYPE(value, struct victim);
} victims SEC(".maps");

/* What a packet's addresses, ports and protocol are, as tests have them: low and high halves. An IPv4 address stands behind ::ffff:0:0,
 * as in records; without IP all is zero. The third pair has the source port, the destination port, the protocol and the IP version,
 * from bit 0, 16, 32 and 40 on; the fourth is there so that a mask keeps to them. */
struct known {
	u64 of[8];
};

/* A test of the list of flows that are never acted on. Those up to one that ends a condition are alternatives; conditions up to one
 * that ends a term must all hold; one term is enough. */
struct test {
	/* Holds if the bits under the mask are from `low` to `high`: first the low half of each, then the high one. */
	u64 mask[2], low[2], high[2];
	/* Which pair of what is known. */
	u32 pair;
	/* Bits of `enum ends`, and whether the test holds where the bits are not so. */
	u32 ends;
};

enum ends { ENDS_CONDITION = 1, ENDS_TERM = 2, NEGATED = 4 };

struct never {
	u64 count;
	struct test tests[TESTS];
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct never);
} never SEC(".maps");

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
	/* Of flows that are never acted on, and would have been met. */
	u64 exempt;
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

INLINE void know(const struct words *words, struct known *known)
{
	u64 family = words->of[5] >> 16, version = family == FAMILY_V4 ? 4 : 6;

	__builtin_memset(known, 0, sizeof(*known));
	if (family != FAMILY_V4 && family != FAMILY_V6)
		return;
	known->of[0] = words->of[0];
	known->of[1] = words->of[1];
	known->of[2] = words->of[2];
	known->of[3] = words->of[3];
	if (family == FAMILY_V4) {
		known->of[0] |= 0xffffull << 32;
		known->of[2] |= 0xffffull << 32;
	}
	known->of[4] = (words->of[4] & 0xffffffff) | (words->of[5] & 0xff) << 32 | version << 40;
}

INLINE bool is_at_least(u64 low, u64 high, const u64 *other)
{
	return high > other[1] || (high == other[1] && low >= other[0]);
}

INLINE bool is_at_most(u64 low, u64 high, const u64 *other)
{
	return high < other[1] || (high == other[1] && low <= other[0]);
}

/* Whether a flow is one that is never acted on. */
INLINE bool is_never(const struct known *known)
{
	u32 zero = 0, condition = 0, term = 1;
	struct never *list = map_lookup(&never, &zero);

	if (!list)
		return 0;
	for (u32 place = 0; place < TESTS; place++) {
		const struct test *test = &list->tests[place];
		u64 low, high;
		u32 holds;

		if (place >= list->count)
			break;
		low = known->of[(test->pair & 3) * 2] & test->mask[0];
		high = known->of[(test->pair & 3) * 2 + 1] & test->mask[1];
		holds = is_at_least(low, high, test->low) && is_at_most(low, high, test->high);
		condition |= holds ^ !!(test->ends & NEGATED);
		if (test->ends & ENDS_CONDITION) {
			term &= condition;
			condition = 0;
		}
		if (test->ends & ENDS_TERM) {
			if (term)
				return 1;
			term = 1;
		}
	}
	return 0;
}

/* A packet has left a queue in which this stands now: what is to be known of its flow when the next one comes. */
INLINE void remember(u64 digest, u64 flow, u64 all, bool contributing, u32 backlog, bool framed, u64 now)
{
	u32 zero = 0;
	struct acting *asked = map_lookup(&acting, &zero);
	struct acted *count = map_lookup(&acted, &zero);
	struct standing *here = map_lookup(&standing, &zero);
	struct victim *known, victim = { 0, 0, 0, 0, 0 };

	if (!asked || !asked->action || now >= asked->until || !here || !count)
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

/* Whether a packet's flow is one that is never acted on; the program says it. */
GLOBAL int is_exempt(void);

/* What becomes of a packet of a flow, if that is acted on. */
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
