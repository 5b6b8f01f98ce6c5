/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* For tests only: marks each packet with CE between the stamp and the queue, as a queue would. */
#include "flow.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

SEC("classifier")
int marking(struct __sk_buff *skb)
{
	u8 header[2], marked;
	u32 at = 14;

	if (skb_load_bytes(skb, at, header, 2))
		return NEXT;
	if (skb->protocol == __builtin_bswap16(IPV4)) {
		marked = header[1] | 3;
		l3_csum_replace(skb, at + 10, header[0] | header[1] << 8, header[0] | marked << 8, 2);
	} else if (skb->protocol == __builtin_bswap16(IPV6)) {
		marked = header[1] | 3 << 4;
	} else {
		return NEXT;
	}
	skb_store_bytes(skb, at + 1, &marked, 1, 0);
	return NEXT;
}
