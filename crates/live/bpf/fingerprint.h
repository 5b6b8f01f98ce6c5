/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* P4air's fingerprint of a flow (Turkovic and Kuipers, ICNP 2020, section III-A): `queuescope_sketch::Fingerprint` with its default
 * parameters, step for step. Times are in ticks of 1024 ns, in 32 bits. */
#pragma once
#include "kernel.h"

/* The groups. Those of long-lived flows are the last four. */
enum { ANT, MOUSE, DELAY_BASED, LOSS_DELAY, LOSS_BASED, MODEL_BASED, GROUPS };

#define LONG_LIVED DELAY_BASED

/* Growing round trips until a delay-based flow is loss-delay, and a loss-delay flow loss-based; pulses until a flow is model-based. */
enum { LOSS_DELAY_AFTER = 4, LOSS_BASED_AFTER = 12, MODEL_BASED_AFTER = 4 };
/* A queue has grown if it is deeper by more than depth >> RISE. A round trip is a reduction if it has fewer packets by more than
 * packets >> REDUCTION. */
enum { RISE = 7, REDUCTION = 3 };
/* Packets by which a rate must change at least; round trips from an increase to the decrease of a pulse, of a settled rate before it, and
 * between two pulses that count together. */
enum { LEAST_CHANGE = 4, PULSE = 2, SETTLED = 3, PERIOD = 32 };

/* What is known of a flow before the queue. */
struct rate {
	/* Ticks; 0 until it is known. Until then, the round trip begins with the SYN. */
	u32 rtt, began;
	/* Packets in this round trip and in the previous one. */
	u32 sent, before;
	u8 pulses, since_pulse, since_increase, since_decrease;
};

/* What is known of it behind the queue: the deepest queue of this round trip and of the previous one, in packets. */
struct growth {
	u32 depth, before, aggressiveness;
};

/* A round trip that has ended. */
struct trip {
	u32 sent, before;
	u8 is_reduced, pulses;
};

INLINE u8 one_more(u8 count)
{
	return count < 255 ? count + 1 : 255;
}

INLINE u32 plus(u32 a, u32 b)
{
	return a + b < a ? ~0u : a + b;
}

/* Another SYN, or the first one. */
INLINE void on_syn(struct rate *rate, u32 now)
{
	if (!rate->rtt)
		rate->began = now;
}

INLINE bool is_pulse(struct rate *rate, bool increased, bool decreased)
{
	bool pulsed;

	rate->since_decrease = decreased ? 0 : one_more(rate->since_decrease);
	/* The increase itself counts as a round trip without a decrease. */
	if (increased && rate->since_decrease > SETTLED) {
		rate->since_increase = 1;
		return 0;
	}
	pulsed = decreased && rate->since_increase;
	if (rate->since_increase)
		rate->since_increase = pulsed || rate->since_increase >= PULSE ? 0 : rate->since_increase + 1;
	return pulsed;
}

INLINE void judge(struct rate *rate, struct trip *trip)
{
	u32 sent = rate->sent, before = rate->before;
	u32 change = before >> 3 > LEAST_CHANGE ? before >> 3 : LEAST_CHANGE;
	bool increased = before && sent >= plus(before, change);
	bool decreased = before > sent && before - sent >= change;

	rate->since_pulse = one_more(rate->since_pulse);
	if (is_pulse(rate, increased, decreased)) {
		rate->pulses = rate->since_pulse > PERIOD ? 1 : one_more(rate->pulses);
		rate->since_pulse = 0;
	}
	trip->sent = sent;
	trip->before = before;
	trip->is_reduced = sent < before - (before >> REDUCTION);
	trip->pulses = rate->pulses;
}

/* A packet other than a SYN, which counts as `count`. Returns whether it ends a round trip; it belongs to the next one then. */
INLINE bool on_packet(struct rate *rate, u32 count, u32 now, struct trip *trip)
{
	u32 age = now - rate->began;

	if (!rate->rtt) {
		/* The handshake is over. */
		rate->rtt = age ? age : 1;
		rate->began = now;
		rate->sent = count;
		return 0;
	}
	if (age < rate->rtt) {
		rate->sent = plus(rate->sent, count);
		return 0;
	}
	judge(rate, trip);
	rate->began = now;
	rate->before = rate->sent;
	rate->sent = count;
	return 1;
}

INLINE void forget_pulses(struct rate *rate)
{
	rate->pulses = rate->since_pulse = rate->since_increase = rate->since_decrease = 0;
}

/* How a mouse's slow start ends, at a packet that has been counted; `fair` packets fill its share in a round trip. */
enum { GOES_ON, SENT_LESS, FAIR_SHARE };

INLINE u32 end_of_slow_start(const struct rate *rate, bool ended, const struct trip *trip, u32 fair)
{
	if (ended && trip->sent < trip->before)
		return SENT_LESS;
	return rate->sent >= fair ? FAIR_SHARE : GOES_ON;
}

/* The group after a round trip. */
INLINE u32 group_after(u32 group, u32 aggressiveness, u32 pulses)
{
	if (group >= DELAY_BASED && group <= LOSS_BASED && pulses >= MODEL_BASED_AFTER)
		return MODEL_BASED;
	if (group == DELAY_BASED && aggressiveness >= LOSS_DELAY_AFTER)
		return LOSS_DELAY;
	if (group == LOSS_DELAY && aggressiveness >= LOSS_BASED_AFTER)
		return LOSS_BASED;
	return group;
}

/* A round trip has ended, and the first packet of the next one has left the queue, which was `depth` deep when it came. Returns the group of the flow from
 * now on. */
INLINE u32 on_end(struct growth *growth, u32 depth, u32 group, bool is_reduced, u32 pulses)
{
	bool grown = growth->depth > plus(growth->before, growth->before >> RISE);
	u32 to;

	/* A delay-based flow slows down when the queue grows, so its growth counts only while the flow does not. */
	if (group == DELAY_BASED && is_reduced)
		grown = 0;
	growth->aggressiveness = !grown ? 0 : growth->aggressiveness < 255 ? growth->aggressiveness + 1 : 255;
	growth->before = growth->depth;
	growth->depth = depth;
	to = group_after(group, growth->aggressiveness, pulses);
	if (to != group)
		growth->aggressiveness = 0;
	return to;
}

/* A packet has left that found the queue `depth` deep and ended no round trip. */
INLINE void on_left(struct growth *growth, u32 depth)
{
	if (depth > growth->depth)
		growth->depth = depth;
}
