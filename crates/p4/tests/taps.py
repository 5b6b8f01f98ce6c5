"""Sends frames to BMv2 as taps before and behind a router would, and compares what comes to the collector with what is expected.

unshare -n python3 taps.py SWITCH PROGRAM.json COMMANDS CLI IN.pcap OUT.pcap EXPECTED FATES

SWITCH and CLI are simple_switch and simple_switch_CLI, and COMMANDS fills the tables: port 1 has a tap of a link into the router, port 4 one of the link out
of it, and port 5 the collector. Ten frames of IN.pcap come to port 1, and then ten of OUT.pcap to port 4, and so on. EXPECTED are the numbers, with commas, of the frames of
OUT.pcap that are reported, in this order. FATES are the words of the register of fates after all of them.
"""

import os
import socket
import struct
import subprocess
import sys
import time

PORTS = {1: "in", 4: "out", 5: "collector"}
ETHER_TYPE = 0x88b6
# Until then, the switch has to have processed what was sent.
PATIENCE = 60
# What BMv2 receives at once.
CHUNK = 10


def main(switch, program, commands, cli, sent_in, sent_out, expected, fates):
    # The kernel sends nothing by itself.
    for which in ["all", "default"]:
        with open(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6", "w") as setting:
            setting.write("1")
    for name in PORTS.values():
        # A report is longer than the frame in it.
        for command in [f"link add {name} mtu 2000 type veth peer name far-{name} mtu 2000", f"link set {name} up", f"link set far-{name} up"]:
            subprocess.run(["ip", *command.split()], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    interfaces = [word for port, name in PORTS.items() for word in ["-i", f"{port}@far-{name}"]]
    run = subprocess.Popen([switch, "--log-level", "off", "--thrift-port", "9090", *interfaces, program],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    control = None
    try:
        wait_for(9090, run)
        with open(commands) as entries:
            subprocess.run([cli, "--thrift-port", "9090"], stdin=entries, stdout=subprocess.DEVNULL, check=True)
        control = subprocess.Popen([cli, "--thrift-port", "9090"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        collector, links = bound("collector", ETHER_TYPE), [bound(name, 0) for name in ["in", "out"]]
        came, out = frames(sent_in), frames(sent_out)
        for first in range(0, len(came), CHUNK):
            for link, side, before in [(links[0], came, first), (links[1], out, first + len(came[first:first + CHUNK]))]:
                chunk = side[first:first + CHUNK]
                for frame in chunk:
                    link.send(frame)
                found = await_fates(control, before + first + len(chunk))
        if found != fates:
            sys.exit(f"the fates are {found}, expected {fates}")
        compare(collector, [out[int(number)] for number in expected.split(",")])
    finally:
        for process in [control, run]:
            if process:
                process.kill()
                process.wait()


def bound(name, ether_type):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ether_type))
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    link.bind((name, ether_type))
    link.settimeout(PATIENCE)
    return link


def await_fates(control, count):
    """Returns the register when it counts as many packets."""
    deadline = time.monotonic() + PATIENCE
    found = "unknown"
    while time.monotonic() < deadline:
        control.stdin.write("register_read MainIngress.fates\n")
        control.stdin.flush()
        line = ""
        while "fates=" not in line:
            line = control.stdout.readline()
            if not line:
                sys.exit("the command line of the switch ended")
        found = line.split("fates=")[1].replace(" ", "").strip()
        if sum(map(int, found.split(","))) >= count:
            return found
    sys.exit(f"the fates are {found}, expected {count} packets")


def compare(link, expected):
    for number, frame in enumerate(expected, start=1):
        try:
            received = link.recv(65536)
        except TimeoutError:
            sys.exit(f"report {number} did not come")
        delay, estimate = struct.unpack_from(">II", received, 14)
        if received[22:22 + len(frame)] != frame:
            sys.exit(f"report {number} has {received.hex()}, expected {frame.hex()}")
        if received[12:14] != ETHER_TYPE.to_bytes(2, "big") or not 0 < delay < 2_000_000_000 or estimate >= 1 << 24:
            sys.exit(f"report {number}: {received[:22].hex()}")
    print(f"{len(expected)} reports are the same")


def frames(path):
    """The frames of a pcap file as queuescope writes it: little-endian, in nanoseconds."""
    with open(path, "rb") as capture:
        data = capture.read()
    found, at = [], 24
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        found.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return found


def wait_for(port, run):
    """Returns when the switch answers on its control port."""
    for _ in range(600):
        if run.poll() is not None:
            sys.exit(f"the switch ended with status {run.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("the switch did not start")


main(*sys.argv[1:])
