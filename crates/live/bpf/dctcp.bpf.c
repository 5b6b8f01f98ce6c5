/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* DCTCP (RFC 8257), as `DctcpParams::linux` of queuescope-tcp. The sender reduces the window by the fraction of data that was marked;
 * the receiver echoes each mark. */
#include "ecn.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The average marked fraction (alpha) is in units of 1/1024. Each window of data has the weight g, a sixteenth: GAIN is its power of two. */
enum { UNITS = 10, ALL = 1 << UNITS, GAIN = 4 };

struct dctcp {
	/* The counters at the start of this window of data, and the sequence number at which it ends. */
	u32 delivered, marked, end;
	u32 alpha;
	struct receiver receiver;
	/* The congestion window before the last reduction. */
	u32 window;
};

FITS(dctcp);

INLINE void begin_window(struct tcp_sock *tp, struct dctcp *d)
{
	d->end = tp->snd_nxt;
	d->delivered = tp->delivered;
	d->marked = tp->delivered_ce;
}

/* A loss halves the window (section 3.5). */
INLINE void halve(struct tcp_sock *tp, struct dctcp *d)
{
	d->window = tp->snd_cwnd;
	tp->snd_ssthresh = half(tp->snd_cwnd);
}

INLINE u32 reduced(struct dctcp *d, u32 window)
{
	d->window = window;
	return most(window - (u32)((u64)window * d->alpha >> (UNITS + 1)), 2);
}

void init(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct dctcp *d = OWN(tp);

	if (!counts_marks(tp))
		return;
	begin_receiving(tp, &d->receiver);
	d->alpha = ALL;
	d->window = 0;
	begin_window(tp, d);
}

/* Section 3.3, once a window of data. */
void in_ack_event(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct dctcp *d = OWN(tp);
	u32 alpha = d->alpha, delivered = tp->delivered - d->delivered, marked = tp->delivered_ce - d->marked;

	if (is_unanswered(tp))
		tp->snd_ssthresh = reduced(d, window_before(tp));
	if (after(d->end, tp->snd_una))
		return;
	/* Below sixteen units, one step takes it to zero. */
	alpha -= alpha >> GAIN ? alpha >> GAIN : alpha;
	alpha += ((u64)marked << (UNITS - GAIN)) / most(delivered, 1);
	d->alpha = least(alpha, ALL);
	begin_window(tp, d);
}

u32 ssthresh(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];

	return reduced(OWN(tp), tp->snd_cwnd);
}

void cong_avoid(u64 *args)
{
	reno((void *)args[0], args[2]);
}

void set_state(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u8 state = args[1];

	if (state == RECOVERY && BITS(&tp->inet_conn, icsk_ca_state) != RECOVERY)
		halve(tp, OWN(tp));
}

void cwnd_event(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 event = args[1];
	struct dctcp *d = OWN(tp);

	if (event == EVENT_LOSS)
		halve(tp, d);
	else
		echo_marks(tp, &d->receiver, event);
}

u32 undo_cwnd(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct dctcp *d = OWN(tp);

	return most(tp->snd_cwnd, d->window);
}
