/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What congestion controls see of a connection, and Reno's growth, which all of them fall back on. It is what
 * `Counting::Segments { carries: true }` of queuescope-tcp is. Windows are in segments, times in microseconds.
 *
 * A control is a file. Its functions are called what the members of the kernel's `tcp_congestion_ops` are that they become; they get
 * the arguments of those as words. */
#pragma once
#include "kernel.h"

typedef signed int s32;

struct sock_common {
	u8 skc_state;
} CORE;

struct sock {
	struct sock_common __sk_common;
} CORE;

struct inet_sock {
	struct sock sk;
} CORE;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u8 icsk_ca_state : 5;
	struct {
		u8 pending;
	} icsk_ack;
	/* What is the control's own. */
	u64 icsk_ca_priv[13];
} CORE;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh, prior_cwnd;
	u32 snd_una, snd_nxt, rcv_nxt;
	/* Segments that came, and those of them that were marked. */
	u32 delivered, delivered_ce;
	/* Segments that were sent and not acknowledged; and the most of late. */
	u32 packets_out, max_packets_out;
	u8 is_cwnd_limited : 1;
	u8 ecn_flags;
} CORE;

struct ack_sample {
	u32 pkts_acked;
	/* Below zero, if none was measured. */
	s32 rtt_us;
} CORE;

/* What the connection is doing (tcp_ca_state), what happened to it (tcp_ca_event), and what its socket is (of those in tcp_states.h). */
enum { OPEN = 0, REDUCED = 2, RECOVERY = 3, LOSS = 4 };
enum { TX_START = 0, CWND_RESTART = 1, EVENT_LOSS = 3, ECN_NO_CE = 4, ECN_IS_CE = 5 };
enum { CLOSED = 7, LISTENS = 10 };

/* The control's own state of a connection. */
#define OWN(tp) ((void *)(tp)->inet_conn.icsk_ca_priv)
#define FITS(type) _Static_assert(sizeof(struct type) <= 13 * sizeof(u64), "the kernel has no more room for it")

/* Some bits of a byte. */
#define BITS(from, field)                                                                 \
	({                                                                                \
		const u8 *byte = (void *)(from) + __builtin_preserve_field_info((from)->field, 0); \
		u64 bits;                                                                 \
		asm volatile("" : "+r"(byte));                                            \
		bits = *byte;                                                             \
		bits <<= __builtin_preserve_field_info((from)->field, 4);                 \
		bits >> __builtin_preserve_field_info((from)->field, 5);                  \
	})

INLINE u32 least(u32 a, u32 b)
{
	return a < b ? a : b;
}

INLINE u32 most(u32 a, u32 b)
{
	return a > b ? a : b;
}

/* Of two numbers of a sequence. */
INLINE bool after(u32 a, u32 b)
{
	return (s32)(b - a) < 0;
}

INLINE bool in_slow_start(struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Whether the window is what kept the connection from sending more; in slow start, half of it is enough. */
INLINE bool is_limited(struct tcp_sock *tp)
{
	if (BITS(tp, is_cwnd_limited))
		return 1;
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

INLINE void set_window(struct tcp_sock *tp, u32 segments)
{
	tp->snd_cwnd = least(segments, tp->snd_cwnd_clamp);
}

/* Grows with each segment that was acknowledged, but not past the threshold: what is left of them. */
INLINE u32 slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 before = tp->snd_cwnd, window = least(before + acked, tp->snd_ssthresh);

	set_window(tp, window);
	return acked - (window - before);
}

/* Grows by a segment for as many as are in the window. What a larger window left in the count is worth one. */
INLINE void avoid_congestion(struct tcp_sock *tp, u32 acked)
{
	u32 size = most(tp->snd_cwnd, 1), window = tp->snd_cwnd, count = tp->snd_cwnd_cnt;

	if (count >= size) {
		count = 0;
		window++;
	}
	count += acked;
	if (count >= size) {
		window += count / size;
		count %= size;
	}
	tp->snd_cwnd_cnt = count;
	set_window(tp, window);
}

INLINE void reno(struct tcp_sock *tp, u32 acked)
{
	if (!is_limited(tp))
		return;
	if (in_slow_start(tp))
		acked = slow_start(tp, acked);
	if (acked)
		avoid_congestion(tp, acked);
}

/* Half of a window, but two segments. */
INLINE u32 half(u32 window)
{
	return most(window / 2, 2);
}

/* No connection has more in flight: a gigabyte and a half. */
#define LARGEST (1u << 20)

/* The window before the last reduction. */
INLINE u32 window_before(struct tcp_sock *tp)
{
	u32 window = tp->prior_cwnd;

	return window > LARGEST ? tp->packets_out : window;
}

/* Whether the threshold is not what any control answers. A kernel may leave out runs (that of some virtual machines does, one of
 * thousands), and takes what happens to be there for the answer. Who is told of each ACK puts that right; and if that was left out, too,
 * until the window was the threshold, it is what is in flight. */
INLINE bool is_unanswered(struct tcp_sock *tp)
{
	if (tp->snd_cwnd > LARGEST) {
		tp->snd_cwnd = most(tp->packets_out, 2);
		tp->snd_ssthresh = tp->snd_cwnd;
	}
	return BITS(&tp->inet_conn, icsk_ca_state) >= REDUCED && tp->snd_ssthresh > most(window_before(tp), 2);
}

/* The window before a reduction that was for nothing. */
INLINE u32 undone(struct tcp_sock *tp)
{
	return most(tp->snd_cwnd, tp->prior_cwnd);
}
