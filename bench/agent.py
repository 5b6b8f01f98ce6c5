#!/usr/bin/env python3
"""What an agent of a fleet costs its host: idle, and at a steady rate of packets; needs root.

    bench/agent.py [SECONDS [RATE [ROUNDS]]]

A coordinator and an agent in a network namespace, and a sender in another, with a cable between them. Processor time is that of the agent's
process, of one core; what the kernel spends for its ring is counted with the sender's packets and is not in it.
"""

import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from capture import NEAR, FAR, PAYLOAD, QUEUESCOPE, connect, number, within

TICK = os.sysconf("SC_CLK_TCK")
# Packets that the sender hands over at once.
BURST = 50


def send(seconds, rate):
    """Sends packets of 64 bytes at a rate, in the network namespace of this process."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(("10.9.0.2", 7000))
    packet, begun, sent = bytes(PAYLOAD), time.monotonic(), 0
    while (now := time.monotonic() - begun) < seconds:
        if sent < now * rate:
            for _ in range(BURST):
                sender.send(packet)
            sent += BURST
        else:
            time.sleep(0.0002)
    print(sent)


def process_time(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory(pid):
    """Bytes of memory that only this process has: of pages that others have too, its share."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss:\s+(\d+) kB", text, re.M)[1]) * 1024


def command(folder, *words):
    return subprocess.run(["ip", "netns", "exec", FAR, str(QUEUESCOPE), *words], cwd=folder, check=True, text=True,
                          capture_output=True).stdout.strip()


def start(folder, *words):
    return within(FAR, QUEUESCOPE, *words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def says(process, words):
    for line in process.stderr:
        if words in line:
            return
    sys.exit(f"it ended without '{words}'")


def measure(seconds, rate):
    """Cores and bytes while idle, cores at the rate, and the packets that were sent, recorded and lost."""
    with tempfile.TemporaryDirectory() as folder:
        command(folder, "coordinator", "init", "home", "--name", "localhost")
        coordinator = start(folder, "coordinator", "run", "home", "--listen", "127.0.0.1:7401")
        says(coordinator, "listens on")
        token = command(folder, "fleet", "invite", "host", "--credentials", "home/admin")
        command(folder, "fleet", "join", token, "--coordinator", "localhost:7401", "--credentials", "me")
        agent = start(folder, "agent", "far0", "--log", "log", "--credentials", "me")
        says(agent, "attached")
        time.sleep(2)
        before = process_time(agent.pid)
        time.sleep(seconds)
        idle, idle_memory = (process_time(agent.pid) - before) / seconds, memory(agent.pid)
        before = process_time(agent.pid)
        sender = within(NEAR, sys.executable, __file__, "send", seconds, rate, stdout=subprocess.PIPE, text=True)
        sent = int(sender.communicate()[0])
        time.sleep(1)
        busy, busy_memory = (process_time(agent.pid) - before) / seconds, memory(agent.pid)
        agent.send_signal(signal.SIGTERM)
        out, said = agent.communicate(timeout=120)
        kept, lost = (number(text, out + said) for text in (r"packets? of far0 captured",
                                                             r"packets? for which the kernel had no room"))
        coordinator.send_signal(signal.SIGTERM)
        coordinator.communicate(timeout=60)
    return idle, idle_memory, busy, busy_memory, sent / seconds, kept, lost


def main():
    seconds, rate, rounds = (int(word) for word in (sys.argv[1:] + ["10", "100000", "3"][len(sys.argv) - 1:])[:3])
    try:
        connect(NEAR, FAR)
        reader = within(FAR, sys.executable, "-c", "import socket, time\ns = socket.socket(2, 2)\n"
                        "s.setsockopt(1, 8, 1)\ns.bind(('10.9.0.2', 7000))\ntime.sleep(3600)")
        rows = [measure(seconds, rate) for _ in range(rounds)]
        idle, idle_memory, busy, busy_memory, sent, kept, lost = map(statistics.median, zip(*rows))
        print(f"{seconds} s each, medians of {rounds}\n")
        print(f"idle: {idle:.2%} of a core, {idle_memory / 1e6:.1f} MB")
        print(f"{sent:,.0f} packets a second: {busy:.1%} of a core, {busy_memory / 1e6:.1f} MB; "
              f"{kept:,.0f} packets recorded, {lost:,.0f} lost")
        reader.terminate()
    finally:
        for name in (NEAR, FAR):
            subprocess.run(["ip", "netns", "del", name], check=False)


if __name__ == "__main__":
    if sys.argv[1:2] == ["send"]:
        send(float(sys.argv[2]), float(sys.argv[3]))
    else:
        main()
