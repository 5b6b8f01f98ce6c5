/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Programs that do nothing, at the places of those of the probe. The kernel's work to run a program there is the least that a probe costs, and
 * is measured with these. */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

SEC("classifier")
int empty_stamp(void)
{
	return NEXT;
}

SEC("tp_btf/qdisc_dequeue")
int empty_dequeue(void)
{
	return 0;
}

SEC("tp_btf/kfree_skb")
int empty_dropped(void)
{
	return 0;
}
