"""Threads, signals, forks and memory of the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import queuescope as qs

#: A simulation that takes minutes.
LONG: dict[str, Any] = {"duration": "10000s", "link": {"rate": "1gbps"}, "flows": [{"name": "bulk", "tcp": "cubic", "count": 10}]}


def test_two_threads_at_once() -> None:
    """Each thread waits in its progress function for the other one: only if both calls run at once do they meet."""
    meeting = threading.Barrier(2, timeout=60)
    reports: dict[str, dict[str, Any]] = {}

    def analyse(rate: str) -> None:
        met = False

        def progress(_bytes: int, _packets: int) -> None:
            nonlocal met
            if not met:
                met = True
                meeting.wait()

        reports[rate] = qs.analyze("demo.pcap.xz", rate=rate, progress=progress).to_dict()

    threads = [threading.Thread(target=analyse, args=(rate,)) for rate in ("6mbps", "20mbps")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rate, report in reports.items():
        assert report == qs.analyze("demo.pcap.xz", rate=rate).to_dict()
    assert set(reports) == {"6mbps", "20mbps"}


def test_other_threads_run_meanwhile() -> None:
    """A progress function that raises ends the call, after another thread has run."""
    ran = threading.Event()
    other = threading.Thread(target=ran.set)

    class Enough(Exception):
        pass

    def progress(_done: int, _packets: int) -> None:
        if not other.is_alive() and not ran.is_set():
            other.start()
        if ran.is_set():
            raise Enough

    with pytest.raises(Enough):
        qs.simulate(LONG, progress=progress)
    other.join()


@pytest.mark.parametrize("call", ["simulate", "sweep", "own"])
def test_ctrl_c_stops_it(call: str) -> None:
    calls = {
        "simulate": "qs.simulate(LONG, progress=begun)",
        "sweep": "qs.sweep(LONG, {'link.rate': ['1gbps', '2gbps']}, progress=begun, duration='3s')",
        "own": "qs.simulate(LONG, disciplines={'bottleneck': Fifo}, progress=begun)",
    }
    script = f"""
import sys
import queuescope as qs
LONG = {LONG!r}
class Fifo(qs.Discipline):
    def __init__(self): self.queue = []
    def enqueue(self, packet, now): self.queue.append(packet)
    def dequeue(self, now): return self.queue.pop(0)
def begun(done, packets):
    print("begun", flush=True)
try:
    {calls[call]}
except KeyboardInterrupt:
    sys.exit(42)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    process.stdout.close()
    assert process.wait(timeout=120) == 42


def test_progress_is_called() -> None:
    calls: list[tuple[int, int]] = []
    report = qs.analyze("demo.pcap.xz", rate="20mbps", progress=lambda done, packets: calls.append((done, packets)))
    assert calls[-1] == (os.path.getsize("demo.pcap.xz"), report.totals["packets"])
    assert qs.analyze("demo.pcap.xz", rate="20mbps", progress=True).to_dict() == report.to_dict()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork is not installed")
def test_a_forked_process_can_use_it() -> None:
    expected = qs.analyze("demo.pcap.xz", rate="20mbps").totals["packets"]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if qs.analyze("demo.pcap.xz", rate="20mbps").totals["packets"] == expected else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert qs.analyze("demo.pcap.xz", rate="20mbps").totals["packets"] == expected


def resident() -> int:
    """The resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="/proc is not installed")
def test_memory_is_flat() -> None:
    """A leak of a kilobyte a call, and less, would be seen: the calls after the first hundreds need no more than these."""
    import lzma

    packets = lzma.decompress(Path("demo.pcap.xz").read_bytes())[:12_000]
    Path("small.pcap").write_bytes(packets)

    def calls(count: int) -> None:
        for _ in range(count):
            report = qs.analyze("small.pcap", rate="1mbps", packets=True)
            _ = report.bursts.to_dict(), report.to_dict(), report.packets
            with pytest.raises(qs.InvalidValueError):
                qs.analyze("small.pcap", rate="nothing")

    calls(300)
    before = resident()
    calls(1000)
    assert resident() - before < 4 << 20

