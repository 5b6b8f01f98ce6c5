#!/usr/bin/env python3
"""A fleet for an hour of real time: memory and files must not grow without end; needs root.

    bench/hour.py [MINUTES]     at least 4

A coordinator and an agent in a network namespace, and a sender in another: 5000 packets a second in every other half second. A trigger fires
each second, and each second there is a cut and a question. The agent keeps 4 MB of volumes, the coordinator 500 alerts. Prints memory and
files each minute, without the audit log, which begins a new file at 64 MB and keeps four. Exit status 1 if the largest of the last quarter is more than a tenth above the largest of the second quarter.
"""

import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

import agent as shared
from agent import command, connect, memory, says, start, within

shared.NEAR, shared.FAR = "hour-near", "hour-far"
RATE = 5000


def send(seconds):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    begun = time.monotonic()
    while (now := time.monotonic() - begun) < seconds:
        if now % 1 < 0.5:
            for _ in range(RATE // 100):
                sender.sendto(bytes(200), ("10.9.0.2", 7000))
        time.sleep(0.01)


def size(folder):
    files = (path for path in pathlib.Path(folder).rglob("*") if path.is_file() and not path.name.startswith("audit"))
    return sum(path.stat().st_size for path in files)


def measure(minutes, folder):
    command(folder, "coordinator", "init", "home", "--name", "localhost")
    coordinator = start(folder, "coordinator", "run", "home", "--keep-alerts", "500", "--lease", "1s")
    says(coordinator, "listens on")
    token = command(folder, "fleet", "invite", "host", "--credentials", "home/admin")
    command(folder, "fleet", "join", token, "--coordinator", "localhost:7401", "--credentials", "me")
    host = start(folder, "agent", "far0", "--log", "log", "--credentials", "me", "--memory", "200MB", "--keep-size", "4MB",
                 "--aggregate", "n=count", "--trigger", "busy=n>0@10ms/100ms")
    says(host, "attached")
    sender = within(shared.NEAR, sys.executable, __file__, "send", 60 * minutes)
    rows, begun, failed = [], time.monotonic(), 0
    print("minute   coordinator        agent         home          log   alerts")
    for minute in range(1, minutes + 1):
        while time.monotonic() - begun < 60 * minute:
            second = time.monotonic()
            try:
                cut = command(folder, "fleet", "cut", "--json", "--within", "400ms", "--credentials", "home/admin")
                assert '"void":null' in cut.replace(" ", ""), cut
                command(folder, "fleet", "query", "--select", "count", "--group", "src_port", "--credentials", "home/admin")
            except (subprocess.CalledProcessError, AssertionError) as error:
                failed += 1
                print(f"minute {minute}: {error} {getattr(error, 'stderr', '')}")
            time.sleep(max(0, 1 - (time.monotonic() - second)))
        alerts = command(folder, "fleet", "alerts", "--credentials", "home/admin").splitlines()
        last = int(alerts[-1].split('"number":')[1].split(",")[0]) if alerts else 0
        row = [memory(coordinator.pid), memory(host.pid), size(f"{folder}/home"), size(f"{folder}/log")]
        rows.append(row)
        print(f"{minute:6} " + " ".join(f"{value / 1e6:9.1f} MB" for value in row) + f" {last:8}", flush=True)
    sender.wait()
    for process in (host, coordinator):
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    quarter = len(rows) // 4
    largest = [[max(row[column] for row in rows[part * quarter:(part + 1) * quarter]) for column in range(4)] for part in (1, 3)]
    grows = [name for name, before, after in zip(("coordinator", "agent", "home", "log"), *largest) if after > 1.1 * before]
    print(f"{failed} failed; " + (f"grows: {', '.join(grows)}" if grows else "nothing grows"))
    return bool(failed or grows)


def main():
    minutes = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    if minutes < 4:
        sys.exit("bench/hour.py compares quarters of the time: give at least 4 minutes")
    near, far = shared.NEAR, shared.FAR
    try:
        connect(near, far)
        with tempfile.TemporaryDirectory() as folder:
            sys.exit(measure(minutes, folder))
    finally:
        for name in (near, far):
            subprocess.run(["ip", "netns", "del", name], check=False)


if sys.argv[1:2] == ["send"]:
    send(float(sys.argv[2]))
else:
    main()
