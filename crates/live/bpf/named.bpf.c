/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Acts on named flows before the queue of an interface: marks their packets, drops them, or limits them to a rate.
 *
 * An order names a flow, or all flows between addresses, and the time when it ends. It ends in the kernel: also if the process that gave it
 * hangs. All orders end with the lease, which that process renews. */
#include "listed.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Orders, at most. */
#define ORDERS 64

enum { NOTHING, MARK, DROP, LIMIT };

/* An order. User space fills a place while its `until` is 0, and writes `until` last. */
struct order {
	/* When it ends. */
	u64 until;
	/* A packet belongs to the flow if the bits of `struct known` under the mask have these values. */
	u64 value[6], mask[6];
	/* For LIMIT: 65536ths of a nanosecond for each byte, and the nanoseconds that the flow may be ahead of its rate. */
	u64 cost, burst;
	u32 action;
	/* Whether to count only, and change nothing. */
	u32 dry;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, ORDERS);
	TYPE(key, u32);
	TYPE(value, struct order);
} orders SEC(".maps");

/* When LIMIT lets the next byte of an order's flow pass. */
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, ORDERS);
	TYPE(key, u32);
	TYPE(value, u64);
} due SEC(".maps");

/* What became of the packets of an order's flow; a super-packet counts as one. Each packet in `met` has one of the outcomes after it. */
struct outcome {
	u64 met;
	/* Within the limit. */
	u64 spared;
	/* In a dry run, what would have been marked or dropped. */
	u64 marked, marked_before, unmarkable, dropped;
	/* Packets that the lists of this host except; they are not in `met`. */
	u64 exempt;
};

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, ORDERS);
	TYPE(key, u32);
	TYPE(value, struct outcome);
} outcomes SEC(".maps");

struct here {
	/* No order is followed from this time on. */
	u64 lease;
	/* Orders from this place on are not used. */
	u32 used;
	/* Whether packets begin with an Ethernet header. */
	u32 framed;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct here);
} here SEC(".maps");

/* Flows that are never acted on, and flows that may be acted on. */
enum { NEVER, ONLY, LISTS };

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, LISTS);
	TYPE(key, u32);
	TYPE(value, struct never);
} lists SEC(".maps");

/* The packet that is being handled. */
struct scratch {
	/* With some bytes more, so that numbers can be read at any offset. */
	u8 headers[HEADERS + 16];
	/* The offset of the IP header. */
	u64 ip;
	struct known known;
};

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct scratch);
} scratch SEC(".maps");

/* Copies the headers of a packet to `scratch`, and finds its flow; returns whether it is IP. */
GLOBAL int examine(struct __sk_buff *skb, u32 framed)
{
	u32 zero = 0, head = skb->len;
	struct scratch *place = map_lookup(&scratch, &zero);
	struct words words;

	if (!place)
		return 0;
	if (head >= HEADERS) {
		if (skb_load_bytes(skb, 0, place->headers, HEADERS))
			return 0;
	} else {
		__builtin_memset(place->headers, 0, sizeof(place->headers));
		if (head == 0 || skb_load_bytes(skb, 0, place->headers, head))
			return 0;
	}
	if (!flow_of(place->headers, framed, &words))
		return 0;
	place->ip = words.ip;
	know(&words, &place->known);
	return 1;
}

/* Whether the flow of the packet in `scratch` is in a list. */
GLOBAL int is_in(u32 which)
{
	u32 zero = 0;
	struct scratch *place = map_lookup(&scratch, &zero);
	struct never *list = map_lookup(&lists, &which);

	return place && list && is_listed(list, &place->known);
}

/* Whether the packet in `scratch` belongs to the flow of an order that has not ended. */
GLOBAL int is_ordered(u32 slot, u64 now)
{
	u32 zero = 0;
	struct scratch *place = map_lookup(&scratch, &zero);
	struct order *order = map_lookup(&orders, &slot);
	u64 differs = 0;

	if (!place || !order || now >= order->until)
		return 0;
	for (u32 word = 0; word < 6; word++)
		differs |= (place->known.of[word] & order->mask[word]) ^ order->value[word];
	return !differs;
}

/* Whether these bytes stay within the limit of an order. Two processors that run this at the same time may let one packet too many pass. */
INLINE bool passes(const struct order *order, u32 slot, u32 bytes, u64 now)
{
	u64 *due_at = map_lookup(&due, &slot), from;

	if (!due_at)
		return 1;
	from = *due_at > now ? *due_at : now;
	if (from - now > order->burst)
		return 0;
	*due_at = from + (bytes * order->cost >> 16);
	return 1;
}

/* Follows an order about the packet in `scratch`; returns SHOT if it drops it. */
GLOBAL int follow(struct __sk_buff *skb, u32 slot, u64 now)
{
	u32 zero = 0, ecn = NOT_ECT, at;
	struct scratch *place = map_lookup(&scratch, &zero);
	const struct order *order = map_lookup(&orders, &slot);
	struct outcome *count = map_lookup(&outcomes, &slot);
	u8 *headers;

	if (!place || !order || !count)
		return NEXT;
	count->met++;
	if (order->action == DROP || order->action == LIMIT) {
		if (order->action == LIMIT && passes(order, slot, skb->wire_len, now)) {
			count->spared++;
			return NEXT;
		}
		count->dropped++;
		return order->dry ? NEXT : SHOT;
	}
	headers = place->headers;
	at = place->ip;
	if (at + (*AT(at) >> 4 == 4 ? 20 : 40) <= skb->len)
		ecn = ecn_of(headers, at);
	if (ecn == NOT_ECT) {
		count->unmarkable++;
	} else if (ecn == CE) {
		count->marked_before++;
	} else if (order->dry) {
		count->marked++;
	} else if (mark(skb, headers, at)) {
		/* Another order sees the mark: the checksum must not be changed twice. */
		*AT(at + 1) |= *AT(at) >> 4 == 4 ? CE : CE << 4;
		count->marked++;
	} else {
		count->unmarkable++;
	}
	return NEXT;
}

/* Whether the lists of this host allow acting on the packet in `scratch`. */
INLINE bool is_allowed(void)
{
	return is_in(ONLY) && !is_in(NEVER);
}

SEC("classifier")
int named(struct __sk_buff *skb)
{
	enum { UNKNOWN, YES, NO } allowed = UNKNOWN;
	u32 zero = 0;
	const struct here *asked = map_lookup(&here, &zero);
	u64 now = ktime();

	if (!asked || now >= asked->lease || !examine(skb, asked->framed))
		return NEXT;
	for (u32 slot = 0; slot < ORDERS; slot++) {
		if (slot >= asked->used)
			break;
		if (!is_ordered(slot, now))
			continue;
		if (allowed == UNKNOWN)
			allowed = is_allowed() ? YES : NO;
		if (allowed == NO) {
			struct outcome *count = map_lookup(&outcomes, &slot);

			if (count)
				count->exempt++;
		} else if (follow(skb, slot, now) == SHOT) {
			return SHOT;
		}
	}
	return NEXT;
}
