/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The fields of a connection that congestion controls read, and Reno's growth, which all of them fall back on. It follows
 * `Counting::Segments { carries: true }` of queuescope-tcp. Windows are in segments, times in microseconds.
 *
 * Each control is a file. Its functions have the names of the members of the kernel's `tcp_congestion_ops` that they implement; they
 * receive the arguments of these members as an array of words. */
#pragma once
#include "kernel.h"

typedef signed int s32;

struct sock_common {
	u8 skc_state;
} CORE;

struct sock {
	struct sock_common __sk_common;
	/* Whether segments are paced, by the kernel or by the qdisc `fq`; the rate and its limit, in bytes per second. */
	u32 sk_pacing_status;
	u64 sk_pacing_rate, sk_max_pacing_rate;
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
	/* The private state of the control. */
	u64 icsk_ca_priv[13];
} CORE;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh, prior_cwnd;
	u32 snd_una, snd_nxt, rcv_nxt;
	/* Segments that were delivered, and those of them that were marked. */
	u32 delivered, delivered_ce;
	/* Segments in flight (sent and not acknowledged), and the recent maximum. */
	u32 packets_out, max_packets_out;
	u8 is_cwnd_limited : 1;
	u8 ecn_flags;
	/* The smoothed round-trip time in units of 1/8 microsecond, and the size of a segment in bytes. */
	u32 srtt_us, mss_cache;
	/* The time of the last ACK, in microseconds. */
	u64 tcp_mstamp;
	/* Segments that were found lost; those acknowledged selectively, lost and sent again that are not acknowledged yet. */
	u32 lost, sacked_out, lost_out, retrans_out;
	/* What has been delivered when samples are no longer limited by what the application had to send; 0 if they are not. */
	u32 app_limited;
} CORE;

struct ack_sample {
	u32 pkts_acked;
	/* Below zero if there is no measurement. */
	s32 rtt_us;
} CORE;

/* The congestion state of a connection (tcp_ca_state), events (tcp_ca_event), and states of its socket (tcp_states.h). */
enum { OPEN = 0, REDUCED = 2, RECOVERY = 3, LOSS = 4 };
enum { TX_START = 0, CWND_RESTART = 1, COMPLETE_CWR = 2, EVENT_LOSS = 3, ECN_NO_CE = 4, ECN_IS_CE = 5 };
enum { CLOSED = 7, LISTENS = 10 };

/* The rate at which segments were delivered between the sending of a segment and the ACK for it. */
struct rate_sample {
	/* The segments that had been delivered when it was sent. */
	u32 prior_delivered;
	/* The segments delivered since, and the microseconds; not above zero if there is no sample. */
	s32 delivered;
	s64 interval_us;
	/* Below zero if there is no measurement. */
	s64 rtt_us;
	/* Segments that this ACK found lost, or delivered. */
	s32 losses;
	u32 acked_sacked;
	bool is_app_limited;
} CORE;

/* Values of `sk_pacing_status`. */
enum { UNPACED = 0, PACED = 1 };

/* The control's private state of a connection. */
#define OWN(tp) ((void *)(tp)->inet_conn.icsk_ca_priv)
#define FITS(type) _Static_assert(sizeof(struct type) <= 13 * sizeof(u64), "the kernel has no more room for it")

/* The bits of a bit field. */
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

/* Whether one sequence number is after another. */
INLINE bool after(u32 a, u32 b)
{
	return (s32)(b - a) < 0;
}

INLINE bool in_slow_start(struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Segments in flight, without those that were delivered or found lost. */
INLINE u32 in_flight_now(struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* Whether the congestion window limits the connection; in slow start, using half of the window is enough. */
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

/* Adds the acknowledged segments to the window, up to the threshold; returns those that remain. */
INLINE u32 slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 before = tp->snd_cwnd, window = least(before + acked, tp->snd_ssthresh);

	set_window(tp, window);
	return acked - (window - before);
}

/* Grows by one segment for each `size` acknowledged segments. A count that is larger from before is worth one segment. */
INLINE void avoid_congestion_by(struct tcp_sock *tp, u32 acked, u32 size)
{
	u32 window = tp->snd_cwnd, count = tp->snd_cwnd_cnt;

	size = most(size, 1);
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

/* Grows by one segment for each window of acknowledged segments. */
INLINE void avoid_congestion(struct tcp_sock *tp, u32 acked)
{
	avoid_congestion_by(tp, acked, tp->snd_cwnd);
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

/* Half of a window, at least two segments. */
INLINE u32 half(u32 window)
{
	return most(window / 2, 2);
}

/* No connection has more segments in flight: 1.5 GB. */
#define LARGEST (1u << 20)

/* The window before the last reduction. */
INLINE u32 window_before(struct tcp_sock *tp)
{
	u32 window = tp->prior_cwnd;

	return window > LARGEST ? tp->packets_out : window;
}

/* Whether the threshold, while a reduction is under way, cannot be the control's answer, which is two segments at least and `largest` at most. A
 * kernel may skip a run of a program (that of some virtual machines skips one in thousands), and then uses whatever value happens to be there,
 * often zero. The function that runs for each ACK corrects that. If it was skipped, too, until the kernel used the threshold as the window, the
 * window becomes what is in flight: a window of zero would end the connection's progress. */
INLINE bool is_no_answer(struct tcp_sock *tp, u32 largest)
{
	u32 window = tp->snd_cwnd;

	if (window > LARGEST || !window) {
		tp->snd_cwnd = most(tp->packets_out, 2);
		/* The window comes from the threshold, unless a reduction was undone. */
		if (tp->snd_ssthresh == window || tp->snd_ssthresh < 2)
			tp->snd_ssthresh = tp->snd_cwnd;
	}
	return BITS(&tp->inet_conn, icsk_ca_state) >= REDUCED && (tp->snd_ssthresh > largest || tp->snd_ssthresh < 2);
}

/* The same for a control whose threshold is never above the window before the reduction. */
INLINE bool is_unanswered(struct tcp_sock *tp)
{
	return is_no_answer(tp, most(window_before(tp), 2));
}

/* The time in milliseconds, which wraps. */
INLINE u32 milliseconds(void)
{
	return ktime() / 1000000;
}

/* The window before a reduction that was not needed. */
INLINE u32 undone(struct tcp_sock *tp)
{
	return most(tp->snd_cwnd, tp->prior_cwnd);
}
