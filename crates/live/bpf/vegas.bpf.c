/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Vegas (Brakmo and Peterson 1995), as `VegasParams::linux` of queuescope-tcp: once each round trip it estimates how many of the
 * connection's own segments wait in queues, and keeps that number between alpha and beta. */
#include "tcp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { ALPHA = 2, BETA = 4, GAMMA = 1 };

#define NEVER 0x7fffffff

struct vegas {
	/* The round trip ends with the first acknowledgement after this sequence number. */
	u32 end;
	/* The smallest round-trip time ever, the smallest of this round trip, and the number of samples in this round trip. */
	u32 base, smallest, samples;
	/* Whether Vegas is active: no loss is being repaired. */
	u32 active;
};

FITS(vegas);

INLINE void begin_round(struct vegas *v)
{
	v->smallest = NEVER;
	v->samples = 0;
}

INLINE void activate(struct tcp_sock *tp, struct vegas *v)
{
	v->active = 1;
	v->end = tp->snd_nxt;
	begin_round(v);
}

INLINE void lower_threshold(struct tcp_sock *tp)
{
	tp->snd_ssthresh = least(tp->snd_ssthresh, tp->snd_cwnd);
}

/* A round trip has ended, with more than two samples. */
INLINE void adjust(struct tcp_sock *tp, struct vegas *v, u32 acked)
{
	u32 base = most(v->base, 1), rtt = most(v->smallest, base), window = tp->snd_cwnd;
	u64 waiting = (u64)window * (rtt - base) / base;

	if (in_slow_start(tp)) {
		if (waiting > GAMMA) {
			/* One more than the window without queues, because the quotient is rounded down. */
			tp->snd_cwnd = least(window, (u32)((u64)window * base / rtt) + 1);
			lower_threshold(tp);
		} else {
			slow_start(tp, acked);
		}
	} else if (waiting > BETA) {
		tp->snd_cwnd = window - 1;
		lower_threshold(tp);
	} else if (waiting < ALPHA) {
		tp->snd_cwnd = window + 1;
	}
	set_window(tp, most(tp->snd_cwnd, 2));
	tp->snd_ssthresh = most(tp->snd_ssthresh, tp->snd_cwnd / 2 + tp->snd_cwnd / 4);
}

void init(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	struct vegas *v = OWN(tp);

	v->base = NEVER;
	activate(tp, v);
}

void pkts_acked(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	const struct ack_sample *sample = (void *)args[1];
	struct vegas *v = OWN(tp);
	s32 measured = sample->rtt_us;
	u32 rtt;

	if (is_unanswered(tp))
		tp->snd_ssthresh = half(window_before(tp));
	if (measured < 0)
		return;
	/* Never zero. */
	rtt = measured + 1;
	v->base = least(v->base, rtt);
	v->smallest = least(v->smallest, rtt);
	v->samples++;
}

void cong_avoid(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 ack = args[1], acked = args[2];
	struct vegas *v = OWN(tp);

	if (!v->active) {
		reno(tp, acked);
	} else if (after(ack, v->end)) {
		v->end = tp->snd_nxt;
		/* With two samples, both may be of delayed ACKs. */
		if (v->samples <= 2)
			reno(tp, acked);
		else
			adjust(tp, v, acked);
		begin_round(v);
	} else if (in_slow_start(tp)) {
		slow_start(tp, acked);
	}
}

void set_state(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u8 state = args[1];
	struct vegas *v = OWN(tp);

	if (state == OPEN)
		activate(tp, v);
	else
		v->active = 0;
}

/* After an idle period, the path may have changed. */
void cwnd_event(u64 *args)
{
	struct tcp_sock *tp = (void *)args[0];
	u32 event = args[1];
	struct vegas *v = OWN(tp);

	if (event == CWND_RESTART || event == TX_START) {
		v->base = NEVER;
		activate(tp, v);
	}
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
