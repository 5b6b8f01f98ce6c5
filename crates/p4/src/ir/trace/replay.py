"""Sends the packets of a capture through BMv2, one at a time, and compares what comes back with another capture.

unshare -n python3 replay.py SWITCH PROGRAM.json SENT.pcap EXPECTED.pcap [COMMANDS CLI]

Run it as root in a network namespace of its own, as above: it makes a pair of interfaces. SWITCH is simple_switch. CLI is simple_switch_CLI, which
fills the tables with COMMANDS. Prints how many packets are the same. If one is not, prints the first and ends with status 1.
"""

import socket
import struct
import subprocess
import sys
import time

ETHER_TYPE = 0x88b6
BEGIN_OF_CAPTURE = bytes.fromhex("4d3cb2a1")


def main(switch, program, sent, expected, commands=None, cli=None):
    for command in ["link add near type veth peer name far", "link set near up", "link set far up", "link set lo up"]:
        subprocess.run(["ip", *command.split()], check=True)
    port = 9090
    run = subprocess.Popen([switch, "--log-level", "off", "--thrift-port", str(port), "-i", "0@far", program],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, run)
        if commands:
            with open(commands) as entries:
                subprocess.run([cli, "--thrift-port", str(port)], stdin=entries, stdout=subprocess.DEVNULL, check=True)
        link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHER_TYPE))
        link.bind(("near", 0))
        link.settimeout(10)
        compare(link, frames(sent), frames(expected))
    finally:
        run.kill()
        run.wait()


def compare(link, sent, expected):
    if len(sent) != len(expected):
        sys.exit(f"the captures have {len(sent)} and {len(expected)} packets")
    for number, (frame, answer) in enumerate(zip(sent, expected), start=1):
        link.send(frame)
        try:
            received = receive(link)[:len(answer)]
        except TimeoutError:
            sys.exit(f"packet {number}: nothing came back")
        if received != answer:
            sys.exit(f"packet {number}: sent {frame.hex()}, expected {answer.hex()}, received {received.hex()}")
    print(f"{len(sent)} packets are the same")


def frames(path):
    """The frames of a pcap file as queuescope writes it: little-endian, in nanoseconds."""
    with open(path, "rb") as capture:
        data = capture.read()
    if data[:4] != BEGIN_OF_CAPTURE:
        sys.exit(f"{path} is not a little-endian pcap file with nanoseconds")
    found, at = [], 24
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        found.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return found


def receive(link):
    """The next frame that came in."""
    while True:
        frame, (_, _, kind, *_) = link.recvfrom(65536)
        if kind != socket.PACKET_OUTGOING:
            return frame


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
