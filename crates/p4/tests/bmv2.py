"""Sends packets through BMv2, one at a time, and compares what comes back.

unshare -n python3 bmv2.py SWITCH PROGRAM.json TRACE [COMMANDS CLI]

Each line of TRACE has the header that is sent and the one that is expected, in hex. Frames have the EtherType 0x88b6. COMMANDS fills tables.
Prints how many packets were the same, and the first that was not.
"""

import socket
import subprocess
import sys
import time

ETHERNET = bytes(12) + b"\x88\xb6"


def main(switch, program, trace, commands=None, cli=None):
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
        link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88b6))
        link.bind(("near", 0))
        link.settimeout(10)
        same = 0
        with open(trace) as lines:
            for number, line in enumerate(lines):
                sent, expected = (bytes.fromhex(part) for part in line.split())
                link.send(ETHERNET + sent)
                answer = receive(link, len(sent))
                if answer != expected:
                    sys.exit(f"packet {number}: sent {sent.hex()}, expected {expected.hex()}, got {answer.hex()}")
                same += 1
        print(f"{same} packets are the same")
    finally:
        run.kill()
        run.wait()


def receive(link, size):
    """The next frame that came in."""
    while True:
        frame, (_, _, kind, *_) = link.recvfrom(2048)
        if kind != socket.PACKET_OUTGOING:
            return frame[len(ETHERNET):len(ETHERNET) + size]


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
