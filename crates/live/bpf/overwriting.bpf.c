/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* For tests only: overwrites the words of the control block between the stamp and the queue that some qdiscs use, such as fq and codel. */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

SEC("classifier")
int overwriting(struct __sk_buff *skb)
{
	skb->cb[0] = random();
	skb->cb[1] = random();
	skb->cb[2] = random();
	return NEXT;
}
