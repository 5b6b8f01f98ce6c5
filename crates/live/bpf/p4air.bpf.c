/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* P4air on a router: finds the group of each flow, chooses the class of its packets before a qdisc, and acts on flows above their share
 * (Turkovic and Kuipers, ICNP 2020). Follows P4air of queuescope-queue. */
#include "p4air.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Packets of one bulk dequeue that are examined. */
#define BULK 16
/* Bytes of a packet that are parsed, from the IP header on: IPv6 and TCP without options. */
#define HEAD 60
/* The lowest receive window that is written: two segments. */
#define LEAST_WINDOW 2896
#define SEGMENT 1448

enum { TCP = 6, FIN = 1, SYN = 2, RST = 4, ACK = 16 };

/* What a packet takes along in `tc_index`: a bit that it does, its round trip modulo 4, and how many packets had left its class, modulo 8192. */
#define NOTED 0x8000
#define ROUND_AT 13
#define LEFT 0x1fff

static long (*l4_csum_replace)(struct __sk_buff *skb, u32 at, u64 from, u64 to, u64 flags) = (void *)11;

struct sk_buff___classed {
	u32 priority;
	u16 tc_index;
} CORE;

/* What is read of a packet. */
struct seen {
	/* Whether it is TCP or UDP over plain IP: not a later fragment, no options of IP. */
	bool is_plain, is_tcp;
	u8 flags;
	/* Bytes of the IP header, and those that TCP carries. */
	u32 header, data;
	u16 window;
	struct words words;
};

/* Parses the first bytes of a packet from its IP header on. */
INLINE void parse(const u8 *head, u32 protocol, struct seen *seen)
{
	u32 total;

	seen->is_plain = 0;
	if (protocol != __builtin_bswap16(IPV4) && protocol != __builtin_bswap16(IPV6))
		return;
	if (!plain_flow_of(head, head + HEAD, &seen->words))
		return;
	if (head[0] >> 4 == 4) {
		/* The first fragment has ports, but the others do not. */
		if (head[6] & 0x20)
			return;
		seen->header = 20;
		total = be16(head + 2);
		seen->is_tcp = head[9] == TCP;
	} else {
		seen->header = 40;
		total = be16(head + 4);
		total += total ? 40 : 0;
		seen->is_tcp = head[6] == TCP;
	}
	seen->is_plain = 1;
	seen->flags = 0;
	seen->data = 1;
	if (seen->is_tcp) {
		const u8 *tcp = head[0] >> 4 == 4 ? head + 20 : head + 40;
		u32 before = seen->header + (tcp[12] >> 4) * 4;

		seen->flags = tcp[13];
		seen->window = be16(tcp + 14);
		/* Packets of more than 64 kB have no length, but have data. */
		seen->data = total == 0 ? 1 : total > before ? total - before : 0;
	}
}

/* Reads a packet before the queue. */
INLINE void look(struct __sk_buff *skb, struct seen *seen)
{
	u8 head[HEAD];

	seen->is_plain = 0;
	if (skb_load_bytes_relative(skb, 0, head, HEAD, FROM_IP)) {
		/* What is not read is zero. */
		__builtin_memset(head, 0, HEAD);
		if (skb_load_bytes_relative(skb, 0, head, 40, FROM_IP)) {
			__builtin_memset(head, 0, HEAD);
			if (skb_load_bytes_relative(skb, 0, head, 28, FROM_IP))
				return;
		}
	}
	parse(head, skb->protocol, seen);
}

/* Whether the flow with this key is never acted on. */
GLOBAL int is_exempt(const struct flow *flow)
{
	u32 zero = 0;
	const struct never *list = map_lookup(&never, &zero);
	struct words words;
	struct known known;

	if (!flow || !list || !list->count)
		return 0;
	for (u32 word = 0; word < 6; word++)
		words.of[word] = flow->key[word];
	know(&words, &known);
	return is_listed(list, &known);
}

/* Frees one place of the table after another whose flow is idle. */
GLOBAL int sweep(u64 now)
{
	u32 zero = 0, place, way;
	struct passed *counts = map_lookup(&passed, &zero);
	struct division *all = map_lookup(&division, &zero);
	struct counters *count = map_lookup(&counters, &zero);
	struct line *line;
	struct flow *flow;

	if (!counts || !all || !count)
		return 0;
	place = counts->next++ % (LINES * WAYS);
	way = place % WAYS;
	place /= WAYS;
	line = map_lookup(&flows, &place);
	if (!line || !line->digests[way])
		return 0;
	flow = &line->of[way];
	if (now - flow->last < IDLE || now < flow->last)
		return 0;
	if (!flow->has_ended) {
		if (!hold(all)) {
			count->deferred++;
			return 0;
		}
		flow->has_ended = 1;
		leave(all, flow);
		let_go(all);
		count->ended++;
	}
	line->digests[way] = 0;
	return 0;
}

/* Begins the entry of a flow. Returns its place in the line, or WAYS if there is none. */
GLOBAL u32 begin(u64 digest, u64 now, u32 is_tcp)
{
	u32 zero = 0, way = WAYS, group = is_tcp ? MOUSE : ANT;
	struct line *line = line_of(digest);
	struct division *all = map_lookup(&division, &zero);
	struct counters *count = map_lookup(&counters, &zero);
	struct flow *flow;

	if (!line || !all || !count)
		return WAYS;
	for (u32 n = 0; n < WAYS; n++) {
		flow = &line->of[n];
		if (line->digests[n] == digest) {
			way = n;
			break;
		}
		if (way == WAYS && (!line->digests[n] || flow->has_ended || (now > flow->last && now - flow->last >= IDLE)))
			way = n;
	}
	if (way >= WAYS) {
		count->full++;
		return WAYS;
	}
	if (!hold(all)) {
		count->deferred++;
		return WAYS;
	}
	flow = &line->of[way];
	if (line->digests[way] && !flow->has_ended) {
		leave(all, flow);
		count->ended++;
	}
	__builtin_memset(flow, 0, sizeof(*flow));
	flow->last = now;
	flow->is_tcp = is_tcp;
	flow->group = flow->wanted = group;
	flow->queue = NO_QUEUE;
	flow->scale = NO_SCALE;
	line->digests[way] = digest;
	move_flow(all, GROUPS, group);
	let_go(all);
	return way;
}

/* Moves a flow to another group; returns whether it has moved. */
GLOBAL int move_to(struct flow *flow, u32 to)
{
	u32 zero = 0;
	struct division *all = map_lookup(&division, &zero);
	struct counters *count = map_lookup(&counters, &zero);

	if (!flow || !all || !count || to < LONG_LIVED || to >= GROUPS)
		return 0;
	if (!hold(all)) {
		flow->wanted = to;
		count->deferred++;
		return 0;
	}
	leave_queue(all, flow->group, flow->queue);
	if (flow->group < LONG_LIVED) {
		forget_pulses(&flow->rate);
		__builtin_memset(&flow->growth, 0, sizeof(flow->growth));
	}
	move_flow(all, flow->group, to);
	flow->assigned = ++all->assigned;
	flow->group = flow->wanted = to;
	flow->queue = NO_QUEUE;
	let_go(all);
	count->moves[(to - LONG_LIVED) & 3]++;
	return 1;
}

/* A flow has ended: it has no share from now on. Its entry stays for packets that are sent again, which keep its class. */
GLOBAL int finish(struct flow *flow)
{
	u32 zero = 0;
	struct division *all = map_lookup(&division, &zero);
	struct counters *count = map_lookup(&counters, &zero);

	if (!flow || !all || !count || flow->has_ended)
		return 0;
	if (!hold(all)) {
		count->deferred++;
		return 0;
	}
	flow->has_ended = 1;
	leave_queue(all, flow->group, flow->queue);
	move_flow(all, flow->group, GROUPS);
	let_go(all);
	count->ended++;
	return 1;
}

/* The class of a flow, whose queue may change. */
GLOBAL u32 class_of(struct flow *flow)
{
	u32 zero = 0, before;
	struct division *all = map_lookup(&division, &zero);
	struct counters *count = map_lookup(&counters, &zero);

	if (!flow || !all || !count)
		return ANTS;
	if (flow->group < LONG_LIVED)
		return flow->group == ANT ? ANTS : MICE;
	if (!flow->has_ended && !stays(all, flow->group, flow->queue)) {
		if (!hold(all)) {
			count->deferred++;
		} else {
			before = flow->queue;
			flow->queue = next_queue(all, flow->group, before);
			count->requeued += before != NO_QUEUE && before != flow->queue;
			if (flow->assigned > all->newest[flow->queue % QUEUES])
				all->newest[flow->queue % QUEUES] = flow->assigned;
			let_go(all);
		}
	}
	return flow->queue < QUEUES ? FIRST + flow->queue : MICE;
}

/* Besides NEXT and SHOT, the fate of a packet that goes to the class LATE. */
#define DELAYED 3

/* The fate of a packet of data of a flow. */
GLOBAL int act(struct flow *flow, u32 is_real)
{
	u32 zero = 0;
	struct config *asked = map_lookup(&config, &zero);
	struct division *all = map_lookup(&division, &zero);
	struct counters *count = map_lookup(&counters, &zero);
	u32 action;
	bool is_first;

	if (!flow || !asked || !all || !count || flow->group < LONG_LIVED)
		return NEXT;
	if (flow->rate.sent <= fair_share(asked, all, flow->rate.rtt, 0))
		return NEXT;
	is_first = !flow->is_above;
	flow->is_above = 1;
	count->above += is_first;
	action = asked->actions[(flow->group - LONG_LIVED) & 3];
	if (action == DROP && !is_first && !asked->each)
		return NEXT;
	if (action != DROP && action != DELAY)
		return NEXT;
	if (is_exempt(flow)) {
		count->exempt++;
		return NEXT;
	}
	flow->acted++;
	if (action == DROP) {
		if (!is_real) {
			count->would_drop++;
			return NEXT;
		}
		count->dropped++;
		return SHOT;
	}
	if (!is_real) {
		count->would_delay++;
		return NEXT;
	}
	count->delayed++;
	return DELAYED;
}

/* The end of the slow start of a mouse, or of an ant that fills its share. Returns SHOT if that drops the packet. */
GLOBAL int slow_start(struct flow *flow, u32 ended, u64 trip_of, u32 is_real)
{
	u32 zero = 0, end;
	struct config *asked = map_lookup(&config, &zero);
	struct division *all = map_lookup(&division, &zero);
	struct counters *count = map_lookup(&counters, &zero);
	struct trip trip = { trip_of >> 32, (u32)trip_of, 0, 0 };

	if (!flow || !asked || !all || !count)
		return NEXT;
	end = end_of_slow_start(&flow->rate, ended, &trip, fair_share(asked, all, flow->rate.rtt, 1));
	/* Without TCP there is no slow start that could end by itself. */
	if (end == GOES_ON || (!flow->is_tcp && end != FAIR_SHARE))
		return NEXT;
	if (!move_to(flow, DELAY_BASED))
		return NEXT;
	if (end == SENT_LESS) {
		count->less++;
		return NEXT;
	}
	count->share++;
	if (!flow->is_tcp)
		return NEXT;
	if (is_exempt(flow)) {
		count->exempt++;
		return NEXT;
	}
	flow->acted++;
	if (!is_real) {
		count->would_drop++;
		return NEXT;
	}
	count->dropped++;
	return SHOT;
}

/* Gives a packet its class. Without a flow it takes no note along. */
INLINE int pass(struct __sk_buff *skb, const struct config *asked, u32 class, u32 note, bool is_real)
{
	skb->tc_index = note;
	if (is_real)
		skb->priority = asked->handle << 16 | (asked->minor + class);
	return NEXT;
}

/* Before the qdisc. */
SEC("classifier")
int p4air(struct __sk_buff *skb)
{
	u32 zero = 0, ticks, way, segments = skb->gso_segs ? skb->gso_segs : 1, class, verdict = NEXT;
	struct config *asked = map_lookup(&config, &zero);
	struct counters *count = map_lookup(&counters, &zero);
	struct passed *counts = map_lookup(&passed, &zero);
	u64 now = ktime(), digest_of_flow;
	bool is_real, known, ended = 0, is_syn;
	struct trip trip = { 0, 0, 0, 0 };
	struct seen seen;
	struct line *line;
	struct flow *flow;

	if (!asked || !count || !counts)
		return NEXT;
	is_real = asked->handle && now < asked->until;
	ticks = now >> 10;
	look(skb, &seen);
	sweep(now);
	if (!seen.is_plain) {
		count->other++;
		return pass(skb, asked, ANTS, 0, is_real);
	}
	digest_of_flow = digest(&seen.words);
	line = line_of(digest_of_flow);
	if (!line)
		return NEXT;
	is_syn = seen.flags & SYN;
	way = way_of(line, digest_of_flow);
	if (way < WAYS && is_syn && line->of[way].has_ended)
		way = WAYS;
	if (way >= WAYS) {
		if (!is_syn && !seen.data) {
			count->ants++;
			return pass(skb, asked, ANTS, 0, is_real);
		}
		way = begin(digest_of_flow, now, seen.is_tcp);
		if (way >= WAYS) {
			count->ants++;
			return pass(skb, asked, ANTS, 0, is_real);
		}
		flow = &line->of[way % WAYS];
		for (u32 word = 0; word < 6; word++)
			flow->key[word] = seen.words.of[word];
		flow->rate.began = ticks;
		flow->rate.rtt = is_syn ? 0 : asked->rtt;
	}
	flow = &line->of[way % WAYS];
	flow->last = now;
	if (seen.flags & (FIN | RST))
		finish(flow);
	if (is_syn) {
		/* Not behind the mice: the flow's round-trip time must not contain their queue. */
		on_syn(&flow->rate, ticks);
		return pass(skb, asked, ANTS, 0, is_real);
	}
	count->tracked++;
	known = flow->rate.rtt;
	/* The ACK that ends the handshake gives the round-trip time, but only data counts. */
	if (seen.data || !known)
		ended = on_packet(&flow->rate, seen.data ? segments : 0, ticks, &trip);
	if (ended) {
		flow->round++;
		flow->reduced = flow->reduced << 1 | trip.is_reduced;
		flow->was_above = flow->is_above;
		flow->is_above = 0;
	}
	/* What was found behind the queue. */
	if (flow->wanted != flow->group && !flow->has_ended)
		move_to(flow, flow->wanted);
	if (!seen.data)
		return pass(skb, asked, class_of(flow), 0, is_real);
	flow->packets += segments;
	if (!flow->has_ended) {
		if (flow->group < LONG_LIVED)
			verdict = slow_start(flow, ended, (u64)trip.sent << 32 | trip.before, is_real);
		else if (!ended)
			verdict = act(flow, is_real);
		if (verdict == SHOT)
			return SHOT;
	}
	class = verdict == DELAYED ? LATE : class_of(flow);
	return pass(skb, asked, class, NOTED | (flow->round & 3) << ROUND_AT | (counts->left[is_real ? class % CLASSES : 0] & LEFT), is_real);
}

/* Finds the scale of the window in the options of a SYN; 0 if there is none. */
INLINE u8 scale_of(struct __sk_buff *skb, u32 from, u32 bytes)
{
	u8 option[4];
	u32 at = 0;

	/* There is room for 40 bytes; each option but padding has two at least. */
	for (u32 n = 0; n < 24; n++) {
		if (at + 3 > bytes)
			return 0;
		if (skb_load_bytes_relative(skb, from + at, option, 3, FROM_IP))
			return 0;
		if (option[0] == 0)
			return 0;
		if (option[0] == 3)
			return option[2] < 14 ? option[2] : 14;
		if (option[0] == 1)
			at++;
		else if (option[1] < 2)
			return 0;
		else
			at += option[1];
	}
	return 0;
}

/* Lowers the window in an ACK to the share of its flow. */
GLOBAL int lower(struct __sk_buff *skb, struct flow *flow, u32 window, u32 at)
{
	u32 zero = 0, lowest;
	struct config *asked = map_lookup(&config, &zero);
	struct division *all = map_lookup(&division, &zero);
	struct counters *count = map_lookup(&counters, &zero);
	u64 bytes;
	u16 from = __builtin_bswap16(window), to;

	if (!flow || !asked || !all || !count)
		return NEXT;
	if (flow->scale > 14) {
		count->unscaled++;
		return NEXT;
	}
	bytes = (u64)fair_share(asked, all, flow->rate.rtt, 0) * SEGMENT;
	if (bytes < LEAST_WINDOW)
		bytes = LEAST_WINDOW;
	bytes >>= flow->scale;
	lowest = bytes ? bytes : 1;
	if (lowest >= window)
		return NEXT;
	if (is_exempt(flow)) {
		count->exempt++;
		return NEXT;
	}
	flow->acted++;
	if (!asked->handle || ktime() >= asked->until) {
		count->would_lower++;
		return NEXT;
	}
	to = __builtin_bswap16(lowest);
	if (l4_csum_replace(skb, at + 16, from, to, 2) || skb_store_bytes(skb, at + 14, &to, 2, 0))
		return NEXT;
	count->lowered++;
	return NEXT;
}

/* Packets that come in: ACKs of the flows that leave by the interface. */
SEC("classifier")
int acks(struct __sk_buff *skb)
{
	u32 zero = 0, way, action;
	struct config *asked = map_lookup(&config, &zero);
	struct words reverse;
	struct seen seen;
	struct line *line;
	struct flow *flow;
	u64 number;
	u8 first;

	if (!asked)
		return NEXT;
	look(skb, &seen);
	if (!seen.is_plain || !seen.is_tcp || !(seen.flags & ACK))
		return NEXT;
	reverse.of[0] = seen.words.of[2];
	reverse.of[1] = seen.words.of[3];
	reverse.of[2] = seen.words.of[0];
	reverse.of[3] = seen.words.of[1];
	reverse.of[4] = (seen.words.of[4] >> 16 & 0xffff) | (seen.words.of[4] & 0xffff) << 16;
	reverse.of[5] = seen.words.of[5];
	number = digest(&reverse);
	line = line_of(number);
	if (!line)
		return NEXT;
	way = way_of(line, number);
	if (way >= WAYS)
		return NEXT;
	flow = &line->of[way % WAYS];
	if (seen.flags & SYN) {
		if (!skb_load_bytes_relative(skb, seen.header + 12, &first, 1, FROM_IP) && first >> 4 >= 5)
			flow->scale = scale_of(skb, seen.header + 20, (first >> 4) * 4 - 20);
		return NEXT;
	}
	if (flow->group < LONG_LIVED || flow->has_ended || !(flow->is_above || flow->was_above))
		return NEXT;
	action = asked->actions[(flow->group - LONG_LIVED) & 3];
	if (action == WINDOW)
		lower(skb, flow, seen.window, seen.header + (asked->framed ? 14 : 0));
	return NEXT;
}

/* A packet with a note has left a queue that was `depth` deep when it came. */
INLINE void judge_behind(struct flow *flow, u32 round, u32 depth, const struct division *all)
{
	u32 passed_rounds, to, queue = flow->queue;
	bool is_reduced;

	/* Packets of a flow leave in order, so this is right however long they wait. One of an earlier round trip is late because it went to another
	 * queue. */
	passed_rounds = (round - flow->judged) & 3;
	if (passed_rounds == 3)
		return;
	flow->judged += passed_rounds;
	if ((int)(flow->round - flow->judged) < 0) {
		/* It was later still. */
		flow->judged = flow->round - ((flow->round - round) & 3);
		return;
	}
	if (flow->group < LONG_LIVED || flow->has_ended)
		return;
	if (!passed_rounds) {
		on_left(&flow->growth, depth);
		return;
	}
	is_reduced = flow->reduced >> ((flow->round - flow->judged) & 31) & 1;
	to = on_end(&flow->growth, depth, flow->group, is_reduced, flow->rate.pulses);
	/* Of a queue that grows, only the flow moves that was assigned to it last. */
	if (to != flow->group && (to == MODEL_BASED || (queue < QUEUES && flow->assigned >= all->newest[queue])))
		flow->wanted = to;
}

SEC("tp_btf/qdisc_dequeue")
int left_queue(u64 *arguments)
{
	struct sk_buff *skb = (void *)arguments[3];
	struct netdev_queue *transmit = (void *)arguments[1];
	u32 zero = 0;
	struct net_device *device;
	struct config *asked;
	struct counters *count;
	struct passed *counts;
	struct division *all;

	if (!skb)
		return 0;
	asked = map_lookup(&config, &zero);
	count = map_lookup(&counters, &zero);
	counts = map_lookup(&passed, &zero);
	all = map_lookup(&division, &zero);
	device = transmit->dev;
	if (!asked || !count || !counts || !all || device->ifindex != asked->ifindex || device->nd_net.net->ns.inum != asked->netns)
		return 0;
	for (u32 packet = 0; packet < BULK && skb; packet++, skb = skb->next) {
		u32 priority = ((struct sk_buff___classed *)skb)->priority, note = ((struct sk_buff___classed *)skb)->tc_index;
		u32 class = asked->handle && priority >> 16 == asked->handle ? (priority & 0xffff) - asked->minor : 0;
		u16 segments = ((struct skb_shared_info *)(skb->head + skb->end))->gso_segs;
		struct seen seen;
		struct line *line;
		u8 head[HEAD];
		u64 number;
		u32 way, before;

		class %= CLASSES;
		before = __sync_fetch_and_add(&counts->left[class], segments ? segments : 1);
		count->left += segments ? segments : 1;
		if (!(note & NOTED))
			continue;
		/* The memory behind a short packet may be read, too: the kernel's shared information follows. */
		if (probe_read_kernel(head, HEAD, skb->head + skb->network_header))
			continue;
		parse(head, skb->protocol, &seen);
		if (!seen.is_plain)
			continue;
		number = digest(&seen.words);
		line = line_of(number);
		if (!line)
			continue;
		way = way_of(line, number);
		if (way >= WAYS)
			continue;
		judge_behind(&line->of[way % WAYS], note >> ROUND_AT & 3, (before - note) & LEFT, all);
	}
	if (skb)
		count->bulk++;
	return 0;
}
