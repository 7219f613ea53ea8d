"""Tests bench/compare.py: its verdicts, failures and time limits are right, and no process is left. ctest runs it."""

import pathlib
import tempfile
import time
import types
import unittest
import unittest.mock

import compare
from rows import guide_004, guides, input_pipeline, page, programs, scaling, slow_link, sync_replicas, turns, workers
from rows.table import Contestant, Line


def side(name, **samples):
    return Contestant(name, None, samples=samples)


class Verdicts(unittest.TestCase):
    def test_ratio_of_rates(self):
        line = Line("x", "steps/s", side("ours", rate=[900, 1000, 5000]), "rate", side("peer", rate=[100]),
                    larger_is_better=True, least_ratio=10)
        self.assertEqual(line.cells()[1:], ["1000 steps/s (900 to 5000, n=3)", "peer", "100 steps/s (n=1)", "10 x",
                                            "at least 10 x", "met"])
        line.least_ratio = 10.1
        self.assertEqual(line.cells()[-1], "not met")

    def test_ratio_of_times(self):
        line = Line("x", "us", side("ours", t=[2]), "t", side("peer", t=[5]), least_ratio=2.6)
        self.assertEqual(line.cells()[-3:], ["2.5 x", "at least 2.6 x", "not met"])

    def test_limit(self):
        self.assertIs(Line("x", "ms", side("ours", ms=[0.26]), "ms", most=0.25).met(), False)
        self.assertIs(Line("x", "ms", side("ours", ms=[0.25]), "ms", most=0.25).met(), True)

    def test_a_side_that_failed_meets_nothing(self):
        def fail():
            raise programs.Failed("it broke")
        ours, peer = Contestant("ours", lambda: {"t": 1}), Contestant("peer", fail)
        turns.measure("row", [ours, peer], 3)
        self.assertEqual(len(ours.samples["t"]), 3)
        self.assertEqual(peer.failures, ["row, peer: it broke"])
        line = Line("x", "us", ours, "t", peer, least_ratio=5)
        self.assertEqual(line.cells()[3:], ["failed", "-", "at least 5 x", "unknown"])


class Programs(unittest.TestCase):
    def test_output(self):
        text = programs.run(["sh", "-c", "echo '[worker/0] {\"a\": 1}'; echo no object"], limit=20)
        self.assertEqual(programs.objects(text), [{"a": 1}])

    def test_error_has_last_words(self):
        with self.assertRaisesRegex(programs.Failed, "ended with 3:\nalas"):
            programs.run(["sh", "-c", "echo alas >&2; exit 3"], limit=20)
        with self.assertRaisesRegex(programs.Failed, "build first"):
            programs.run([programs.BIN / "no_such_program"], limit=20)

    def test_limit_ends_what_was_started(self):
        with tempfile.TemporaryDirectory() as folder:
            beat = pathlib.Path(folder) / "beat"
            with self.assertRaisesRegex(programs.Failed, "longer than 1 s"):
                programs.run(["sh", "-c", f"(while :; do date +%N > {beat}; sleep 0.05; done) & wait"], limit=1)
            last = beat.read_text()
            time.sleep(0.5)
            self.assertEqual(beat.read_text(), last)


class Together(unittest.TestCase):
    def test_outputs_in_order(self):
        texts = programs.run_together([["sh", "-c", "sleep 0.2; echo first"], ["echo", "second"]], limit=20)
        self.assertEqual(texts, ["first\n", "second\n"])

    def test_one_that_fails_ends_the_others(self):
        start = time.monotonic()
        with self.assertRaisesRegex(programs.Failed, "ended with 3:\nalas"):
            programs.run_together([["sleep", "300"], ["sh", "-c", "echo alas >&2; exit 3"]], limit=250)
        self.assertLess(time.monotonic() - start, 100)


class Venv(unittest.TestCase):
    # Stands for an interpreter whose `-m venv --clear` and `-m pip install` take some time. It notes both in a log.
    PYTHON = """#!/bin/sh
case "$1 $2" in
  "-m venv") mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; touch "$4/pyvenv.cfg"; echo clear >>"$LOG" ;;
  "-m pip") sleep 1; echo install >>"$LOG" ;;
esac
"""

    def test_two_runs_for_one_folder_make_it_once(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            python, log = folder / "python", folder / "log"
            python.write_text(self.PYTHON)
            python.chmod(0o755)
            command = ["env", f"PYTHON={python}", f"COHORT_TF215_VENV={folder}/venv", f"LOG={log}",
                       programs.PEERS / "venv.sh", "tf215"]
            outputs = programs.run_together([command, command], limit=60)
            self.assertEqual([programs.last_line(text) for text in outputs], [f"{folder}/venv/bin/python"] * 2)
            self.assertEqual(log.read_text(), "clear\ninstall\n")


class Workers(unittest.TestCase):
    @staticmethod
    def line(worker, images_per_s, replicas=2):
        return (f'[worker/{worker}] {{"bench":"guide_network_fit","worker":{worker},"replicas":{replicas},'
                f'"images_per_s":{images_per_s},"gradient_bytes":11549224}}\n')

    def test_the_slower_process_counts(self):
        found = workers.figures("Epoch 1\n" + self.line(0, 500.5) + self.line(1, 499.5), 2, 2)
        self.assertEqual(found["images_per_s"], 499.5)

    def test_all_processes_have_to_speak_and_to_train_together(self):
        with self.assertRaisesRegex(programs.Failed, "figures of 2 processes"):
            workers.figures(self.line(0, 500), 2, 2)
        with self.assertRaisesRegex(programs.Failed, "with 2 replicas"):
            workers.figures(self.line(0, 250, 1) + self.line(0, 250, 1), 2, 2)

    def test_limits(self):
        found = workers.limits({"images_per_s": 250, "gradient_bytes": 12_500_000}, 118_750_000)
        self.assertEqual(found["compute"], 500)
        self.assertEqual(found["link"], 10 * 256)  # 0.1 s a step
        self.assertAlmostEqual(found["payload"], 9.5 * 256)
        self.assertEqual(found["least"], 500)
        self.assertEqual(found["payload_mbit"], 950)
        self.assertEqual(workers.limits({"images_per_s": 2500, "gradient_bytes": 12_500_000}, 1)["least"], 2560)


class InputPipeline(unittest.TestCase):
    def test_figures(self):
        found = input_pipeline.figures([{"name": "Fit/256/128/iterations:1", "data_wait_percent": 0.5,
                                         "outside_percent": 12}])
        self.assertEqual(found, {"Fit/256/128 wait": 0.5, "Fit/256/128 outside": 12})

    def test_error(self):
        with self.assertRaisesRegex(programs.Failed, "Fit/1.*it broke"):
            input_pipeline.figures([{"name": "Fit/1", "error_occurred": True, "error_message": "it broke"}])


class SyncReplicas(unittest.TestCase):
    FIT = "[worker/0] step: 1000, weight: 2.01, biase: 9.98, loss: 0.1\n"

    def test_the_slower_worker_counts(self):
        found = sync_replicas.figures(self.FIT + "[worker/0] worker 0: 990 steps in 2.00 s, 495 steps/s\n"
                                      "[worker/1] worker 1: 1010 steps in 4.00 s, 252 steps/s\n", 1000)
        self.assertEqual(found, {"rate": 250, "step_us": 4000})

    def test_both_workers_have_to_speak_and_the_fit_has_to_be_right(self):
        one = "worker 0: 990 steps in 2.00 s"
        with self.assertRaisesRegex(programs.Failed, "1 of 2 workers"):
            sync_replicas.figures(self.FIT + one, 1000)
        with self.assertRaisesRegex(programs.Failed, "expected about 2 and 10"):
            sync_replicas.figures(self.FIT.replace("2.01", "0.5") + one + one, 1000)


class Guide004(unittest.TestCase):
    def test_the_last_epoch_counts(self):
        self.assertEqual(guide_004.step_ms("epoch 1: 900.5 ms a step\n5/5 - 1s\nepoch 2: 812.5 ms a step\n"), 812.5)
        with self.assertRaisesRegex(programs.Failed, "expected the time"):
            guide_004.step_ms("5/5 [====] - 1s 1s/step")


class Hooks(unittest.TestCase):
    def test_added(self):
        found = guides.added([{"name": f"BM_{name}_median", "us_median": us}
                              for name, us in (("SessionRun", 1), ("NoHooks", 1.5), ("FourHooks", 3))])
        self.assertEqual(found, {"alone": 1, "without": 0.5, "hooks": 2})

    def test_error(self):
        with self.assertRaisesRegex(programs.Failed, "it broke"):
            guides.added([{"name": "BM_NoHooks_median", "error_occurred": True, "error_message": "it broke"}])


class Scaling(unittest.TestCase):
    def test_lines(self):
        def case(batch, name, cores, replicas, rate):
            measured = side(name, images_per_s=[rate], of_all_cores=[2 * rate], step_ms=[1e3 * batch / rate])
            return scaling.Case(batch, name, cores, replicas, measured)
        found = [line.cells() for line in scaling.lines([
            case(128, "one", 1, 1, 250), case(256, "one", 1, 1, 200), case(256, "two", 2, 2, 400)])]
        self.assertEqual([cells[1:5] for cells in found[2:]], [
            ["400 images/s (n=1)", "speed-up: over one device, 1 core, the same batch", "200 images/s (n=1)", "2 x"],
            ["400 images/s (n=1)", "efficiency: over 2 of one device, 1 core, batch 128", "500 images/s (n=1)", "0.8 x"],
            ["640 ms (n=1)", "-", "-", "-"]])

    def test_one_that_failed(self):
        cases = [scaling.Case(256, "one", 1, 1, Contestant("one", None, failures=["alas"])),
                 scaling.Case(256, "two", 2, 1, side("two", images_per_s=[400], step_ms=[640]))]
        found = [line.cells() for line in scaling.lines(cases)]
        self.assertEqual(found[0][1], "failed")
        self.assertEqual([cells[4] for cells in found[1:]], ["-", "-", "-"])


class Page(unittest.TestCase):
    TEXT = f"before\n\n{page.BEGIN}\n\nold\n\n{page.END}\n\nafter\n"

    def test_the_table_goes_into_its_place(self):
        self.assertEqual(page.with_table(self.TEXT, "new"), self.TEXT.replace("old", "new"))
        self.assertEqual(page.with_table(page.with_table(self.TEXT, "new"), "old"), self.TEXT)
        self.assertFalse(page.has_place("before\nafter\n"))
        self.assertTrue(page.has_place((pathlib.Path(__file__).parent.parent / "docs/benchmarks.md").read_text()))

    def test_a_part_of_the_table_does_not(self):
        with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
            file.write(self.TEXT)
            file.flush()
            for part in (["--quick"], ["--only", "session"]):
                with unittest.mock.patch("sys.argv", ["compare", "--markdown", file.name, *part]), \
                        unittest.mock.patch("sys.stderr"), self.assertRaises(SystemExit) as end:
                    compare.parse()
                self.assertEqual(end.exception.code, 2)
            with unittest.mock.patch("sys.argv", ["compare", "--markdown", file.name]):
                self.assertEqual(compare.parse().page, self.TEXT)


class SlowLink(unittest.TestCase):
    def test_two_hosts_reach_each_other_and_are_gone_afterwards(self):
        try:
            with slow_link.SlowLink("100mbit") as link:
                rate = workers.payload(link, quick=True) * 8 / 1e6
        except programs.Unavailable as reason:
            self.skipTest(str(reason))
        self.assertGreater(rate, 1)
        self.assertLess(rate, 100)
        with self.assertRaises(programs.Failed):
            programs.run(link.command(0, ["true"]), limit=20)

    def test_a_row_that_this_machine_cannot_do_is_left_out(self):
        def prepare(python, quick):
            raise programs.Unavailable("no network")
        args = types.SimpleNamespace(quick=True, rounds=1)
        with unittest.mock.patch.dict(compare.ROWS, {"x": prepare}):
            cells, failures = compare.run_row("x", "", args)
        self.assertEqual((cells[0][:2], failures), (["`x`", "left out: no network"], []))


if __name__ == "__main__":
    unittest.main()
