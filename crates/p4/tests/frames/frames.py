"""Sends whole frames through BMv2, one at a time, and compares what leaves it, and the words of its registers afterwards.

unshare -n python3 frames.py SWITCH PROGRAM.json CLI PLAN.json

PLAN.json has "commands" for simple_switch_CLI, "ports", "fences" (a frame to each port, which no program changes), "rounds", "frames" (each with its port, its bytes, the
port by whose queue it goes although it may be dropped behind it, and where it is expected with which bytes), and "registers" with the words that are expected. After each frame, fences pass the switch, the first
by the same queue: each queue has a thread, so that only this one shows that the frame has been processed behind it. A copy goes back by the queue of port 0; so "rounds" has the ports of further fences: by that queue, and before the queues again.
"""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import time

ETHER_TYPE = 0x88b6
PATIENCE = 60


def main(switch, program, cli, plan):
    with open(plan) as text:
        plan = json.load(text)
    with started(switch, program, cli, plan) as links:
        send(links, plan)
        compare_registers(cli, plan["registers"])
        print(f"{len(plan['frames'])} frames and {len(plan['registers'])} registers are the same")


@contextlib.contextmanager
def started(switch, program, cli, plan):
    """Runs the switch with its tables filled. Gives the links to its ports."""
    # Two processors would deliver the frames that they send in any order.
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processors[os.getpid() % len(processors)]})
    # The kernel sends nothing by itself.
    for which in ["all", "default"]:
        with open(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6", "w") as setting:
            setting.write("1")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for port in plan["ports"]:
        for command in [f"link add near{port} mtu 2000 type veth peer name far{port} mtu 2000", f"link set near{port} up", f"link set far{port} up"]:
            subprocess.run(["ip", *command.split()], check=True)
    interfaces = [word for port in plan["ports"] for word in ["-i", f"{port}@far{port}"]]
    run = subprocess.Popen([switch, "--log-level", "off", "--thrift-port", "9090", *interfaces, program, "--", "--priority-queues", "8"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(9090, run)
        said = console(cli, plan["commands"])
        if "Error" in said or "Invalid" in said:
            sys.exit(f"the switch refuses a command: {said}")
        yield {port: bound(f"near{port}") for port in plan["ports"]}
    finally:
        run.kill()
        run.wait()


def bound(name):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHER_TYPE))
    link.bind((name, ETHER_TYPE))
    link.setblocking(False)
    return link


def send(links, plan, compares=True):
    """Sends the frames. If they are compared, ends at the first that leaves otherwise."""
    poll = select.epoll()
    by_descriptor = {link.fileno(): port for port, link in links.items()}
    for link in links.values():
        poll.register(link, select.EPOLLIN)
    fences = [bytes.fromhex(fence) for fence in plan["fences"]]
    for number, (port, frame, by, to, expected) in enumerate(plan["frames"]):
        links[port].send(bytes.fromhex(frame))
        left = []
        for fence in [by, *plan["rounds"]]:
            marked = fences[fence] + number.to_bytes(4, "big")
            links[port].send(marked)
            left += until(poll, by_descriptor, links, fence, marked)
        found = [(port, frame.hex()) for port, frame in left]
        wanted = [] if to is None else [(to, expected)]
        if compares and found != wanted:
            sys.exit(f"frame {number}, to port {port}: {frame}\nleft as {found}\nexpected {wanted}")


def until(poll, by_descriptor, links, port, marked):
    """What comes out before the fence does, with its port."""
    left = []
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        came = False
        for descriptor, _ in poll.poll(1):
            here = by_descriptor[descriptor]
            while (frame := receive(links[here])) is not None:
                if frame == marked and here == port:
                    came = True
                else:
                    left.append((here, frame))
        if came:
            # What left before it is there, on other ports, too.
            for here, link in links.items():
                while (frame := receive(link)) is not None:
                    left.append((here, frame))
            return left
    sys.exit(f"the fence to port {port} did not come; {[(here, frame.hex()) for here, frame in left]} did")


def receive(link):
    try:
        return link.recv(65536)
    except BlockingIOError:
        return None


def console(cli, commands):
    done = subprocess.run([cli, "--thrift-port", "9090"], input=commands, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True)
    return done.stdout


def registers(cli, names):
    """The words of registers."""
    said = console(cli, "".join(f"register_read {name}\n" for name in names))
    found = {}
    for line in said.splitlines():
        name, is_there, words = line.removeprefix("RuntimeCmd: ").partition("= ")
        if is_there:
            found[name] = [int(word) for word in words.split(",")]
    for name in names:
        if name not in found:
            sys.exit(f"the register {name} cannot be read")
    return found


def compare_registers(cli, expected):
    found = registers(cli, expected)
    for name, words in expected.items():
        differ = [(at, word, wanted) for at, (word, wanted) in enumerate(zip(found[name], words)) if word != wanted]
        if differ or len(found[name]) != len(words):
            sys.exit(f"{name}: of {len(found[name])} words (expected {len(words)}), index, word and expected word differ: {differ[:10]}")


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


if __name__ == "__main__":
    main(*sys.argv[1:])
