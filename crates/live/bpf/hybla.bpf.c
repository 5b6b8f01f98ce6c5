/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Hybla (Caini and Firrincieli 2004), as `HyblaParams::linux` of queuescope-tcp: Reno whose growth makes up for a long round-trip time.
 * Rho is the smallest smoothed round-trip time in units of 25 ms. */
#include "tcp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Rho is in eighths, and the window grows in parts of a segment. */
enum { EIGHTHS = 8, PARTS = 128 };
/* The reference round-trip time in microseconds. */
enum { REFERENCE = 25000 };
/* The largest exponent of two in slow start, and the largest window. */
enum { LARGEST_EXPONENT = 16, LARGEST_WINDOW = 65535 };

struct hybla {
	/* Rho in eighths. */
	u32 rho;
	/* The smallest smoothed round-trip time, in the kernel's unit. */
	u32 smallest;
	/* Parts of a segment by which the window has not grown yet. */
	u32 parts;
	/* Whether Hybla is active: nothing is being repaired. */
	u32 active;
};

FITS(hybla);

INLINE void set_rho(struct tcp_sock *tp, struct hybla *h)
{
	/* The kernel's unit is an eighth of a microsecond. */
	h->smallest = tp->srtt_us;
	h->rho = most(h->smallest / REFERENCE, EIGHTHS);
}

/* Two to the power of `eighths` eighths, in parts, rounded down. */
INLINE u32 power(u32 eighths)
{
	switch (eighths) {
	case 1: return 139;
	case 2: return 152;
	case 3: return 165;
	case 4: return 181;
	case 5: return 197;
	case 6: return 215;
	case 7: return 234;
	default: return PARTS;
	}
}

INLINE void add(struct tcp_sock *tp, u32 segments)
{
	set_window(tp, least(tp->snd_cwnd + segments, LARGEST_WINDOW));
}

INLINE void grow(struct tcp_sock *tp, struct hybla *h)
{
	bool starts = in_slow_start(tp);
	u32 more, left;

	if (starts) {
		more = (power(h->rho % EIGHTHS) << least(h->rho / EIGHTHS, LARGEST_EXPONENT)) - PARTS;
	} else {
		more = h->rho * h->rho * (PARTS / EIGHTHS / EIGHTHS) / most(tp->snd_cwnd, 1);
		if (more < PARTS)
			tp->snd_cwnd_cnt++;
	}
	left = h->parts + more % PARTS;
	h->parts = left % PARTS;
	add(tp, more / PARTS + left / PARTS);
	if (left >= PARTS)
		tp->snd_cwnd_cnt = 0;
	/* An increase below a part is nothing. Then it grows as Reno, ACK by ACK. */
	if (!more && tp->snd_cwnd_cnt >= tp->snd_cwnd) {
		add(tp, 1);
		tp->snd_cwnd_cnt = 0;
	}
	if (starts)
		tp->snd_cwnd = least(tp->snd_cwnd, tp->snd_ssthresh);
}

void init(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct hybla *h = OWN(tp);

	h->parts = 0;
	h->active = 1;
	set_rho(tp, h);
	set_window(tp, h->rho / EIGHTHS);
}

void pkts_acked(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];

	if (is_unanswered(tp))
		tp->snd_ssthresh = half(window_before(tp));
}

void cong_avoid(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 acked = args[2];
	struct hybla *h = OWN(tp);

	if (tp->srtt_us < h->smallest)
		set_rho(tp, h);
	if (!is_limited(tp))
		return;
	if (h->active) {
		grow(tp, h);
	} else {
		reno(tp, acked);
		add(tp, 0);
	}
}

void set_state(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u8 state = args[1];
	struct hybla *h = OWN(tp);

	h->active = state == OPEN;
}

u32 ssthresh(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];

	return half(tp->snd_cwnd);
}

u32 undo_cwnd(u64 *args)
{
	return undone((void *)args[0]);
}
