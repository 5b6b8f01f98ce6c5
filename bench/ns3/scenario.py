"""A cell as a scenario of queuescope: the network, flows and parameters of dumbbell.cc. Standard library only."""

import math

PACKET = 1500           # what a full segment counts in a queue
UDP_PACKET = 1000
SEND_SIZE = 64 * 1448   # what a TCP application hands over at once
LINK_HEADER = 2         # what ns-3's point-to-point links add to a packet
SLOT_NS = 10_000_000    # flow i starts in the i-th
# A quantum is a full packet; and the hash of ns-3 puts no two flows into one queue. Flows of UDP are numbered from 2^31 on,
# those of TCP evenly from 0: by 1024 both begin in the first queue, by a prime they do not meet.
QUEUES = 1019
FQ = ['quantum = "1500B"', 'placement = "number"', f"queues = {QUEUES}"]


def splitmix64(x):
    mask = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def start_ns(seed, flow):
    return flow * SLOT_NS + splitmix64((seed * 1_000_003 + flow) % 2**64) % SLOT_NS


def nearest(value):
    """Halves go up, as in C; Python's round takes them to even numbers."""
    return math.floor(value + 0.5)


class Plan:
    """What follows from a cell, as `Plan` in options.h."""

    def __init__(self, cell):
        self.rate = cell["rate_mbps"] * 1_000_000
        self.access_rate = max(10 * self.rate, 100_000_000)
        self.one_way_ns = cell["rtt_ms"] * 1_000_000 // 4
        self.access_one_way_ns = cell["rtt_ms"] * 1_000_000 // 8
        bdp = self.rate * cell["rtt_ms"] / 1e3 / 8 / PACKET
        self.limit = max(4, nearest(cell["buffer_bdp"] * bdp))
        self.ecn_threshold = max(2, math.ceil(bdp / 7))
        self.receive_window = int(self.rate / 8 * 4 + 4 * PACKET * (bdp + self.limit))
        self.udp_rate = 0
        if cell["udp_load"]:
            # The load counts what a packet is on the link; queuescope's rate counts IP packets.
            self.udp_rate = nearest(cell["udp_load"] * self.rate / cell["udp_flows"]
                                    * UDP_PACKET / (UDP_PACKET + LINK_HEADER))


def discipline(cell, plan, seed):
    """The lines of `[link.discipline...]`; each says what differs between ns-3's defaults and queuescope's."""
    dctcp = cell["cc"] == "dctcp"
    draws = draws_of(cell, seed)
    ecn = "true" if dctcp else "false"
    threshold = f'ce-threshold = "{plan.ecn_threshold * PACKET * 8 * 10**9 // plan.rate}ns"'
    if cell["aqm"] == "taildrop":
        return ["[link.discipline.tail-drop]"]
    if cell["aqm"] == "pie":
        return ["[link.discipline.pie]", 'first-update = "0ns"', "derandomise = false", 'burst = "ns3"',
                "short-queue = { packets = { count = 2 } }", "mark-below = 0.1" if dctcp else 'mark-below = "none"', draws]
    if cell["aqm"] in ("codel", "fqcodel"):
        lines = [f"[link.discipline.{'codel' if cell['aqm'] == 'codel' else 'fq-codel'}]", 'flavour = "ns3"',
                 f"ecn = {ecn}"]
        return lines + ([threshold] if dctcp else []) + (FQ if cell["aqm"] == "fqcodel" else [])
    lines = ["[link.discipline.red]", f'mean-packet = "{PACKET}B"', f"ecn = {ecn}", draws]
    if dctcp:
        return lines + ["hard-drop = false", "gentle = false", "weight = 1.0",
                        f"thresholds = {{ min = {plan.ecn_threshold}.0, max = {plan.ecn_threshold}.0 }}"]
    return lines + ["weight = 0.002", "max-probability = 0.02", "thresholds = { min = 5.0, max = 15.0 }"]


def draws_of(cell, seed):
    """Whose random numbers are drawn: ns-3's, or with `draws: own` those of our own generator."""
    return 'draws = "own"' if cell.get("draws") == "own" else f"draws = {{ ns3 = {{ run = {seed} }} }}"


def scenario(cell, seed):
    """The text of the scenario file."""
    plan = Plan(cell)
    lines = [
        f'name = "cell {cell["cell"]}"',
        'profile = "ns3"',
        f"seed = {seed}",
        f'duration = "{cell["duration_s"]}s"',
        f'warmup = "{cell["warmup_s"]}s"',
        "",
        "[stack]",
        f"receive-window = {plan.receive_window}",
        f"send-buffer = {plan.receive_window + 4 * SEND_SIZE}",
        f"application-writes = {SEND_SIZE}",
        "",
        "[link]",
        f'rate = "{plan.rate}bps"',
        f'delay = "{plan.one_way_ns}ns"',
        f'limit = "{plan.limit}packets"',
        f'overhead = "{LINK_HEADER}B"',
        *discipline(cell, plan, seed),
        "",
        "[access]",
        f'rate = "{plan.access_rate}bps"',
        f'delay = "{plan.access_one_way_ns}ns"',
    ]
    for flow in range(cell["flows"] + cell["udp_flows"]):
        lines += ["", "[[flows]]", f'start = "{start_ns(seed, flow)}ns"']
        if flow < cell["flows"]:
            # ns-3's BBR draws the same phases in each flow, by the number of the run.
            bbr = cell["cc"] == "bbr"
            lines.append(f"tcp = {{ bbr = {{ {draws_of(cell, seed)} }} }}" if bbr else f'tcp = "{cell["cc"]}"')
        else:
            lines.append(f'udp = {{ rate = "{plan.udp_rate}bps", packet = "{UDP_PACKET}B" }}')
    return "\n".join(lines) + "\n"
