"""Figures of reports and sweeps."""

from __future__ import annotations

import sys

import pytest
import queuescope as qs
from conftest import needs

NETWORK = {
    "duration": "2s",
    "link": {"rate": "5mbps", "limit": "100kB"},
    "flows": [{"name": "download", "tcp": "cubic"}, {"name": "call", "udp": {"rate": "80kbps", "packet": "200B"}}],
}

pytestmark = needs("matplotlib")


@pytest.fixture(autouse=True)
def _without_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")


def test_a_figure_has_the_depth_the_delays_and_the_culprits() -> None:
    report = qs.analyze("demo.pcap.xz", rate="20mbps")
    figure = report.plot()
    titles = {ax.get_title(loc="left") for ax in figure.axes}
    assert titles == {"Depth of the queue by flow", "Delays", "Culprits"}
    assert figure.axes[0].get_legend() is not None


def test_the_layers_of_the_depth_add_up_to_the_depth() -> None:
    report = qs.simulate(NETWORK)
    ax = report.plot_depth()
    most = max(path.get_extents().y1 for layer in ax.collections for path in layer.get_paths())
    assert most == pytest.approx(max(report.depth["mean_bytes"]) / 1e3, rel=1e-6)


def test_a_bar_is_the_share_of_its_flow() -> None:
    report = qs.simulate(NETWORK)
    ax = report.plot_culprits()
    shares = [row["share"] for row in report.culprits.rows() if row["burst"] is None and row["granularity"] == "5tuple"]
    assert [bar.get_width() / 100 for bar in ax.patches] == pytest.approx(shares)


def test_delays_come_from_each_packet_if_the_report_has_them() -> None:
    exact = qs.simulate(NETWORK, packets=True).plot_delays()
    assert exact.get_yscale() == "log"
    assert len(exact.lines[0].get_xdata()) == qs.simulate(NETWORK).totals["departed_packets"]


def test_a_sweep_has_a_line_for_each_value_of_the_other_parameters() -> None:
    result = qs.sweep(NETWORK, {"link.rate": ["5mbps", "10mbps"], "link.discipline": ["tail-drop", "codel"]}, seeds=2)
    ax = result.plot("delay_p95_ns", x="link.rate")
    legend = ax.get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} == {"link.discipline = tail-drop", "link.discipline = codel"}
    with pytest.raises(qs.InvalidValueError, match="no figure 'speed'"):
        result.plot("speed")
    with pytest.raises(qs.InvalidValueError, match="'link.delay' is not varied"):
        result.plot("delay_p95_ns", x="link.delay")


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    report = qs.simulate(NETWORK)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        report.plot()
