/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The reasons of a qdisc's drops that are counted separately, by name, because kernels number them differently. */
#pragma once
#include "kernel.h"

/* Reasons of drops by a qdisc, in the order of the counters; the last is a drop by a classifier after the stamp. */
enum { ANY, OVERLIMIT, CONGESTED, CAKE_FLOOD, BAND_LIMIT, HORIZON_LIMIT, FLOW_LIMIT, STEP_DROP, CLASSIFIER, REASONS };

/* The index of a reason; REASONS if it is not in the list. */
INLINE u32 place_of(u32 reason)
{
	if (reason == REASON(QDISC_DROP))
		return ANY;
	if (HAS_REASON(QDISC_OVERLIMIT) && reason == REASON(QDISC_OVERLIMIT))
		return OVERLIMIT;
	if (HAS_REASON(QDISC_CONGESTED) && reason == REASON(QDISC_CONGESTED))
		return CONGESTED;
	if (HAS_REASON(CAKE_FLOOD) && reason == REASON(CAKE_FLOOD))
		return CAKE_FLOOD;
	if (HAS_REASON(FQ_BAND_LIMIT) && reason == REASON(FQ_BAND_LIMIT))
		return BAND_LIMIT;
	if (HAS_REASON(FQ_HORIZON_LIMIT) && reason == REASON(FQ_HORIZON_LIMIT))
		return HORIZON_LIMIT;
	if (HAS_REASON(FQ_FLOW_LIMIT) && reason == REASON(FQ_FLOW_LIMIT))
		return FLOW_LIMIT;
	if (HAS_REASON(DUALPI2_STEP_DROP) && reason == REASON(DUALPI2_STEP_DROP))
		return STEP_DROP;
	if (HAS_REASON(TC_EGRESS) && reason == REASON(TC_EGRESS))
		return CLASSIFIER;
	return REASONS;
}
