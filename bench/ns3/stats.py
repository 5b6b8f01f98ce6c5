"""Means, intervals and the verdict on a cell. Standard library only."""

import math

# Student's t, two-sided 95 %, by degrees of freedom 1..30.
T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
       2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]
Z95 = 1.960

# The bounds that a cell must keep.
GOODPUT = 0.03
DELAY = 0.15
DELAY_MS = 0.2


def mean(values):
    return math.fsum(values) / len(values)


def half_width(values):
    """Half of the 95 % interval of the mean of `values`; infinite for one value alone."""
    if len(values) < 2:
        return math.inf
    middle = mean(values)
    variance = math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)
    degrees = len(values) - 1
    return (T95[degrees - 1] if degrees <= len(T95) else Z95) * math.sqrt(variance / len(values))


def wilson(events, trials):
    """Wilson's 95 % interval of a rate, as if each packet were dropped independently."""
    if trials == 0:
        return 0.0, 1.0
    rate, spread = events / trials, Z95 * Z95 / trials
    middle = (rate + spread / 2) / (1 + spread)
    width = Z95 / (1 + spread) * math.sqrt(rate * (1 - rate) / trials + spread / trials / 4)
    return max(0.0, middle - width), min(1.0, middle + width)


def rate_interval(events, trials):
    """The 95 % interval of a rate over seeds: `events` and `trials` of each.

    Student's interval of the seeds' rates, since drops of one run hang together. It is never taken narrower than
    Wilson's interval of all packets: seeds that agree to a packet do not make the rate that certain.
    """
    rates = [event / trial if trial else 0.0 for event, trial in zip(events, trials)]
    low, high = wilson(sum(events), sum(trials))
    half = half_width(rates)
    if math.isinf(half):
        return low, high
    return min(low, mean(rates) - half), max(high, mean(rates) + half)


def overlap(one, other):
    return one[0] <= other[1] and other[0] <= one[1]


class Verdict:
    """What two lists of results of one cell, one result a seed, come to."""

    def __init__(self, theirs, ours):
        self.goodput = [mean([run["goodput_mbps"] for run in side]) for side in (theirs, ours)]
        self.delay = [mean([run["delay_mean_ms"] for run in side]) for side in (theirs, ours)]
        self.p95 = [mean([run["delay_p95_ms"] for run in side]) for side in (theirs, ours)]
        self.drop = [self.rates(side, "dropped") for side in (theirs, ours)]
        self.mark = [self.rates(side, "marked") for side in (theirs, ours)]
        self.failures = [name for name, holds in [
            ("goodput", abs(self.goodput[1] - self.goodput[0]) <= GOODPUT * self.goodput[0]),
            ("mean delay", self.close(*self.delay)),
            ("p95 delay", self.close(*self.p95)),
            ("drops", overlap(*self.drop)),
            ("marks", overlap(*self.mark)),
        ] if not holds]

    @staticmethod
    def rates(side, what):
        return rate_interval([run[what] for run in side], [run["offered"] for run in side])

    @staticmethod
    def close(theirs, ours):
        return abs(ours - theirs) <= max(DELAY * theirs, DELAY_MS)
