/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What DCTCP and Prague share: the receiver echoes each mark (RFC 8257, section 3.2), and a connection without ECN becomes Reno. */
#pragma once
#include "tcp.h"

/* Bits of `ecn_flags`: ECN was negotiated (as in RFC 3168, or AccECN), and the receiver sends echoes. */
enum { RFC3168 = 1, ECHOES = 4, ACCURATE = 16 };
/* Bits of `icsk_ack.pending`: an ACK is delayed, and an ACK must be sent now. */
enum { DELAYED = 2, NOW = 16 };

static long (*set_option)(void *sk, int level, int option, const void *value, int bytes) = (void *)49;
static long (*send_ack)(void *tp, u32 number) = (void *)116;
enum { SOL_TCP = 6, TCP_CONGESTION = 13 };

/* The sequence number after the last data received, and whether that data was marked. */
struct receiver {
	u32 received, was_marked;
};

/* Whether marks will be reported. Without ECN there are none to count, and packets must not be sent as ECN-capable: the connection becomes
 * Reno. */
INLINE bool counts_marks(struct tcp_sock *tp)
{
	u8 state = tp->inet_conn.icsk_inet.sk.__sk_common.skc_state;
	char instead[] = "reno";

	if (tp->ecn_flags & (RFC3168 | ACCURATE) || state == LISTENS || state == CLOSED)
		return 1;
	set_option(tp, SOL_TCP, TCP_CONGESTION, instead, sizeof(instead));
	return 0;
}

INLINE void begin_receiving(struct tcp_sock *tp, struct receiver *r)
{
	r->received = tp->rcv_nxt;
	r->was_marked = 0;
}

INLINE void echo(struct tcp_sock *tp, bool marked)
{
	u8 flags = tp->ecn_flags;

	tp->ecn_flags = marked ? flags | ECHOES : flags & ~ECHOES;
}

/* When marking begins or ends, data before the change is acknowledged at once, with its own echo. */
INLINE void echo_marks(struct tcp_sock *tp, struct receiver *r, u32 event)
{
	bool marked = event == ECN_IS_CE;

	if (event != ECN_IS_CE && event != ECN_NO_CE)
		return;
	if (r->was_marked != marked) {
		if (tp->inet_conn.icsk_ack.pending & DELAYED) {
			echo(tp, r->was_marked);
			send_ack(tp, r->received);
		}
		tp->inet_conn.icsk_ack.pending |= NOW;
	}
	r->received = tp->rcv_nxt;
	r->was_marked = marked;
	echo(tp, marked);
}
