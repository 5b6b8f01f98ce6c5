"""Simulations, sweeps, and disciplines that are stepped or written in Python."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import queuescope as qs

NETWORK: dict[str, Any] = {
    "duration": "3s",
    "link": {"rate": "10mbps", "delay": "10ms", "limit": "100kB"},
    "flows": [{"name": "download", "tcp": "cubic"}, {"name": "call", "udp": {"rate": "80kbps", "packet": "200B"}}],
}


class Fifo(qs.Discipline):
    """Drop-tail of 100 kB, as the scenario has it."""

    fifo = True

    def __init__(self) -> None:
        self.queue: list[qs.Packet] = []
        self.size = 0

    def enqueue(self, packet: qs.Packet, now: int) -> bool:
        if self.size + packet.size > 100_000:
            return False
        self.size += packet.size
        self.queue.append(packet)
        return True

    def dequeue(self, now: int) -> qs.Packet | None:
        packet = self.queue.pop(0)
        self.size -= packet.size
        return packet


def test_a_scenario_is_a_path_a_text_or_a_dictionary(folder: Path) -> None:
    text = 'duration = "3s"\n[link]\nrate = "10mbps"\ndelay = "10ms"\nlimit = "100kB"\n'
    text += '[[flows]]\nname = "download"\ntcp = "cubic"\n[[flows]]\nname = "call"\nudp = { rate = "80kbps", packet = "200B" }\n'
    (folder / "network.toml").write_text(text)
    expected = qs.simulate(NETWORK).to_dict()["sim"]
    for scenario in [text, "network.toml", folder / "network.toml"]:
        sim = qs.simulate(scenario).to_dict()["sim"]
        assert sim.pop("name") in ("scenario", str(scenario))
        assert sim == {name: value for name, value in expected.items() if name != "name"}


def test_overrides() -> None:
    a = qs.simulate(NETWORK, set={"link.rate": "5mbps", "flows.0.count": 3}, duration="1s").scenario
    assert a == qs.simulate(NETWORK, link={"rate": "5mbps"}, flows__0__count=3, duration=timedelta(seconds=1)).scenario
    assert 'rate = "5 Mb/s"' in a or "5mbps" in a or "5Mbps" in a, a
    assert qs.explain(NETWORK, seed=7) != qs.explain(NETWORK, seed=8)


def test_tables_of_a_simulation() -> None:
    simulation = qs.simulate(NETWORK, record={"interval": "100ms"})
    sim = simulation.to_dict()["sim"]
    assert simulation.links["name"].to_list() == [link["name"] for link in sim["links"]]
    assert simulation.links["sojourn_p99_ns"].to_list() == [link["sojourn"]["p99_ns"] for link in sim["links"]]
    assert simulation.links["drops"].to_list() == [sum(link["drops"].values()) for link in sim["links"]]
    assert simulation.flows["goodput_bps"].to_list() == [flow["goodput_bps"] for flow in sim["flows"]]
    assert simulation.flow_groups["name"].to_list() == ["download", "call"]
    assert simulation.link_samples.num_rows == len(sim["samples"]) * len(sim["links"])
    assert simulation.flow_samples["window_bytes"][0] > 0
    assert "<Simulation" in repr(simulation)


def test_a_report_of_a_capture_has_no_links() -> None:
    assert not hasattr(qs.analyze("demo.pcap.xz", rate="20mbps"), "links")


def test_a_discipline_in_python_equals_that_of_the_engine() -> None:
    theirs = qs.simulate(NETWORK).to_dict()
    ours = qs.simulate(NETWORK, disciplines={"bottleneck": Fifo}).to_dict()
    assert ours["sim"]["links"][0]["discipline"] == "Fifo"
    for field in ["sent_packets", "sent_bytes", "drops", "sojourn", "peak_backlog_bytes"]:
        assert ours["sim"]["links"][0][field] == theirs["sim"]["links"][0][field], field
    assert ours["totals"] == theirs["totals"]


def test_a_discipline_can_drop_mark_and_wait() -> None:
    class Picky(qs.Discipline):
        """Marks what it can, drops each tenth packet from the queue, and sends a packet each 2 ms at most."""

        def __init__(self) -> None:
            self.queue: list[qs.Packet] = []
            self.count, self.ready, self.timer = 0, 0, None  # type: int, int, int | None

        def enqueue(self, packet: qs.Packet, now: int) -> str | None:
            assert self.rate == 10_000_000
            if len(self.queue) >= 3:
                return "early"
            self.queue.append(packet)
            self.count += 1
            if packet.ecn == "ect0":
                self.mark(packet)
            if self.count % 10 == 0:
                self.drop(self.queue.pop(0), "forced")
            return None

        def dequeue(self, now: int) -> qs.Packet | None:
            if now < self.ready:
                self.timer = self.ready
                return None
            self.ready = now + 2_000_000
            return self.queue.pop(0)

        def next_timer(self) -> int | None:
            return self.timer

        def on_timer(self, now: int) -> None:
            self.timer = None

    simulation = qs.simulate(NETWORK, disciplines={"bottleneck": Picky}, set={"flows.0.ecn": True})
    link = simulation.to_dict()["sim"]["links"][0]
    assert link["drops"]["forced"] > 0 and link["drops"]["early"] > 0 and sum(link["marks"].values()) > 0
    assert 0 < link["sent_packets"] <= 1500


@pytest.mark.parametrize("where", ["enqueue", "dequeue", "__init__"])
def test_an_exception_in_a_discipline_ends_the_run(where: str) -> None:
    class Failing(Fifo):
        pass

    def fail(*_arguments: object) -> None:
        raise ZeroDivisionError(where)

    setattr(Failing, where, fail)
    with pytest.raises(ZeroDivisionError, match=where):
        qs.simulate(NETWORK, disciplines={"bottleneck": Failing})


def test_a_discipline_that_breaks_a_rule() -> None:
    class Twice(Fifo):
        def dequeue(self, now: int) -> qs.Packet | None:
            return self.queue[0]

    with pytest.raises(ValueError, match="packet .* does not wait in this queue"):
        qs.simulate(NETWORK, disciplines={"bottleneck": Twice})

    class Wrong(Fifo):
        def dequeue(self, now: int) -> qs.Packet | None:
            return 7  # type: ignore[return-value]

    with pytest.raises(TypeError, match="must return a packet"):
        qs.simulate(NETWORK, disciplines={"bottleneck": Wrong})
    with pytest.raises(NotImplementedError, match="Discipline must have a method enqueue"):
        qs.simulate(NETWORK, disciplines={"bottleneck": qs.Discipline})
    with pytest.raises(qs.InvalidValueError, match="there is no link 'nowhere'; the links are bottleneck"):
        qs.simulate(NETWORK, disciplines={"nowhere": Fifo})
    with pytest.raises(qs.InvalidValueError, match="no group of TCP flows 'call'; the groups are download"):
        qs.simulate(NETWORK, controls={"call": qs.CongestionControl})


def test_a_congestion_control_in_python() -> None:
    windows: list[int] = []

    class Constant(qs.CongestionControl):
        def on_start(self) -> None:
            self.window = 20 * self.mss
            self.slow_start_threshold = self.window

        def on_ack(self, ack: qs.Ack, now: int) -> None:
            assert ack.in_flight <= self.window + self.mss and ack.phase in ("open", "recovery", "loss", "reduced")
            windows.append(self.window)

        def on_congestion(self, congestion: qs.Congestion, now: int) -> None:
            raise AssertionError("20 segments fit the queue")

        def on_timeout(self, congestion: qs.Congestion, now: int) -> None:
            raise AssertionError("nothing is lost")

    simulation = qs.simulate(NETWORK, controls={"download": Constant})
    assert windows and simulation.to_dict()["sim"]["groups"][0]["transport"] == "tcp, Constant" or windows
    assert simulation.links["drops"][0] == 0
    # 20 segments in 20 ms and what they wait fill the link.
    assert simulation.links["utilisation"][0] > 0.9


def test_a_sweep(folder: Path) -> None:
    arguments: dict[str, Any] = {"over": {"link.discipline": ["tail-drop", "codel"]}, "seeds": 2, "results": "results"}
    steps: list[int] = []
    result = qs.sweep(NETWORK, **arguments, progress=lambda cells, _: steps.append(cells))
    assert len(result) == 4 and steps[-1] == 4
    assert result.cells["link.discipline"].to_list() == ["tail-drop", "tail-drop", "codel", "codel"]
    means = result.rows["delay_mean_ns"].to_list()
    assert means[0] > means[1]
    assert result.rows["delay_mean_ns_half_width"][0] >= 0
    again = qs.sweep(NETWORK, **arguments)
    assert again.to_dict() == result.to_dict() and list((folder / "results").iterdir())
    assert "tail-drop" in result.to_text() and result.to_html().startswith("<!")


def test_queues_are_stepped() -> None:
    queue = qs.TailDrop(rate="12mbps", limit="3 packets")
    numbers = [queue.enqueue(1500, at_ns=n) for n in range(5)]
    assert numbers == [0, 1, 2, 3, 4] and (queue.packets, queue.bytes, len(queue)) == (3, 4500, 3)
    assert queue.events == [("dropped", "overlimit", 3, "not-ect"), ("dropped", "overlimit", 4, "not-ect")]
    departure = queue.dequeue(at=0.001)
    assert departure is not None
    assert (departure.packet.id, departure.enqueued_ns, departure.dequeued_ns, departure.delay_ns) == (0, 0, 1_000_000, 1_000_000)
    with pytest.raises(qs.InvalidValueError, match="time goes back"):
        queue.dequeue(at_ns=5)
    with pytest.raises(qs.InvalidValueError, match="in seconds"):
        queue.dequeue()


@pytest.mark.parametrize("name", qs._queuescope.discipline_names())
def test_every_discipline_can_be_stepped(name: str) -> None:
    queue = qs.Queue(name, rate="10mbps")
    sent = 0
    for n in range(2_000):
        queue.enqueue(1500, at_ns=n * 600_000, flow=n % 5, ecn="ect1" if n % 3 else "not-ect")
        if n % 2:
            sent += queue.dequeue(at_ns=n * 600_000) is not None
    dropped = sum(event.kind == "dropped" for event in queue.events)
    assert sent > 0 and sent + dropped + queue.packets == 2_000
    assert queue.name == name and queue.counters["offered"] == 2_000


def test_every_discipline_has_a_class() -> None:
    classes = {cls._discipline for cls in qs.TailDrop.__base__.__subclasses__()}  # type: ignore[union-attr]
    assert classes == set(qs._queuescope.discipline_names())
    assert all(cls.__name__ in qs.__all__ for cls in qs.TailDrop.__base__.__subclasses__())  # type: ignore[union-attr]
    with pytest.raises(qs.InvalidValueError, match="switch program.*tail-drop"):
        qs.Queue("pie-table", rate="10mbps")
    with pytest.raises(qs.ExpressionError, match="target"):
        qs.CoDel(rate="10mbps", tagret="10ms")
    assert qs.CoDel(rate="10mbps", target="10ms", ecn=True).name == "codel"
