#!/usr/bin/env python3
"""How often the behaviour of a flow gets a name, and the right one, with the kernel's TCP through `queuescope link`, as root.

    bench/behaviour.py FOLDER

Each congestion control of the simulator (the kernel's own, or loaded into it by `link`) is alone at two round-trip times at one rate; then there are mixes
of two and three flows, half of them with one control, and scalable controls in a queue that marks. Each flow lasts 360 of the longest round-trip time.
The results of a cell are stored in the folder under a hash of its scenario, so that a run continues where it was stopped.
"""

import collections
import hashlib
import json
import pathlib
import random
import subprocess
import sys

from road import QUEUESCOPE

CONTROLS = [
    "newreno", "cubic", "bic", "hstcp", "scalable", "htcp", "hybla", "yeah", "illinois", "veno", "westwood", "dctcp",
    "prague", "vegas", "lola", "bbr", "bbr3",
]
RTTS = [30, 80]
MEGABITS = 30
# Round-trip times that a flow lasts, and those that it must have been measured for; slow start is not among them.
LENGTH, LEAST = 360, 270
NAMES = ["loss-driven", "delay-based", "model-based", "scalable", "unresponsive", "too little evidence"]


def truth(control, marked):
    """How a control behaves, with more marks than drops or without."""
    if control in ("vegas", "lola"):
        return "delay-based"
    if control in ("bbr", "bbr3"):
        return "model-based"
    return "scalable" if control in ("dctcp", "prague") and marked else "loss-driven"


def scenario(flows, discipline):
    longest = max(rtt for _, rtt in flows)
    mean = sum(rtt for _, rtt in flows) / len(flows)
    packets = int(MEGABITS * 1000 * mean / (1500 * 8))
    marks = discipline != '"tail-drop"'
    text = f"""format = 1
name = "cell"
duration = "{longest * LENGTH + 2000}ms"

[link]
rate = "{MEGABITS}mbps"
delay = "1ms"
limit = "{2 * packets if marks else packets}packets"
discipline = {discipline}
"""
    for control, rtt in flows:
        ecn = {"dctcp": "\necn = true", "prague": "\necn = true\nl4s = true"}.get(control, "") if marks else ""
        text += f'\n[[flows]]\ntcp = "{control}"\nrtt = "{rtt}ms"{ecn}\nspread = "500ms"\n'
    # A queue that marks is shorter than the shortest tau that would be chosen.
    tau = 'tau = "500us"\n' if marks else ""
    return f'{text}\n[[meters]]\nlink = "bottleneck"\n{tau}'


def cells():
    """Of each cell its kind, its flows (control and round-trip time), and its scenario."""
    for control in CONTROLS:
        for rtt in RTTS:
            yield "alone", [(control, rtt)], '"tail-drop"'
    draws = random.Random(1)
    for number in range(24):
        count, one = draws.choice([2, 3]), draws.choice(CONTROLS)
        flows = [(one if number % 2 else draws.choice(CONTROLS), draws.choice(RTTS)) for _ in range(count)]
        yield "together", flows, '"tail-drop"'
    for control in ("dctcp", "prague"):
        for rtt in RTTS:
            for count in (1, 2):
                yield "marked", [(control, rtt)] * count, '{ codel = { ecn = true, ce-threshold = "1ms" } }'


def run(folder, text):
    """The flows of a cell in order: what the report says of each, or nothing."""
    path = folder / (hashlib.sha256(text.encode()).hexdigest()[:24] + ".json")
    if not path.exists():
        file = folder / "cell.toml"
        file.write_text(text)
        shown = subprocess.run([QUEUESCOPE, "link", file, "--json"], check=True, capture_output=True, text=True).stdout
        lines = {line["kind"]: line for line in map(json.loads, shown.splitlines())}
        culprits = {one["flow"]: one.get("behaviour") for one in lines["summary"]["culprits"][0]["flows"]}
        part = path.with_suffix(".part")
        # Each group has one flow; flows are in the order in which they began.
        names = {flow["group"]: flow["name"] for flow in lines["sim"]["flows"]}
        part.write_text(json.dumps([culprits.get(names[group["name"]]) for group in lines["sim"]["groups"]]))
        part.rename(path)
    return json.loads(path.read_text())


def row(name, judged):
    named = [one for one in judged if one[3] != NAMES[-1]]
    wrong = [one for one in named if one[3] != one[2]]
    percent = 100 * len(named) / max(1, len(judged))
    print(f"| {name} | {len(judged)} | {percent:.0f} | {100 * len(wrong) / max(1, len(named)):.1f} |")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    judged, short, light = [], 0, 0
    for kind, flows, discipline in cells():
        for (control, rtt), behaviour in zip(flows, run(folder, scenario(flows, discipline)), strict=True):
            if behaviour is None:
                light += 1
            elif behaviour["rtt_ns"] and behaviour["round_trips"] < LEAST:
                short += 1
            else:
                marked = behaviour["marked_share"] * behaviour["round_trips"] > behaviour["drops"]
                judged.append((kind, control, truth(control, marked), behaviour["name"]))
                if behaviour["name"] not in (judged[-1][2], NAMES[-1]):
                    print(f"{control} at {rtt} ms ({kind}: {flows}): {judged[-1][2]}, named {behaviour['name']}", file=sys.stderr)
    print(f"{len(judged)} flows; {short} flows were too short, and {light} are not among the culprits.\n")
    counts = collections.Counter((really, name) for _, _, really, name in judged)
    print(f"| really \\ named | {' | '.join(NAMES)} |\n| --- |{' --: |' * len(NAMES)}")
    for really in NAMES[:4]:
        print(f"| {really} | {' | '.join(str(counts[really, name]) for name in NAMES)} |")
    print("\n| flows | number | named (%) | wrong (% of the names) |\n| --- | --: | --: | --: |")
    for kind in ("alone", "together", "marked"):
        row(kind, [one for one in judged if one[0] == kind])
    for control in CONTROLS:
        row(control, [one for one in judged if one[1] == control])
    row("all", judged)


main()
