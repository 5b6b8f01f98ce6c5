"""Runs P4air on BMv2 with its control plane, whose clock is that of this script.

unshare -n python3 ageing.py SWITCH PROGRAM.json CLI PLAN.json

PLAN.json has three plans of frames.py, and "idle": the entries of flows without a packet of the second plan. control.py and frames.py are beside this file.
"""

import json
import subprocess
import sys

import control
import frames

PORT = 0
COUNTS = control.COUNTS + ["long_lived_flows"]


def main(switch, program, cli, plan):
    with open(plan) as text:
        plan = json.load(text)
    with frames.started(switch, program, cli, plan["first"]) as links:
        console = control.Switch(cli, 9090, stderr=subprocess.DEVNULL)
        registers = control.Registers(console)
        ended = control.Ended(control.IDLE)
        frames.send(links, plan["first"])
        if control.sweep(registers, ended, PORT, 0.0):
            sys.exit("a flow ended at once")
        check(registers, "before")
        # As a program. The flows are not of port 1.
        run = subprocess.run([sys.executable, control.__file__, "1", "--rounds", "2", "--idle", "0", "--cli", cli], capture_output=True, text=True)
        if run.returncode != 1 or "port 0 has long-lived flows, too" not in run.stderr:
            sys.exit(f"of port 1: status {run.returncode}, {run.stdout}, {run.stderr}")
        frames.send(links, plan["second"])
        early = control.sweep(registers, ended, PORT, control.IDLE - 1)
        removed = control.sweep(registers, ended, PORT, control.IDLE)
        if early or removed != plan["idle"]:
            sys.exit(f"{early} ended early, and {removed} then; expected {plan['idle']}")
        groups = check(registers, "after removal")
        if any(groups[entry] for entry in removed):
            sys.exit(f"not all of the entries {removed} are free: {groups}")
        # What the model expects of these is without removal.
        for frame in plan["third"]["frames"]:
            frame[3:] = [None, None]
        frames.send(links, plan["third"], compares=False)
        groups = check(registers, "again")
        again = [entry for entry in removed if groups[entry]]
        if not again:
            sys.exit(f"none of the entries {removed} has a flow again: {groups}")
        console.cli.stdin.close()
        console.cli.wait()
        # As a program, which takes flows for ended at once here: two rounds remove all.
        run = subprocess.run([sys.executable, control.__file__, str(PORT), "--rounds", "2", "--idle", "0", "--cli", cli], capture_output=True, text=True)
        if (run.returncode, run.stdout) != (0, f"removed {sum(1 for group in groups if group)} flows\n"):
            sys.exit(f"status {run.returncode}, {run.stdout}, {run.stderr}")
        print(f"{len(removed)} of {len(groups)} entries became free, and {len(again)} of them have flows again")


def check(registers, when):
    """The group of each entry. The counters must be those of the entries, and the room what the counters leave."""
    groups = registers.all("flow_group")
    counts = [registers.read(name, PORT) for name in COUNTS]
    found = [groups.count(number) for number in range(1, 5)]
    if counts != found + [sum(found)]:
        sys.exit(f"{when}: the counters are {counts}, and the entries have {found}")
    firsts = [control.FIRST_LONG_LIVED, *(registers.read(name, PORT) for name in control.BOUNDS), control.QUEUES]
    each = counts[-1] // control.QUEUES + 1
    rooms = [(firsts[number + 1] - firsts[number]) * each - found[number] - 1 & 0xffffffff for number in range(4)]
    if rooms != [registers.read(name, PORT) for name in control.ROOMS]:
        sys.exit(f"{when}: the rooms are {[registers.read(name, PORT) for name in control.ROOMS]}, expected {rooms}")
    return groups


main(*sys.argv[1:])
