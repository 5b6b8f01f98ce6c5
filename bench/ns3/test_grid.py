#!/usr/bin/env python3
"""Tests of the comparison itself; needs neither ns-3 nor queuescope. python3 -m unittest discover -s bench/ns3"""

import json
import math
import pathlib
import stat
import tempfile
import unittest
from unittest import mock

import cells
import grid
import overload
import scenario
import stats


def result(**changed):
    return {"goodput_mbps": 9.6, "offered": 10_000, "dropped": 100, "marked": 0, "delay_mean_ms": 10.0,
            "delay_p95_ms": 20.0, "packet_hops": 1, "wall_s": 1.0, **changed}


class Overload(unittest.TestCase):
    def samples(self, *probabilities):
        return [{"at_ns": at * 1_000_000_000, "links": [{"drop_probability": value}]}
                for at, value in enumerate(probabilities)]

    def test_the_fall_is_counted_from_the_end_of_the_overload(self):
        self.assertEqual(overload.times(self.samples(0, 0.5, 1, 1, 1, 0.5, 0, 0), 3 * 10**9),
                         {"rise_s": 2, "fall_s": 3})

    def test_what_is_not_reached_has_no_time(self):
        self.assertEqual(overload.times(self.samples(0, 0.5, 0.99, 0), 2 * 10**9), {"rise_s": None, "fall_s": None})
        self.assertEqual(overload.times(self.samples(0, 1, 0, 0.1), 3 * 10**9), {"rise_s": 1, "fall_s": None})
        self.assertIn("| rise to 1 (s) | -1 | 2.0 | |",
                      overload.table({"rise_s": -1, "fall_s": -1, "drops": {}},
                                     {"rise_s": 2.0, "fall_s": None, "drops": {}}))

    def test_a_difference_is_ours_against_ns3s(self):
        table = overload.table({"rise_s": 3, "fall_s": 0.1, "drops": {"Forced drop": 7}},
                              {"rise_s": 3.3, "fall_s": 0.1, "drops": {"overlimit": 8}})
        self.assertIn("| 3.000 | 3.300 | +10.0 % |", table)
        self.assertIn("| Forced drop 7 | overlimit 8 |", table)

    def test_the_rest_begins_where_the_overload_ends(self):
        text = overload.scenario(10, 5, 14, 1)
        self.assertIn('udp = { rate = "100000mbps", spacing = "jittered" }\necn = true\nstop = "5000000000ns"', text)
        self.assertIn('udp = { rate = "5000mbps", spacing = "jittered" }\necn = true\nstart = "5000000000ns"', text)


class Cells(unittest.TestCase):
    def test_any_two_values_meet_in_a_cell(self):
        rows = [row[1:7] for row in cells.cells()[:cells.MAIN_CELLS]]
        self.assertEqual(cells.missing_pairs(cells.main_factors(), rows), set())

    def test_each_further_control_has_seven_cells_most_of_them_at_tail_drop(self):
        rows = cells.further_rows()
        self.assertEqual([row[1] for row in rows], [cc for cc in cells.FURTHER_CONTROLS for _ in range(7)])
        self.assertEqual(sum(row[0] == "taildrop" for row in rows), 32)
        self.assertEqual({row[0] for row in rows}, set(cells.AQMS))

    def test_any_two_values_of_control_and_path_meet_and_each_path_value_meets_each_discipline(self):
        rows = cells.further_rows()
        self.assertEqual(cells.missing_pairs([cells.FURTHER_CONTROLS, *cells.PATHS], [row[1:] for row in rows]), set())
        paths = [(row[0], *row[2:]) for row in rows]
        self.assertEqual(cells.missing_pairs([cells.AQMS, *cells.PATHS], paths), set())

    def test_a_missing_pair_is_found(self):
        self.assertEqual(cells.missing_pairs([[1, 2], [3, 4]], [(1, 3), (1, 4), (2, 3)]), {((0, 2), (1, 4))})

    def test_the_file_is_what_the_program_writes_and_no_cell_is_twice_in_it(self):
        self.assertEqual(cells.FILE.read_text(), cells.text())
        self.assertEqual(len({row[1:] for row in cells.cells()}), 136)


class Statistics(unittest.TestCase):
    def test_students_interval_of_three_values(self):
        # Mean 2, standard deviation 1: 4.303 / sqrt(3).
        self.assertAlmostEqual(stats.half_width([1, 2, 3]), 2.4843, 3)

    def test_wilsons_interval_of_ten_of_a_hundred(self):
        low, high = stats.wilson(10, 100)
        self.assertAlmostEqual(low, 0.05523, 4)
        self.assertAlmostEqual(high, 0.17437, 4)

    def test_seeds_that_agree_are_as_uncertain_as_their_packets(self):
        low, high = stats.rate_interval([10] * 10, [100] * 10)
        self.assertEqual((low, high), stats.wilson(100, 1000))

    def test_seeds_that_differ_are_more_uncertain_than_their_packets(self):
        low, high = stats.rate_interval([0, 200], [1000, 1000])
        self.assertLess(low, stats.wilson(200, 2000)[0])
        self.assertGreater(high, stats.wilson(200, 2000)[1])

    def test_one_seed_has_the_interval_of_its_packets(self):
        self.assertEqual(stats.rate_interval([10], [100]), stats.wilson(10, 100))
        self.assertTrue(math.isinf(stats.half_width([1])))


class Verdicts(unittest.TestCase):
    def failures(self, **changed):
        return stats.Verdict([result()] * 3, [result(**changed)] * 3).failures

    def test_the_same_is_within(self):
        self.assertEqual(self.failures(), [])

    def test_each_bound_is_held_by_itself(self):
        self.assertEqual(self.failures(goodput_mbps=9.6 * 0.971), [])
        self.assertEqual(self.failures(goodput_mbps=9.6 * 0.969), ["goodput"])
        self.assertEqual(self.failures(delay_mean_ms=11.4), [])
        self.assertEqual(self.failures(delay_mean_ms=11.6), ["mean delay"])
        self.assertEqual(self.failures(delay_p95_ms=16.9), ["p95 delay"])
        self.assertEqual(self.failures(dropped=150), ["drops"])
        self.assertEqual(self.failures(marked=10), ["marks"])

    def test_short_delays_may_differ_by_a_fifth_of_a_millisecond(self):
        self.assertTrue(stats.Verdict.close(0.1, 0.29))
        self.assertFalse(stats.Verdict.close(0.1, 0.31))


class Scenarios(unittest.TestCase):
    cell = {"cell": 1, "aqm": "pie", "cc": "cubic", "flows": 2, "rate_mbps": 10, "rtt_ms": 40, "buffer_bdp": 1.0,
            "udp_load": 1.25, "udp_flows": 10, "duration_s": 60, "warmup_s": 10}

    def test_start_times_are_those_of_the_dumbbell(self):
        # As dumbbell printed them for seed 1.
        self.assertEqual([scenario.start_ns(1, flow) for flow in range(3)], [6381604, 10864835, 26221965])

    def test_a_limit_is_rounded_as_in_c_and_at_least_four_packets(self):
        self.assertEqual(scenario.nearest(4.5), 5)
        self.assertEqual(scenario.Plan(self.cell).limit, 33)
        self.assertEqual(scenario.Plan({**self.cell, "rtt_ms": 10, "buffer_bdp": 0.1}).limit, 4)

    def test_udp_offers_its_load_in_bytes_on_the_link(self):
        plan = scenario.Plan(self.cell)
        self.assertAlmostEqual(plan.udp_rate * 10 * 1002 / 1000, 12_500_000, delta=10)

    def test_no_two_flows_share_a_queue(self):
        numbers = [2 * n for n in range(50)] + [2**31 + n for n in range(10)]
        self.assertEqual(len({number % scenario.QUEUES for number in numbers}), len(numbers))

    def test_random_numbers_are_ns3s_or_our_own(self):
        cell = grid.read_cells([18])[0]
        self.assertEqual(scenario.scenario(cell, 7).count("draws = { ns3 = { run = 7 } }"), 1 + cell["flows"])
        own = scenario.scenario({**cell, "draws": "own"}, 7)
        self.assertEqual((own.count('draws = "own"'), own.count("run = 7")), (1 + cell["flows"], 0))
        versions = {"ns3": (None, lambda: "a"), "ours": (None, lambda: "b")}
        with mock.patch.object(grid, "SIDES", versions):
            paths = [grid.path_of(side, {**cell, **own}, 1) for side in versions for own in ({}, {"draws": "own"})]
        self.assertEqual([paths[0] == paths[1], paths[2] == paths[3]], [True, False])

    def test_every_cell_has_a_flow_for_each_of_its_flows(self):
        for cell in grid.read_cells(None):
            text = scenario.scenario(cell, 1)
            self.assertEqual(text.count("[[flows]]"), cell["flows"] + cell["udp_flows"])
            self.assertEqual(text.count("[link.discipline."), 1)


class Resuming(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)
        self.program = self.work / "dumbbell"
        self.calls = self.work / "calls"
        self.write(json.dumps(result()))
        patches = [mock.patch.object(grid, "WORK", self.work), mock.patch.object(grid, "DUMBBELL", self.program),
                   mock.patch.object(grid, "prepare"), mock.patch("sys.stderr")]
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)

    def write(self, answer):
        self.program.write_text(f"#!/bin/sh\necho call >> {self.calls}\necho '{answer}'\n")
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def run_grid(self, *more):
        return grid.main(["run", "--only", "ns3", "--cells", "1-2", "--seeds", "1-3", "--jobs", "2", *more])

    def count(self):
        return len(self.calls.read_text().splitlines())

    def test_what_is_there_is_not_run_again(self):
        self.assertEqual(self.run_grid(), 0)
        self.assertEqual(self.count(), 6)
        self.assertEqual(self.run_grid(), 0)
        self.assertEqual(self.count(), 6)

    def test_a_result_that_was_cut_short_is_run_again(self):
        self.run_grid()
        files = sorted((self.work / "results" / "ns3").iterdir())
        files[0].write_text('{"cell"')
        self.run_grid()
        self.assertEqual(self.count(), 7)

    def test_a_changed_program_makes_results_stale(self):
        self.run_grid()
        with mock.patch.dict(grid.SIDES, {"ns3": (grid.ns3, lambda: "another")}):
            self.run_grid()
        self.assertEqual(self.count(), 12)

    def test_an_answer_without_what_is_compared_is_no_result(self):
        self.write("{}")
        self.assertEqual(self.run_grid(), 1)
        self.assertFalse((self.work / "results").exists())

    def test_a_report_says_how_many_cells_are_within(self):
        cell = grid.read_cells([1])[0]
        for seed in (1, 2):
            for side, other in (("ns3", result()), ("ours", result(delay_mean_ms=30.0))):
                with mock.patch.dict(grid.SIDES, {side: (lambda *_, other=other: other, lambda: "v")}):
                    grid.store(side, cell, seed)
        out = self.work / "report.md"
        versions = {side: (None, lambda: "v") for side in ("ns3", "ours")}
        with mock.patch.dict(grid.SIDES, versions):
            grid.main(["report", "--cells", "1", "--seeds", "1-3", "--out", str(out)])
        text = out.read_text()
        self.assertIn("| mean delay |", text)
        self.assertIn("0 of 1 cells", text)
        self.assertIn("1 runs are missing", text)


if __name__ == "__main__":
    unittest.main()
