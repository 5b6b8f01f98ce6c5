/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* BIC (Xu, Harfoush and Rhee 2004), as `BicParams::linux` of queuescope-tcp: a search between the window that a loss left and the one before
 * it, the maximum. It adds a segment when the acknowledged segments reach an interval. */
#include "tcp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Up to LOW segments it is Reno. A loss leaves BETA of the window, and a loss below the maximum lowers that to the middle of both windows;
 * in units of 1/1024. */
enum { LOW = 14, SHIFT = 10, BETA = 819 };
/* Each round trip adds a quarter of the distance to the maximum, at most LARGEST_STEP segments. Next to the maximum, it takes SMOOTH quarters
 * of a round trip to add one. */
enum { QUARTERS = 4, LARGEST_STEP = 16, SMOOTH = 20 };
/* The longest interval before the first loss. */
enum { LONGEST_FIRST = 20 };
/* The average number of segments that an ACK acknowledges is in units of 1/16. */
enum { RATIO_SHIFT = 4, TWO = 2 << RATIO_SHIFT };
/* How long the interval remains while the window does, in milliseconds. */
enum { REFRESH = 31 };

struct bic {
	/* The window before the last loss; zero if there was none. */
	u32 maximum;
	/* The interval, the window that it is for, and the time when it was computed. */
	u32 interval, window, at;
	u32 ratio;
};

FITS(bic);

INLINE void forget(struct bic *b)
{
	*b = (struct bic){.ratio = TWO};
}

INLINE u32 interval(struct bic *b, u32 window)
{
	u32 maximum = b->maximum, linear = window / LARGEST_STEP, smooth = window * SMOOTH / QUARTERS, step, more;

	if (window < maximum) {
		step = (maximum - window) / QUARTERS;
		if (step > LARGEST_STEP)
			return linear;
		return step <= 1 ? smooth : window / step;
	}
	more = window - maximum;
	if (more < QUARTERS)
		return smooth;
	if (more < LARGEST_STEP * (QUARTERS - 1))
		return window * (QUARTERS - 1) / more;
	return linear;
}

INLINE void follow_window(struct bic *b, u32 window)
{
	u32 now = milliseconds(), each;

	if (b->window == window && now - b->at <= REFRESH)
		return;
	b->window = window;
	b->at = now;
	if (window <= LOW) {
		b->interval = window;
		return;
	}
	each = interval(b, window);
	if (!b->maximum)
		each = least(each, LONGEST_FIRST);
	b->interval = most((each << RATIO_SHIFT) / most(b->ratio, 1), 1);
}

INLINE u32 reduced(u32 window)
{
	if (window <= LOW)
		return half(window);
	return most((u64)window * BETA >> SHIFT, 2);
}

void init(u64 *args)
{
	forget(OWN((struct tcp_sock *)args[0]));
}

void pkts_acked(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	const struct ack_sample *sample = (void *)args[1];
	u32 acked = sample->pkts_acked;
	struct bic *b = OWN(tp);

	if (is_unanswered(tp))
		tp->snd_ssthresh = reduced(window_before(tp));
	if (BITS(&tp->inet_conn, icsk_ca_state) == OPEN)
		b->ratio += acked - (b->ratio >> RATIO_SHIFT);
}

void cong_avoid(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 acked = args[2];
	struct bic *b = OWN(tp);

	if (!is_limited(tp))
		return;
	if (in_slow_start(tp))
		acked = slow_start(tp, acked);
	if (!acked)
		return;
	follow_window(b, tp->snd_cwnd);
	avoid_congestion_by(tp, acked, b->interval);
}

u32 ssthresh(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct bic *b = OWN(tp);
	u32 window = tp->snd_cwnd;

	b->maximum = window < b->maximum ? (u64)window * (BETA + (1 << SHIFT)) >> (SHIFT + 1) : window;
	return reduced(window);
}

void set_state(u64 *args)
{
	u8 state = args[1];

	if (state == LOSS)
		forget(OWN((struct tcp_sock *)args[0]));
}

u32 undo_cwnd(u64 *args)
{
	return undone((void *)args[0]);
}
