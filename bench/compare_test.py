"""The comparison tells the truth: verdicts, failures, time limits, and no process left. Run by ctest."""

import pathlib
import tempfile
import time
import unittest

import compare
from rows import programs
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
        compare.measure("row", [ours, peer], 3)
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


if __name__ == "__main__":
    unittest.main()
