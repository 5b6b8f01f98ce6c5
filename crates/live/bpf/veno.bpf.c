/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Veno (Fu and Liew 2003), as `VenoParams::linux` of queuescope-tcp: Reno that takes a loss for random while few of its own segments wait
 * in queues, and then gives up a fifth of the window only. Where more wait, it grows half as fast. */
#include "tcp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Waiting segments are counted in halves. From three segments on, the path is congested: beta. */
enum { PARTS = 2, BETA = 3 * PARTS };

/* With this number of samples it is Reno. */
enum { FEW = 2 };

#define NEVER 0x7fffffff

struct veno {
	/* The smallest round-trip time ever, the smallest since the last ACK that could grow the window, and the number of samples. */
	u32 base, smallest, samples;
	/* The halves of segments that wait. */
	u32 waiting;
	/* Whether the next window of acknowledged segments counts on a congested path. */
	u32 grows_next;
	/* Whether Veno is active: no loss is being repaired. */
	u32 active;
};

FITS(veno);

INLINE void activate(struct veno *v)
{
	v->active = 1;
	v->smallest = NEVER;
}

/* Without a sample, nearly the whole window waits. */
INLINE void estimate(struct tcp_sock *tp, struct veno *v)
{
	u32 rtt = most(v->smallest, 1), base = least(v->base, rtt), window = PARTS * tp->snd_cwnd;

	v->waiting = window - (u32)((u64)window * base / rtt);
}

INLINE u32 reduced(struct veno *v, u32 window)
{
	return v->waiting < BETA ? most((u32)((u64)window * 4 / 5), 2) : half(window);
}

INLINE void grow(struct tcp_sock *tp, struct veno *v, u32 acked)
{
	if (in_slow_start(tp)) {
		acked = slow_start(tp, acked);
		if (!acked)
			return;
	}
	if (v->waiting < BETA) {
		avoid_congestion(tp, acked);
	} else if (tp->snd_cwnd_cnt < tp->snd_cwnd) {
		tp->snd_cwnd_cnt += acked;
	} else {
		/* As in Linux, this ACK is not counted. */
		tp->snd_cwnd_cnt = 0;
		if (v->grows_next)
			set_window(tp, tp->snd_cwnd + 1);
		v->grows_next = !v->grows_next;
	}
}

void init(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct veno *v = OWN(tp);

	v->base = NEVER;
	v->samples = 0;
	v->waiting = 0;
	v->grows_next = 1;
	activate(v);
}

void pkts_acked(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	const struct ack_sample *sample = (void *)args[1];
	struct veno *v = OWN(tp);
	s32 measured = sample->rtt_us;
	u32 rtt;

	if (is_unanswered(tp))
		tp->snd_ssthresh = reduced(v, window_before(tp));
	if (measured < 0)
		return;
	/* Never zero. */
	rtt = measured + 1;
	v->base = least(v->base, rtt);
	v->smallest = least(v->smallest, rtt);
	/* More than a few make no difference, and the count must not wrap. */
	v->samples = least(v->samples + 1, FEW + 1);
}

void cong_avoid(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 acked = args[2];
	struct veno *v = OWN(tp);

	if (!v->active) {
		reno(tp, acked);
		return;
	}
	if (!is_limited(tp))
		return;
	if (v->samples <= FEW) {
		reno(tp, acked);
	} else {
		estimate(tp, v);
		grow(tp, v, acked);
	}
	v->smallest = NEVER;
}

void set_state(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u8 state = args[1];
	struct veno *v = OWN(tp);

	if (state == OPEN)
		activate(v);
	else
		v->active = 0;
}

/* After an idle period, the path may have changed. */
void cwnd_event(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 event = args[1];
	struct veno *v = OWN(tp);

	if (event == CWND_RESTART || event == TX_START) {
		v->base = NEVER;
		v->grows_next = 1;
		activate(v);
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
