/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* YeAH (Baiocchi, Castellani and Vacirca 2007), as `YeahParams::linux` of queuescope-tcp: Scalable TCP while the queue that it causes is
 * short, Reno otherwise. It removes a long queue before it overflows, but leaves the window of a Reno flow that competes. */
#include "tcp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The queue is short up to this number of segments (Qmax), and up to a delay of this part of the smallest round-trip time (phi). */
enum { LONGEST_QUEUE = 80, LEVEL = 8 };
/* The part of the window that is removed with a queue is at most a half; a loss takes at least an eighth. */
enum { REMOVED = 2, LOST = 8 };
/* The number of successive round trips with a long queue after which a loss takes half (rho). After more round trips than the other number
 * with a short queue, the competing flow is forgotten (zeta). */
enum { COMPETING_ROUNDS = 16, FORGETTING_ROUNDS = 50 };
/* With a short queue, this many acknowledged segments add one. */
enum { STEP = 100 };

#define NEVER 0x7fffffff
#define MANY_ROUNDS 0xffffff

struct yeah {
	/* The round trip ends with the first acknowledgement after this sequence number. */
	u32 end;
	/* The smallest round-trip time ever, the smallest of this round trip, and the number of samples in this round trip. */
	u32 base, smallest, samples;
	/* The last estimate of the queue in segments. */
	u32 queue;
	/* Successive round trips with a long queue, and those with a short one since the last loss. */
	u32 slow_rounds, fast_rounds;
	/* The window of a competing Reno flow. */
	u32 competitor;
};

FITS(yeah);

INLINE void begin_samples(struct yeah *y)
{
	y->smallest = NEVER;
	y->samples = 0;
}

INLINE void begin_round(struct tcp_sock *tp, struct yeah *y)
{
	y->end = tp->snd_nxt;
	begin_samples(y);
}

/* Grows by a segment for each `most_segments` acknowledged ones if the window is larger, and otherwise as Reno. */
INLINE void step(struct tcp_sock *tp, u32 most_segments, u32 acked)
{
	u32 size = most(least(tp->snd_cwnd, most_segments), 1), window = tp->snd_cwnd, count = tp->snd_cwnd_cnt;

	if (count >= size) {
		count = 0;
		window++;
	}
	count += acked;
	window += count / size;
	tp->snd_cwnd_cnt = count % size;
	set_window(tp, window);
}

INLINE void remove_queue(struct tcp_sock *tp, struct yeah *y)
{
	u32 window = tp->snd_cwnd, left = window - least(y->queue, window / REMOVED);

	tp->snd_cwnd = most(left, y->competitor);
	tp->snd_ssthresh = tp->snd_cwnd;
}

/* A round trip has ended, with more than two samples. */
INLINE void judge(struct tcp_sock *tp, struct yeah *y)
{
	u32 rtt = most(y->smallest, 1), base = least(y->base, rtt), delay = rtt - base;

	y->queue = (u64)tp->snd_cwnd * delay / rtt;
	if (y->queue <= LONGEST_QUEUE && delay <= base / LEVEL) {
		y->slow_rounds = 0;
		y->fast_rounds++;
		if (y->fast_rounds > FORGETTING_ROUNDS) {
			y->fast_rounds = 0;
			y->competitor = 2;
		}
		return;
	}
	y->slow_rounds = least(y->slow_rounds + 1, MANY_ROUNDS);
	if (y->queue > LONGEST_QUEUE && tp->snd_cwnd > y->competitor)
		remove_queue(tp, y);
	if (y->competitor > 2)
		y->competitor++;
	else
		y->competitor = half(tp->snd_cwnd);
}

INLINE u32 reduced(struct yeah *y, u32 window)
{
	u32 taken = half(window);

	if (y->slow_rounds < COMPETING_ROUNDS)
		taken = least(taken, most(y->queue, window / LOST));
	y->fast_rounds = 0;
	y->competitor = half(y->competitor);
	return window > taken + 2 ? window - taken : 2;
}

void init(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct yeah *y = OWN(tp);

	y->base = NEVER;
	y->queue = 0;
	y->slow_rounds = 0;
	y->fast_rounds = 0;
	y->competitor = 2;
	begin_round(tp, y);
}

void pkts_acked(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	const struct ack_sample *sample = (void *)args[1];
	struct yeah *y = OWN(tp);
	s32 measured = sample->rtt_us;
	u32 rtt;

	if (is_unanswered(tp))
		tp->snd_ssthresh = reduced(y, window_before(tp));
	if (measured < 0)
		return;
	/* Never zero. */
	rtt = measured + 1;
	y->base = least(y->base, rtt);
	y->smallest = least(y->smallest, rtt);
	y->samples++;
}

void cong_avoid(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 ack = args[1], acked = args[2];
	struct yeah *y = OWN(tp);

	if (!is_limited(tp))
		return;
	if (in_slow_start(tp))
		acked = slow_start(tp, acked);
	if (acked)
		step(tp, y->slow_rounds ? LARGEST : STEP, acked);
	if (after(ack, y->end)) {
		y->end = tp->snd_nxt;
		/* With two samples, both may be of delayed ACKs. */
		if (y->samples > 2)
			judge(tp, y);
		begin_samples(y);
	}
}

void set_state(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u8 state = args[1];

	if (state == OPEN)
		begin_round(tp, OWN(tp));
}

/* After an idle period, the path may have changed. */
void cwnd_event(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 event = args[1];
	struct yeah *y = OWN(tp);

	if (event == CWND_RESTART || event == TX_START) {
		y->base = NEVER;
		begin_round(tp, y);
	}
}

u32 ssthresh(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];

	return reduced(OWN(tp), tp->snd_cwnd);
}

u32 undo_cwnd(u64 *args)
{
	return undone((void *)args[0]);
}
