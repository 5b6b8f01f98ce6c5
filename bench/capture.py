#!/usr/bin/env python3
"""Packets per second of a flood that `queuescope capture` keeps, compared with tcpdump; needs root.

    bench/capture.py [SECONDS [ROUNDS]]

Two network namespaces with a cable between them; packets of 64 bytes as fast as a processor sends them, which the kernel makes of larger
ones. All ways take turns, each for so long in each round; medians of the rounds.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUEUESCOPE = pathlib.Path(os.environ.get("QUEUESCOPE", ROOT / "target/release/queuescope"))
NEAR, FAR = "capture-near", "capture-far"
# Bytes of a packet behind the headers of Ethernet, IPv4 and UDP; how many are made of one; of linux/udp.h.
PAYLOAD, PACKETS, SOL_UDP, UDP_SEGMENT = 22, 64, 17, 103

WAYS = {
    "pcapng": ["capture", "far0", "-o", "{folder}/trace.pcapng"],
    "folder": ["capture", "far0", "--log", "{folder}/log"],
    "tcpdump": ["tcpdump", "-i", "far0", "-Q", "in", "-s", "128", "-B", "32768", "-n", "-w", "{folder}/trace.pcap"],
}
# The texts before the numbers of packets that were kept and that the kernel dropped.
SAYS = [(r"packets? of far0 captured", r"packets? for which the kernel had no room"),
        (r"packets? captured", r"packets? dropped by kernel")]


def number(text, said):
    """The number before a text, or nothing if the text is missing."""
    found = re.search(rf"([\d,]+) {text}", said)
    return int(found[1].replace(",", "")) if found else 0


def run(*words):
    subprocess.run(words, check=True, text=True, capture_output=True)


def connect(near, far):
    """Makes two network namespaces with a cable between them, near0 to far0."""
    for name in (near, far):
        run("ip", "netns", "add", name)
    run("ip", "-n", near, "link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", far)
    for name, device, address in [(near, "near0", "10.9.0.1/24"), (far, "far0", "10.9.0.2/24")]:
        run("ip", "-n", name, "addr", "add", address, "dev", device)
        run("ip", "-n", name, "link", "set", device, "up")
        run("ip", "-n", name, "link", "set", "lo", "up")


def within(name, *words, **options):
    return subprocess.Popen(["ip", "netns", "exec", name, *map(str, words)], **options)


def flood(seconds):
    """Sends in the network namespace of this process; returns the packets per second."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(SOL_UDP, UDP_SEGMENT, PAYLOAD)
    sender.connect(("10.9.0.2", 7000))
    many, sent, end = bytes(PAYLOAD * PACKETS), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        sent += sender.send(many) // PAYLOAD
    print(sent)


def measure(way, seconds):
    """Packets per second that were sent, packets per second that were kept, and the share of passing packets that was dropped."""
    with tempfile.TemporaryDirectory() as folder:
        words = [word.format(folder=folder) for word in WAYS[way]]
        if way != "tcpdump":
            words.insert(0, QUEUESCOPE)
        watcher = within(FAR, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        sender = within(NEAR, sys.executable, __file__, "flood", seconds, stdout=subprocess.PIPE, text=True)
        sent = int(sender.communicate()[0])
        time.sleep(0.5)
        watcher.send_signal(signal.SIGINT)
        out, said = watcher.communicate(timeout=120)
    if watcher.returncode:
        sys.exit(out + said)
    kept, dropped = (number(text, out + said) for text in SAYS[way == "tcpdump"])
    return sent / seconds, kept / seconds, dropped / max(kept + dropped, 1)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    try:
        connect(NEAR, FAR)
        for name, device in [(NEAR, "near0"), (FAR, "far0")]:
            run("ip", "netns", "exec", name, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off",
                "tx-udp-segmentation", "off")
        # No process reads the packets: they are discarded early, and no answer is sent.
        reader = within(FAR, sys.executable, "-c", "import socket, time\ns = socket.socket(2, 2)\n"
                        "s.setsockopt(1, 8, 1)\ns.bind(('10.9.0.2', 7000))\ntime.sleep(3600)")
        rows_by_way = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way in WAYS:
                rows_by_way[way].append(measure(way, seconds))
        print(f"packets of 64 bytes, {seconds:g} s, medians of {rounds}\n\nway       sent/s    kept/s   dropped by the kernel")
        for way, rows in rows_by_way.items():
            sent, kept, dropped = map(statistics.median, zip(*rows))
            print(f"{way:8} {sent / 1e6:5.2f} M   {kept / 1e6:5.2f} M   {dropped:6.1%}")
        reader.terminate()
    finally:
        for name in (NEAR, FAR):
            subprocess.run(["ip", "netns", "del", name], check=False)


if __name__ == "__main__":
    if sys.argv[1:2] == ["flood"]:
        flood(float(sys.argv[2]))
    else:
        main()
