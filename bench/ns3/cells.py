#!/usr/bin/env python3
"""The cells of the comparison with ns-3: writes cells.csv, the same bytes every time.

    cells.py           write cells.csv
    cells.py --check   fail if cells.csv is not what this program writes, or misses a pair of values

A cell is a discipline, a congestion control, a number of flows, a rate, a round-trip time and a buffer. Of the full
product of 1350 at 10 and 100 Mb/s, a greedy choice takes the cell that holds the most pairs of values not yet seen;
once every pair has been, the most triples. So any two values meet, whatever the third. Six cells at 1 Gb/s are chosen
alike among themselves (at 10 ms only: ns-3's time for a packet grows with the window), and eight have constant-rate
UDP at 1.25 times the bottleneck, three of them with a TCP flow.

The last 56 cells have the eight further congestion controls of ns-3, seven cells each: four at tail drop, where windows
grow largest, and three at other disciplines. Flows, rate, round-trip time and buffer are chosen as above.
"""

import csv
import functools
import io
import itertools
import pathlib
import sys

FILE = pathlib.Path(__file__).with_name("cells.csv")

AQMS = ["pie", "codel", "red", "fqcodel", "taildrop"]
CONTROLS = ["newreno", "cubic", "vegas", "bbr", "dctcp"]
FLOWS = [1, 10, 50]
RTTS_MS = [10, 40, 100]
BUFFERS_BDP = [0.5, 1, 4]

FURTHER_CONTROLS = ["hstcp", "scalable", "htcp", "bic", "hybla", "yeah", "veno", "westwood"]
PATHS = [[1, 10], [10, 100], RTTS_MS, BUFFERS_BDP]     # flows, rate, round-trip time and buffer of their cells

MAIN_CELLS = 66
FAST_CELLS = 6

# Simulated seconds and those not counted, by rate: some forty thousand packets or more that count, and few enough in all for
# ns-3, which needs up to two minutes for a run.
SECONDS = {10: (60, 10), 100: (12, 5), 1000: (3, 1)}

COLUMNS = ["cell", "aqm", "cc", "flows", "rate_mbps", "rtt_ms", "buffer_bdp", "udp_load", "udp_flows",
           "duration_s", "warmup_s"]


def spread(number):
    """splitmix64: an order without a pattern, to break ties by."""
    x = (number + 0x9E3779B97F4A7C15) % 2**64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
    return x ^ (x >> 31)


def tuples(values, width):
    """Every combination of `width` factors with the values that `values` gives them."""
    return set(itertools.combinations(enumerate(values), width))


class Seen:
    """The pairs and triples of values that the chosen rows hold."""

    def __init__(self):
        self.pairs, self.triples = set(), set()

    def take_best(self, rows):
        """Takes from `rows` the one with the most new pairs, then the most new triples."""
        best = max(rows, key=lambda row: (len(tuples(row, 2) - self.pairs), len(tuples(row, 3) - self.triples)))
        rows.remove(best)
        self.pairs |= tuples(best, 2)
        self.triples |= tuples(best, 3)
        return best


def product(factors):
    """Every row of the product of `factors`, in an order without a pattern."""
    return [row for _, row in sorted(enumerate(itertools.product(*factors)), key=lambda numbered: spread(numbered[0]))]


def cover(factors, count):
    """`count` rows of the product of `factors`, chosen greedily: new pairs first, then new triples."""
    rows, seen = product(factors), Seen()
    return [seen.take_best(rows) for _ in range(count)]


def has_room(row):
    """Whether the path, with the buffer at tail drop, holds ten packets of each flow. With less, a loss may leave YeAH a
    single segment in flight: then ns-3.37's threshold wraps to almost 2^32 bytes, the sender fills the receive window, and
    ns-3 crashes."""
    aqm, _, flows, rate, rtt_ms, buffer = row
    return rate * rtt_ms / 12 * (1 + buffer * (aqm == "taildrop")) >= 10 * flows


def further_rows():
    """Seven rows of each further control. Which of the four disciplines beside tail drop it leaves out changes from
    control to control."""
    seen, chosen = Seen(), []
    for number, control in enumerate(FURTHER_CONTROLS):
        others = [aqm for place, aqm in enumerate(AQMS[:4]) if place != number % 4]
        for aqm in ["taildrop", others[0], "taildrop", others[1], "taildrop", others[2], "taildrop"]:
            rows = [row for row in product([[aqm], [control], *PATHS]) if row not in chosen]
            if control == "yeah":
                rows = [row for row in rows if has_room(row)]
            chosen.append(seen.take_best(rows))
    return chosen


def missing_pairs(factors, rows):
    wanted = {pair for row in itertools.product(*factors) for pair in tuples(row, 2)}
    return wanted - {pair for row in rows for pair in tuples(row, 2)}


def main_factors():
    return [AQMS, CONTROLS, FLOWS, [10, 100], RTTS_MS, BUFFERS_BDP]


@functools.cache
def cells():
    rows = cover(main_factors(), MAIN_CELLS)
    rows += cover([AQMS, CONTROLS, FLOWS, [1000], [10], BUFFERS_BDP], FAST_CELLS)
    rows = [row + (0, 0) for row in rows]
    rows += [(aqm, "none", 0, rate, 40, 1, 1.25, 10) for aqm, rate in zip(AQMS, [10, 100, 10, 100, 10])]
    rows += [(aqm, cc, 1, 10, 40, 1, 1.25, 10) for aqm, cc in
             [("taildrop", "newreno"), ("pie", "cubic"), ("fqcodel", "cubic")]]
    rows += [row + (0, 0) for row in further_rows()]
    return [(number, *row, *SECONDS[row[3]]) for number, row in enumerate(rows, 1)]


def text():
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(cells())
    return out.getvalue()


def main():
    if sys.argv[1:] == ["--check"]:
        missing = missing_pairs(main_factors(), [row[1:7] for row in cells()[:MAIN_CELLS]])
        if missing:
            sys.exit(f"cells.py: pairs that no cell holds: {sorted(missing, key=str)}")
        further = [row[1:] for row in further_rows()]
        missing = missing_pairs([FURTHER_CONTROLS, *PATHS], further)
        if missing:
            sys.exit(f"cells.py: pairs that no cell of the further controls holds: {sorted(missing, key=str)}")
        if FILE.read_text() != text():
            sys.exit(f"cells.py: {FILE} is out of date; run cells.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        FILE.write_text(text())


if __name__ == "__main__":
    main()
