/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* LoLa (Hock, Neumeister, Zitterbart and Bless 2017), as `LolaParams::linux` of queuescope-tcp: a standing queue whose delay lies between
 * two thresholds, and of which each connection has the same share. Fractions of a segment are integers in units of 2^-20. */
#include "tcp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { UNITS = 20 };
#define SEGMENT (1ull << UNITS)

/* C of the cubic increase and beta, the part of the window that a loss leaves, in units of 1/1024; so is gamma of the tailored decrease. */
enum { C = 410, BETA = 717, GAMMA = 927, SHIFT = 10 };
/* Times in microseconds: the queueing delays that end slow start, begin and end fair flow balancing; the hold; the interval of a measurement;
 * the difference from the smallest round-trip time that still counts as that. */
enum { EXIT = 1000, LOW = 500, TARGET = 5000, HOLD = 250000, MEASURE = 40000, EPSILON = 100 };
/* The milliseconds in fair flow balancing after which a connection should have a segment in the queue: phi. */
enum { PHI = 300 };
/* Samples of an interval, and of a round trip in slow start; tailored decreases until the smallest round-trip time is forgotten; segments that
 * such a decrease leaves. */
enum { SAMPLES = 20, FIRST_SAMPLES = 16, DECREASES = 10, FLOOR = 5 };

/* Longer round trips count as this one (8 s), longer times in fair flow balancing as 16 s (in units of 1/8 ms), and longer distances from K as 64 s
 * (in units of 2^-14 s), so that products fit in 64 bits. */
enum { LONGEST = (1 << 23) - 1, LONGEST_SHARE = (1 << 17) - 1, LONGEST_CUBE = (1 << 20) - 1 };
/* No round-trip time. */
#define NEVER 0xffffffff

enum { SLOW_START, CUBIC, FAIR_FLOW, HELD };

struct lola {
	/* When the cubic increase began (0 if it has not), when fair flow balancing began or the hold ends, and when this measurement began. */
	u64 curve, since, measuring;
	/* The window before the last reduction, and the fraction of a segment by which the window is larger than `window`. */
	u64 largest;
	u32 fraction, window;
	/* The fraction of a segment by which the threshold is larger than the kernel's. */
	u32 threshold;
	/* K, in units of 2^-14 s. */
	u32 k;
	/* The smallest round-trip time ever, that of this interval, and that of the last one. */
	u32 base, smallest, last;
	u32 samples;
	/* The round trip ends with the first acknowledgement after this sequence number. */
	u32 end;
	u16 unseen;
	/* The state; whether samples are still those of an older window; whether the last ACK completed an interval. */
	u8 state, skips, ready;
};

FITS(lola);

/* The window with its fraction. */
INLINE u64 size(struct tcp_sock *tp, struct lola *l)
{
	u64 window = (u64)least(tp->snd_cwnd, LARGEST) << UNITS;

	return window + (tp->snd_cwnd == l->window ? l->fraction : 0);
}

INLINE void resize(struct tcp_sock *tp, struct lola *l, u64 units)
{
	set_window(tp, most(units >> UNITS, 1));
	l->window = tp->snd_cwnd;
	l->fraction = units & (SEGMENT - 1);
}

INLINE void begin_interval(struct lola *l)
{
	l->measuring = 0;
	l->smallest = NEVER;
	l->samples = 0;
}

/* Skips the round-trip times of what is in flight. */
INLINE void skip_round(struct tcp_sock *tp, struct lola *l)
{
	l->skips = 1;
	l->end = tp->snd_nxt;
	begin_interval(l);
}

INLINE void begin_cubic(struct tcp_sock *tp, struct lola *l)
{
	l->state = CUBIC;
	l->curve = 0;
	skip_round(tp, l);
}

INLINE void hold(struct tcp_sock *tp, struct lola *l, u32 time)
{
	l->state = HELD;
	l->since = tp->tcp_mstamp + time;
}

/* The cube root, rounded down; at most 2^21 - 1. Unrolled, because a test runs these programs on an interpreter that does not end such loops. */
INLINE u32 cube_root(u64 cube)
{
	u64 root = 0;

#pragma unroll
	for (int bit = 20; bit >= 0; bit--) {
		u64 more = root | 1ull << bit;

		if (more * more * more <= cube)
			root = more;
	}
	return root;
}

/* Takes the round-trip time of an ACK, if it has one. Returns whether this ACK completes an interval. */
INLINE bool measure(struct tcp_sock *tp, struct lola *l, u32 rtt)
{
	bool over = after(tp->snd_una, l->end);

	if (rtt != NEVER) {
		l->base = least(l->base, rtt);
		if (rtt - l->base <= EPSILON)
			l->unseen = 0;
	}
	if (l->skips) {
		if (over) {
			l->skips = 0;
			l->end = tp->snd_nxt;
		}
		return 0;
	}
	if (!l->measuring)
		l->measuring = tp->tcp_mstamp;
	if (rtt != NEVER) {
		l->smallest = least(l->smallest, rtt);
		l->samples++;
	}
	if (l->state == SLOW_START) {
		l->skips = l->samples >= FIRST_SAMPLES;
		if (!l->skips) {
			if (!over)
				return 0;
			l->end = tp->snd_nxt;
		}
	} else if (tp->tcp_mstamp - l->measuring < MEASURE || l->samples < SAMPLES) {
		return 0;
	}
	l->last = l->smallest;
	begin_interval(l);
	return l->last != NEVER;
}

/* Adds what is missing to the connection's share of the queue. */
INLINE void balance(struct tcp_sock *tp, struct lola *l, u32 delay)
{
	u64 window = size(tp, l), since = (tp->tcp_mstamp - l->since) / 125, queued = window * delay / l->last, share, missing;

	if (since > LONGEST_SHARE)
		since = LONGEST_SHARE;
	/* The cube of phi, in units of 1/8 ms, is 256 times this divisor. */
	share = (since * since * since << (UNITS - 8)) / (2 * PHI * PHI * (u64)PHI);
	if (share < queued + SEGMENT / 1024)
		return;
	missing = share - queued;
	if (missing > window / 2)
		missing = window / 2;
	resize(tp, l, window + missing);
	skip_round(tp, l);
}

/* Empties the queue: the tailored decrease. */
INLINE void decrease(struct tcp_sock *tp, struct lola *l)
{
	u64 window = size(tp, l), left = (window * l->base / l->last) * GAMMA >> SHIFT;

	l->largest = window;
	if (left < FLOOR * SEGMENT)
		left = FLOOR * SEGMENT;
	resize(tp, l, left < window ? left : window);
	tp->snd_ssthresh = tp->snd_cwnd;
	l->threshold = l->fraction;
	begin_cubic(tp, l);
	l->unseen++;
	if (l->unseen > DECREASES) {
		l->base = NEVER;
		l->unseen = 0;
	}
}

INLINE void judge(struct tcp_sock *tp, struct lola *l)
{
	u32 delay;

	if (l->base == NEVER || l->last == 0)
		return;
	delay = l->last - least(l->base, l->last);
	if (l->state == SLOW_START) {
		if (delay <= EXIT)
			return;
		tp->snd_ssthresh = tp->snd_cwnd;
		l->threshold = size(tp, l) & (SEGMENT - 1);
		hold(tp, l, 0);
		skip_round(tp, l);
	} else if (l->state == HELD) {
		if (tp->tcp_mstamp >= l->since)
			decrease(tp, l);
	} else if (delay > TARGET) {
		hold(tp, l, HOLD);
	} else if (l->state == FAIR_FLOW) {
		balance(tp, l, delay);
	} else if (delay > LOW) {
		l->state = FAIR_FLOW;
		l->since = tp->tcp_mstamp;
	}
}

/* Moves the window towards C (t - K)^3 + the window before the last reduction. */
INLINE void follow_curve(struct tcp_sock *tp, struct lola *l, u32 acked)
{
	u64 window = size(tp, l), time, distance, target;

	if (!l->curve) {
		l->curve = tp->tcp_mstamp ? tp->tcp_mstamp : 1;
		if (l->largest < window)
			l->largest = window;
		l->k = cube_root(((l->largest - window) << 22) / C << SHIFT);
	}
	time = tp->tcp_mstamp - l->curve;
	if (l->base != NEVER)
		time += l->base;
	time = time * 256 / 15625;
	distance = time > l->k ? time - l->k : l->k - time;
	if (distance > LONGEST_CUBE)
		distance = LONGEST_CUBE;
	distance = (distance * distance * distance >> SHIFT) * C >> 22;
	if (time > l->k)
		target = l->largest + distance;
	else
		target = l->largest > distance ? l->largest - distance : 0;
	if (target > window + window / 2)
		target = window + window / 2;
	acked = least(least(acked, tp->snd_cwnd), 1024);
	if (target > window)
		resize(tp, l, window + ((target - window) * acked << 10) / (window >> 10));
}

/* Adds the acknowledged segments to the window, up to the threshold with its fraction. Returns whether the window was below that. */
INLINE bool grow_to_threshold(struct tcp_sock *tp, struct lola *l, u32 acked)
{
	u64 window = size(tp, l), grown = window + ((u64)acked << UNITS);
	u64 threshold = ((u64)least(tp->snd_ssthresh, 2 * LARGEST) << UNITS) + l->threshold;

	if (window >= threshold)
		return 0;
	resize(tp, l, grown < threshold ? grown : threshold);
	return 1;
}

INLINE u32 reduced(u32 window)
{
	return most((u64)window * BETA >> SHIFT, 2);
}

void init(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct lola *l = OWN(tp);

	l->curve = 0;
	l->since = 0;
	l->largest = 0;
	l->fraction = 0;
	l->window = 0;
	l->threshold = 0;
	l->k = 0;
	l->base = NEVER;
	l->last = NEVER;
	/* The first acknowledgement ends a round trip. */
	l->end = tp->snd_una;
	l->unseen = 0;
	l->state = SLOW_START;
	l->skips = 0;
	l->ready = 0;
	begin_interval(l);
}

void pkts_acked(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	const struct ack_sample *sample = (void *)args[1];
	struct lola *l = OWN(tp);
	s32 measured = sample->rtt_us;

	if (is_unanswered(tp))
		tp->snd_ssthresh = reduced(window_before(tp));
	l->ready = measure(tp, l, measured > 0 ? least(measured, LONGEST) : NEVER);
}

void cong_avoid(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 acked = args[2];
	struct lola *l = OWN(tp);

	if (in_slow_start(tp) && l->state != SLOW_START) {
		/* The connection was idle, or a reduction was not needed. */
		l->state = SLOW_START;
		l->curve = 0;
	}
	if (l->ready)
		judge(tp, l);
	l->ready = 0;
	if (!is_limited(tp))
		return;
	if (l->state == SLOW_START) {
		if (!grow_to_threshold(tp, l, acked))
			begin_cubic(tp, l);
	} else if (l->state == CUBIC) {
		follow_curve(tp, l, acked);
	}
}

u32 ssthresh(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct lola *l = OWN(tp);
	u64 window = size(tp, l);

	l->largest = window < l->largest ? window * (1024 + BETA) >> (SHIFT + 1) : window;
	begin_cubic(tp, l);
	/* The kernel leads the window to the threshold, and its fraction is then that of the window. */
	window = window * BETA >> SHIFT;
	if (window < 2 * SEGMENT)
		window = 2 * SEGMENT;
	l->window = window >> UNITS;
	l->fraction = window & (SEGMENT - 1);
	l->threshold = l->fraction;
	return l->window;
}

void set_state(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u8 state = args[1];
	struct lola *l = OWN(tp);

	if (state != LOSS)
		return;
	begin_cubic(tp, l);
	l->state = SLOW_START;
}

u32 undo_cwnd(u64 *args)
{
	return undone((void *)args[0]);
}
