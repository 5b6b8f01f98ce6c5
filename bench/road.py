"""A source, a router with a queue before the sink, and a sink, in network namespaces of their own; for scripts beside this."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUEUESCOPE = ROOT / "target/release/queuescope"


def run(*words, **options):
    return subprocess.run(list(map(str, words)), check=True, text=True, capture_output=True, **options).stdout


class Road:
    """Such a row; the queue is a TBF of these `words`."""

    def __init__(self, *words, whole=True):
        self.names = [f"road-{name}" for name in ("source", "router", "sink")]
        self.words, self.whole = words, whole

    def __enter__(self):
        source, router, sink = self.names
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "-n", source, "link", "add", "s0", "type", "veth", "peer", "name", "r0", "netns", router)
        run("ip", "-n", router, "link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", sink)
        for name, device, address in [
            (source, "s0", "10.8.0.1/24"), (router, "r0", "10.8.0.2/24"),
            (router, "near0", "10.9.0.1/24"), (sink, "far0", "10.9.0.2/24"),
        ]:
            run("ip", "-n", name, "addr", "add", address, "dev", device)
            run("ip", "-n", name, "link", "set", device, "up")
            if not self.whole:
                run("ip", "netns", "exec", name, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off")
        run("ip", "-n", source, "route", "add", "default", "via", "10.8.0.2")
        run("ip", "-n", sink, "route", "add", "default", "via", "10.9.0.1")
        run("ip", "netns", "exec", router, "sysctl", "-q", "net.ipv4.ip_forward=1")
        for name in (source, sink):
            run("ip", "netns", "exec", name, "sysctl", "-q", "net.ipv4.tcp_ecn=1")
        run("tc", "-n", router, "qdisc", "replace", "dev", "near0", "root", "tbf", *self.words)
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def start(self, name, *words, program=QUEUESCOPE):
        command = ["ip", "netns", "exec", f"road-{name}", str(program), *map(str, words)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
