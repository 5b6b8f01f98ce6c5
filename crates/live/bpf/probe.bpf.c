/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The probe: stamps packets before a qdisc, and measures them as they leave it. */
#include "act.h"
#include "report.h"
#include "stamp.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Packets of one bulk dequeue that are examined. */
#define BULK 16
/* Packets that come get a note for this time after one left that had waited for a quarter of tau, at most SHORT_WAIT, or left this many packets
 * behind; nanoseconds. */
#define NOTING (1 << 21)
#define SHORT_WAIT (1 << 18)
#define BEHIND 32
/* Notes are also kept apart for this time after one was found overwritten. */
#define KEEPING (1ull << 32)
/* The packet that is being handled. */
struct scratch {
	/* With some bytes more, so that numbers can be read at any offset. */
	u8 headers[HEADERS + 16];
	u64 digest;
	/* The offset of the IP header, if there is one. */
	u64 ip;
	/* Its addresses and ports, for the list of flows that are never acted on. */
	struct known known;
};

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct scratch);
} scratch SEC(".maps");

/* Finds the flow of the packet whose headers are in `scratch`; returns whether it is IP. */
GLOBAL int identify(u32 framed)
{
	u32 zero = 0;
	struct scratch *place = map_lookup(&scratch, &zero);
	struct words words;
	bool is_ip;

	if (!place)
		return 0;
	is_ip = flow_of(place->headers, framed, &words);
	place->digest = digest(&words);
	place->ip = words.ip;
	know(&words, &place->known);
	return is_ip;
}

/* Whether the flow of the packet that was identified last is never acted on. */
GLOBAL int is_exempt(void)
{
	u32 zero = 0;
	struct scratch *place = map_lookup(&scratch, &zero);

	return place && is_never(&place->known);
}

/* Copies the headers of a packet before the queue to `scratch`, and finds its flow; returns 1 if it is IP, 0 if not, and -1 if they cannot be
 * read. */
GLOBAL int examine(struct __sk_buff *skb, u32 framed)
{
	u32 zero = 0, head = skb->len;
	struct scratch *place = map_lookup(&scratch, &zero);

	if (!place)
		return -1;
	if (head >= HEADERS) {
		if (skb_load_bytes(skb, 0, place->headers, HEADERS))
			return -1;
	} else {
		__builtin_memset(place->headers, 0, sizeof(place->headers));
		if (head == 0 || skb_load_bytes(skb, 0, place->headers, head))
			return -1;
	}
	return identify(framed);
}

/* The digest of the flow of a packet before the queue; 0 if its headers cannot be read. Writes NOT_IP or 0 to `kind`. */
GLOBAL u64 digest_of(struct __sk_buff *skb, u32 framed, u32 *kind)
{
	int is_ip;

	const u8 *at = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	u32 zero = 0;
	struct scratch *place;
	struct words words;

	if (at + 14 > end || !kind)
		return 0;
	*kind = 0;
	if (!framed || (at[12] == 0x08 && at[13] == 0x00) || (at[12] == 0x86 && at[13] == 0xdd)) {
		if (plain_flow_of(at + (framed ? 14 : 0), end, &words))
			return digest(&words);
	}
	place = map_lookup(&scratch, &zero);
	is_ip = examine(skb, framed);
	if (!place || is_ip < 0)
		return 0;
	*kind = is_ip ? 0 : NOT_IP;
	return place->digest;
}

/* Makes the note of a packet; returns whether that succeeded. */
INLINE bool take_note(const struct shared *here, u64 digest, u32 kind, u64 now, struct note *note)
{
	struct line *line = line_of(digest);
	u32 way, used = time_of_use(now), number;
	struct flow *flow;

	if (!line)
		return 0;
	way = way_of(line, digest);
	if (way == WAYS)
		way = claim(line, digest, used | kind);
	flow = &line->of[way % WAYS];
	number = flow->used % QUEUES;
	if (flow->used >> USED_AT != used >> USED_AT)
		flow->used = used | (flow->used & TOLD) | kind | number;
	note->flow = (digest & (LINES - 1)) << 2 | way % WAYS | number << QUEUE_AT | (u32)(digest >> 51) << DIGEST_AT;
	note->of_flow = flow->left;
	note->of_all = here->queues[number].left;
	return 1;
}

/* The bits of ECN of a packet before the queue. */
INLINE u32 ecn_before(struct __sk_buff *skb, bool framed)
{
	const u8 *at = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	u32 protocol = skb->protocol;
	u8 header[2];

	if (framed && at + 16 <= end && (u32)(at[12] | at[13] << 8) == protocol)
		return ecn_bits(protocol, at + 14);
	if (skb_load_bytes_relative(skb, 0, header, 2, FROM_IP))
		return NOT_ECT;
	return ecn_bits(protocol, header);
}

/* Before the qdisc: stamps and counts every packet. `digest` is that of its flow, or 0 if it is not known yet. */
INLINE int stamp_with(struct __sk_buff *skb, struct config *asked, u64 now, u64 digest, u32 kind)
{
	u32 zero = 0, segments = skb->gso_segs, ecn = ecn_before(skb, asked->framed);
	struct counters *count = map_lookup(&counters, &zero);
	struct shared *here = map_lookup(&shared, &zero);
	u64 ticks = (now >> TICK) % TICKS;
	u32 time = ticks, last = (u32)(ticks >> 32) << 30 | check_of(ticks, skb->ifindex) << CHECKED;
	bool is_noted = 0, is_stamped = is_stamped_just_now(skb->cb[3], skb->cb[4], skb->ifindex, now);
	struct note note = { 0, 0, 0 };
	struct apart *apart;

	if (here && (now < here->noting || asked->all)) {
		if (!digest)
			digest = digest_of(skb, asked->framed, &kind);
		is_noted = digest && take_note(here, digest, kind, now, &note);
	}
	if (is_stamped) {
		/* The other probe needs its stamp, and its time is also ours. */
		time = skb->cb[3];
		if (here && now + KEEPING / 2 > here->keeping)
			here->keeping = now + KEEPING;
	} else {
		if (ecn != NOT_ECT && ecn != CE)
			last |= MARKABLE;
		if (segments > 1)
			last |= SUPER;
		if (is_noted) {
			skb->cb[0] = note.flow;
			skb->cb[1] = note.of_flow;
			skb->cb[2] = note.of_all;
			last |= check_of_note(&note, asked);
		}
		skb->cb[3] = time;
		skb->cb[4] = last;
	}
	if (is_noted && here && now < here->keeping) {
		apart = apart_of(time);
		if (apart) {
			apart->time = time;
			apart->note = note;
		}
	}
	if (count) {
		count->stamped++;
		count->stamped_bytes += skb->len;
		count->came += segments ? segments : 1;
	}
	return NEXT;
}

SEC("classifier")
int stamp(struct __sk_buff *skb)
{
	u32 zero = 0;
	struct config *asked = map_lookup(&config, &zero);

	return asked ? stamp_with(skb, asked, ktime(), 0, 0) : NEXT;
}

/* Like `stamp`, where flows are acted on. A packet that is dropped here did not reach the queue, and is not stamped. */
SEC("classifier")
int act(struct __sk_buff *skb)
{
	u32 zero = 0;
	struct config *asked = map_lookup(&config, &zero);
	struct acting *how = map_lookup(&acting, &zero);
	struct acted *count = map_lookup(&acted, &zero);
	struct standing *here = map_lookup(&standing, &zero);
	struct scratch *place = map_lookup(&scratch, &zero);
	struct victim *victim = 0;
	u64 now = ktime(), digest = 0;
	u32 kind = 0;
	int is_ip;

	if (!asked || !how || !count || !here || !place)
		return NEXT;
	if (how->action && now < how->until && here->begun)
		digest = digest_of(skb, asked->framed, &kind);
	if (digest)
		victim = how->weigh == QUEUE ? &here->all : map_lookup(&victims, &digest);
	if (victim) {
		is_ip = examine(skb, asked->framed);
		if (is_ip >= 0 && decide(skb, how, count, victim, place->headers, place->ip, is_ip, now) == SHOT) {
			/* With a stamp from elsewhere it would count as dropped by the queue. */
			skb->cb[4] = ~skb->cb[4];
			return SHOT;
		}
	}
	return stamp_with(skb, asked, now, digest, kind);
}

/* What is known of a packet's flow, and of what left while it waited. */
struct findings {
	u64 digest;
	/* Its place in the table, if it has one. */
	struct flow *flow;
	u32 place;
	/* Bytes of the flow, and of all flows, that left meanwhile. */
	u32 of_flow, of_all;
};

/* Reads the note of a packet from where it is kept apart; returns whether it is there. */
GLOBAL int find_apart(struct note *note, u32 time)
{
	struct apart *apart = apart_of(time);

	if (!note || !apart || apart->time != time)
		return 0;
	*note = apart->note;
	return 1;
}

/* What left while a packet waited of which that is not known: as much in the same time as for the last packet of which it is. */
GLOBAL u32 guess(const struct queue *queue, u64 waited)
{
	return queue && queue->waited ? queue->meanwhile * waited / queue->waited : 0;
}

/* Finds the flow of a packet by its note, and what left. */
INLINE void find(const struct note *note, u32 number, struct queue *queue, u64 waited, struct findings *found)
{
	u32 place = note->flow >> 2 & (LINES - 1);
	struct line *line = map_lookup(&flows, &place);
	struct flow *flow;

	if (!line)
		return;
	flow = &line->of[note->flow % WAYS];
	if (note->flow >> DIGEST_AT != (u32)(flow->digest >> 51))
		return;
	found->flow = flow;
	found->place = note->flow % (LINES * WAYS);
	found->digest = flow->digest;
	found->of_flow = flow->left - note->of_flow;
	if ((note->flow >> QUEUE_AT) % QUEUES == number) {
		found->of_all = queue->left - note->of_all;
		queue->meanwhile = found->of_all;
		queue->waited = waited;
	} else {
		/* The first packets of a flow go by the count of another queue than theirs. */
		found->of_all = guess(queue, waited);
		flow->used = (flow->used & ~(QUEUES - 1)) | number;
	}
}

/* Finds the digest of the packet whose headers are in `scratch`, and counts it as leaving if its flow is in the table. */
GLOBAL u64 find_by_headers(u32 framed, u32 bytes)
{
	u32 zero = 0, way;
	struct scratch *place = map_lookup(&scratch, &zero);
	struct counters *count = map_lookup(&counters, &zero);
	struct line *line;

	if (!place || !count)
		return 0;
	if (!identify(framed))
		count->other++;
	line = line_of(place->digest);
	if (line) {
		way = way_of(line, place->digest);
		if (way < WAYS)
			line->of[way].left += bytes;
	}
	return place->digest;
}

INLINE void left(struct Qdisc *qdisc, struct sk_buff *skb, struct config *asked, struct counters *count, struct shared *here, u64 now)
{
	const u32 *block = (const u32 *)skb->cb;
	u32 bytes = block[BLOCK_BYTES], last = block[BLOCK_LAST], number = queue_of(qdisc, skb), zero = 0, head;
	struct queue *queue = &here->queues[number];
	struct findings found = { 0, 0, NO_PLACE, 0, 0 };
	u64 waited;
	bool is_ours = has_waited(block, asked, now, &waited);
	u32 segments = is_ours && !(last & SUPER) ? 1 : segments_of(skb);
	u32 backlog = qdisc->qstats.backlog, length = qdisc->q.qlen;
	bool congested, contributing, is_told;
	u8 header[2];

	if (is_back(qdisc, queue))
		return;
	if (!is_ours) {
		count->unstamped += segments;
		waited = 0;
	} else if (last & MARKABLE && !probe_read_kernel(header, 2, skb->head + skb->network_header) &&
		   ecn_bits(skb->protocol, header) == CE) {
		count->marked += segments;
	}
	congested = waited > asked->tau;
	count->seen++;
	count->packets += segments;
	count->bytes += bytes;
	count->congested += congested ? segments : 0;
	count->delay += waited * segments;
	count->delays[bits_of(waited >> DELAY) % DELAYS] += segments;
	sum_up(&queue->slice, number, now, waited, bytes, segments, congested, backlog, length);
	if ((waited >= SHORT_WAIT || waited >= asked->tau / 4 || length >= BEHIND) && now + NOTING / 2 > here->noting)
		here->noting = now + NOTING;
	if (is_ours && (last & NOTED || now < here->keeping)) {
		struct note note = { block[BLOCK_NOTE], block[BLOCK_NOTE + 1], block[BLOCK_NOTE + 2] };
		bool is_there = check_of_note(&note, asked) == (last & NOTED);

		/* The qdisc, or another probe, overwrites notes. */
		if (!is_there && last & NOTED && now + KEEPING / 2 > here->keeping)
			here->keeping = now + KEEPING;
		if (is_there || find_apart(&note, block[BLOCK_TIME]))
			find(&note, number, queue, waited, &found);
	}
	queue->left += bytes;
	if (found.flow)
		found.flow->left += bytes;
	/* A burst lasts until a packet waits less than half of tau. */
	is_told = waited >= asked->tau / 2 || asked->all;
	/* A packet with no other behind it is no part of any other's sojourn time, so its flow is not needed. */
	if (!is_told && is_empty(qdisc)) {
		count->alone++;
		if (asked->acts)
			remember(0, 0, 0, 0, 0, now);
		return;
	}
	head = skb->len - skb->data_len;
	if (!found.flow) {
		struct scratch *place = map_lookup(&scratch, &zero);

		if (!place)
			return;
		__builtin_memset(place->headers, 0, sizeof(place->headers));
		probe_read_kernel(place->headers, head > HEADERS ? HEADERS : head, skb->data);
		found.digest = find_by_headers(asked->framed, bytes);
		found.of_all = guess(queue, waited);
		count->unjudged += congested ? segments : 0;
	} else if (found.flow->used & NOT_IP) {
		count->other++;
	}
	contributing = congested && (u64)found.of_flow << 16 > (u64)found.of_all * asked->alpha;
	count->contributing += contributing ? segments : 0;
	if (asked->acts)
		remember(found.digest, found.of_flow, found.of_all, contributing, backlog, now);
	if (!is_told)
		return;
	u64 begun;
	struct report *report = begin_report(asked, count, here, &begun);
	if (!report)
		return;
	report->dequeued = now;
	report->waited = waited;
	report->digest = found.digest;
	report->flow = found.of_flow;
	report->all = found.of_all;
	report->bytes = bytes;
	report->packets = segments;
	report->backlog = backlog;
	report->length = length;
	report->place = found.place;
	report->queue = number;
	u8 flags = is_ours * IS_STAMPED | (asked->framed ? IS_FRAMED : 0) | contributing * IS_CONTRIBUTING;
	if (asked->each || !found.flow || !(found.flow->used & TOLD)) {
		report->captured = copy_headers(begun % REPORTS, skb->data, head);
		flags |= HAS_HEADERS;
		if (found.flow)
			found.flow->used |= TOLD;
	}
	/* Headers of an earlier packet of the flow may have others. */
	if (asked->drops && !probe_read_kernel(header, 2, skb->head + skb->network_header)) {
		report->ecn = ecn_bits(skb->protocol, header);
		flags |= HAS_ECN;
	}
	report->flags = flags;
	end_report(report, begun);
}

SEC("tp_btf/qdisc_dequeue")
int dequeue(u64 *arguments)
{
	struct sk_buff *skb = (void *)arguments[3];
	struct netdev_queue *transmit = (void *)arguments[1];
	struct Qdisc *qdisc = (void *)arguments[0];
	struct net_device *device;
	struct counters *count;
	struct config *asked;
	struct shared *here;
	u32 zero = 0;
	u64 now;

	/* The qdisc is empty: half of all calls are like this. */
	if (!skb)
		return 0;
	asked = map_lookup(&config, &zero);
	count = map_lookup(&counters, &zero);
	here = map_lookup(&shared, &zero);
	device = transmit->dev;
	if (!asked || !count || !here || device->ifindex != asked->ifindex)
		return 0;
	now = ktime();
	if (!is_watched(device, asked, here, now))
		return 0;
	for (int packet = 0; packet < BULK && skb; packet++) {
		left(qdisc, skb, asked, count, here, now);
		skb = skb->next;
	}
	if (skb)
		count->bulk++;
	return 0;
}

/* Reports a packet that the qdisc dropped, always with its headers: its flow may have no other packet. */
INLINE void report_drop(struct sk_buff *skb, const struct config *asked, struct counters *count, struct shared *here, u64 now,
			u32 segments)
{
	const u32 *block = (const u32 *)skb->cb;
	u64 number, waited;
	bool is_ours = has_waited(block, asked, now, &waited);
	struct report *report = begin_report(asked, count, here, &number);

	if (!report)
		return;
	report->dequeued = now;
	report->waited = is_ours ? waited : 0;
	report->digest = 0;
	report->flow = report->all = 0;
	report->bytes = block[BLOCK_BYTES];
	report->packets = segments;
	report->backlog = report->length = 0;
	report->place = NO_PLACE;
	report->queue = 0;
	report->captured = copy_headers(number % REPORTS, skb->data, skb->len - skb->data_len);
	report->flags = IS_DROPPED | HAS_HEADERS | is_ours * IS_STAMPED | (asked->framed ? IS_FRAMED : 0);
	end_report(report, number);
}

SEC("tp_btf/kfree_skb")
int dropped(u64 *arguments)
{
	struct sk_buff *skb = (void *)arguments[0];
	u32 zero = 0, segments, place = place_of(arguments[2]);
	struct config *asked;
	struct counters *count;
	struct net_device *device;
	struct shared *here;
	u64 waited, now;

	device = skb->dev;
	if (place == REASONS || !device)
		return 0;
	asked = map_lookup(&config, &zero);
	count = map_lookup(&counters, &zero);
	here = map_lookup(&shared, &zero);
	if (!asked || !count || !here || device->ifindex != asked->ifindex)
		return 0;
	now = ktime();
	if (!is_watched(device, asked, here, now))
		return 0;
	/* Classifiers also drop packets that have not reached the queue. */
	if (place == CLASSIFIER && !has_waited((const u32 *)skb->cb, asked, now, &waited))
		return 0;
	/* tbf cuts a super-packet that is longer than its burst, and drops the packets one by one; other super-packets it drops whole. */
	segments = segments_of(skb);
	count->drops[place % REASONS] += segments;
	count->tc_drops++;
	if (asked->drops)
		report_drop(skb, asked, count, here, now, segments);
	return 0;
}
