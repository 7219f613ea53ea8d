#!/usr/bin/env python3
"""Tests tests/gpu/run.sh: what it says without a card, and that a suite in which no test ran on a card is no success.

The suites here are small scripts. The files that show a card come from a folder of the test."""

import os
import pathlib
import subprocess
import tempfile
import unittest

RUN = pathlib.Path(__file__).resolve().parent / "run.sh"
SUITE = "#!/bin/sh\n[ \"$COHORT_TEST_CARD\" = 1 ] || [ \"$1\" = --gtest_list_tests ] || exit 9\n"
ONE_TEST = "[==========] 1 test from 1 test suite ran.\n"


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def add(self, name, output, code=0):
        program = self.folder / name
        program.write_text(f"{SUITE}cat <<'END'\n{output}END\nexit {code}\n", encoding="utf-8")
        program.chmod(0o755)

    def list_suites(self):
        return subprocess.run(["bash", str(RUN), str(self.folder), "--list"], text=True, capture_output=True, timeout=60,
                              check=False)

    def run_suites(self, *arguments, card=True, **variables):
        sign = self.folder / "version"
        if card:
            sign.write_text("a driver", encoding="utf-8")
        environment = dict(os.environ, COHORT_CARD_SIGNS=str(sign), **variables)
        return subprocess.run(["bash", str(RUN), str(self.folder), "--no_sanitizer", *arguments], env=environment, text=True,
                              capture_output=True, timeout=60, check=False)

    def test_without_a_card_nothing_runs(self):
        self.add("cuda_test", ONE_TEST)
        run = self.run_suites(card=False)
        self.assertEqual(run.returncode, 3, run)
        self.assertIn("There is no GPU here", run.stderr)
        self.assertIn("Nothing was run on a card", run.stderr)
        self.assertNotIn("cuda_test", run.stdout)

    def test_a_suite_that_passes_is_a_success(self):
        self.add("cuda_test", ONE_TEST + "[  PASSED  ] 1 test.\n")
        run = self.run_suites()
        self.assertEqual(run.returncode, 0, run)
        self.assertIn("ok  [ PASSED ] 1 test.", run.stdout)
        self.assertIn("left out", run.stdout)  # the other suites

    def test_a_suite_that_fails_is_named(self):
        self.add("cuda_test", ONE_TEST, code=1)
        run = self.run_suites()
        self.assertEqual(run.returncode, 1, run)
        self.assertIn("failed: cuda_test", run.stdout)

    def test_a_suite_without_a_test_is_no_success(self):
        self.add("cuda_test", "[==========] 0 tests from 0 test suites ran.\n")
        run = self.run_suites()
        self.assertEqual(run.returncode, 1, run)
        self.assertIn("no test ran", run.stdout)

    def test_a_suite_whose_tests_were_all_skipped_is_no_success(self):
        self.add("cuda_test", "[==========] 2 tests from 1 test suite ran.\n[  PASSED  ] 0 tests.\n[  SKIPPED ] 2 tests.\n")
        run = self.run_suites()
        self.assertEqual(run.returncode, 1, run)
        self.assertIn("all tests were skipped", run.stdout)

    def test_a_suite_without_a_test_of_a_gpu_is_named_by_the_list(self):
        self.add("cuda_test", "CudaTest.\n  One\n  Two\n")
        self.add("runtime_test", "")
        listed = self.list_suites()
        self.assertEqual(listed.returncode, 1, listed)
        self.assertRegex(listed.stdout, r"cuda_test +2 tests")
        self.assertEqual(listed.stderr, "no test of GPUs is in: runtime_test\n")

    def test_a_test_of_a_gpu_that_no_filter_takes_is_named_by_the_list(self):
        for suite in "runtime_test", "server_test":
            program = self.folder / suite
            listed = f"echo '{suite}.'; echo '  OnOne_GPU'; case $2 in *RecordedFit*) ;; *) echo '  GPUs';; esac\n"
            program.write_text("#!/bin/sh\n" + listed, encoding="utf-8")
            program.chmod(0o755)
        listed = self.list_suites()
        self.assertEqual(listed.returncode, 1, listed)
        self.assertEqual(listed.stderr, "the filter leaves out these tests, whose names say GPU: runtime_test.GPUs server_test.GPUs\n")

    def test_a_chosen_suite_runs_alone(self):
        self.add("cuda_test", ONE_TEST + "[  PASSED  ] 1 test.\n")
        self.add("runtime_test", ONE_TEST, code=1)
        run = self.run_suites("--suite=cuda_test")
        self.assertEqual(run.returncode, 0, run)
        self.assertNotIn("runtime_test", run.stdout)
        unknown = self.run_suites("--suite=cuda_tset")
        self.assertEqual(unknown.returncode, 2, unknown)
        self.assertIn("there is no suite cuda_tset; the suites are: cuda_op_cases_test", unknown.stderr)

    def test_a_suite_that_takes_too_long_is_ended_and_its_output_is_kept(self):
        program = self.folder / "cuda_test"
        program.write_text("#!/bin/sh\necho the test that hangs\nexec sleep 50\n", encoding="utf-8")
        program.chmod(0o755)
        log = self.folder / "log"
        run = self.run_suites(COHORT_GPU_SUITE_SECONDS="1", COHORT_GPU_LOG=str(log))
        self.assertEqual(run.returncode, 1, run)
        self.assertIn("FAILED (124)", run.stdout)
        self.assertIn("the test that hangs", run.stdout)
        self.assertEqual(log.read_text(encoding="utf-8"), "the test that hangs\n")

    def test_an_empty_folder_is_an_error(self):
        for run in (self.run_suites(), self.list_suites()):
            self.assertEqual(run.returncode, 1, run)
            self.assertIn("No suite was found", run.stderr)


if __name__ == "__main__":
    unittest.main()
