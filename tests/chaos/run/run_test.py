"""Tests of the parts of the long run that start no process: python3 tests/chaos/run/run_test.py."""

import os
import pathlib
import socket
import tempfile
import types
import unittest

import accounts
import checkpoints
import faults
import plan
import report
import thieves


class PlanTest(unittest.TestCase):
    def test_a_seed_gives_its_list_again(self):
        self.assertEqual(plan.plan(7, 100), plan.plan(7, 100))
        self.assertNotEqual(plan.plan(7, 100), plan.plan(8, 100))

    def test_a_round_has_each_case_once(self):
        cases = [(fault.job, fault.kind, fault.role) for fault in plan.plan(3, len(plan.CASES))]
        self.assertEqual(sorted(cases), sorted(plan.CASES))

    def test_a_fault_keeps_its_number_in_a_selection(self):
        every = {fault.index: fault for fault in plan.plan(5, 200)}
        for fault in plan.plan(5, 10, only=["stop"]):
            self.assertEqual(fault.kind, "stop")
            self.assertEqual(fault, every[fault.index])

    def test_the_short_list_has_known_cases(self):
        for case in plan.SHORT:
            self.assertIn(case, plan.CASES)


class AccountsTest(unittest.TestCase):
    def test_counters_that_go_on_have_lost_nothing(self):
        self.assertEqual(accounts.jumps([1, 2, 3]), (0, 0))
        self.assertEqual(accounts.jumps([]), (0, 0))

    def test_a_counter_that_stands_still_has_lost_a_step(self):
        self.assertEqual(accounts.jumps([1, 2, 2]), (1, 0))

    def test_a_counter_that_goes_back_has_lost_all_steps_since(self):
        self.assertEqual(accounts.jumps([98, 99, 100, 41, 42]), (60, 0))

    def test_a_step_that_nobody_acknowledged_is_no_loss(self):
        self.assertEqual(accounts.jumps([1, 2, 4]), (0, 1))

    def test_losses_belong_to_the_server_that_was_killed(self):
        acks = [[(1, 1), (2, 2), (3, 1)]]  # ps/1 goes back
        self.assertEqual(accounts.count_parameter_servers(acks, {1}, mixed=True), accounts.Losses(killed=2))
        self.assertEqual(accounts.count_parameter_servers(acks, {0}, mixed=True), accounts.Losses(together=2))
        on_first = [[(1, 1), (2, 2), (1, 3)]]  # ps/0 goes back
        self.assertEqual(accounts.count_parameter_servers(on_first, {1}, mixed=True), accounts.Losses(healthy=2))
        self.assertEqual(accounts.count_parameter_servers(acks, {0}, mixed=False), accounts.Losses(together=2))
        self.assertEqual(accounts.count_parameter_servers(acks, set(), mixed=False), accounts.Losses(healthy=2))

    def test_mirrored_workers_lose_the_same_steps(self):
        self.assertEqual(accounts.count_mirrored([[1, 2, 3, 2, 3], [1, 2, 3, 4, 2]]), accounts.Losses(killed=3))


class DamageTest(unittest.TestCase):
    def test_each_damage_changes_the_newest_checkpoint_only(self):
        for seed in range(20):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-20"\n')
                before = {}
                for step in (2, 20):
                    for suffix in (".index", ".data-00000-of-00001"):
                        path = folder / f"model.ckpt-{step}{suffix}"
                        before[path] = b"0123456789"
                        path.write_bytes(before[path])
                job = types.SimpleNamespace(disk=lambda: name, mirrored=lambda: False)
                fault = plan.fault_of(seed, 0)
                self.assertTrue(checkpoints.damage(job, fault.random()))
                changed = [path.name for path, bytes_before in before.items() if path.read_bytes() != bytes_before]
                self.assertEqual(len(changed), 1)
                self.assertTrue(changed[0].startswith("model.ckpt-20."), changed)


class ThiefTest(unittest.TestCase):
    def test_a_thief_gets_a_free_port(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with thieves.Thief(port) as thief:
            self.assertTrue(thief.try_for(30))
            with socket.create_connection(("127.0.0.1", port)):
                pass

    @unittest.skipIf(os.geteuid() != 0, "only root can become another user")
    def test_another_user_does_not_get_a_reserved_port(self):
        with socket.socket() as reservation:
            reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            reservation.bind(("127.0.0.1", 0))
            with thieves.Thief(reservation.getsockname()[1]) as thief:
                self.assertEqual((thief.try_for(0.1), thief.user), (False, "nobody"))


class ReportTest(unittest.TestCase):
    def test_percentiles_are_values_that_were_seen(self):
        self.assertEqual(report.percentile([3, 1, 2], 0.5), 2)
        self.assertEqual(report.percentile(range(1, 101), 0.99), 99)
        self.assertEqual(report.percentile([4], 0.99), 4)

    def test_the_table_adds_the_results_of_a_kind(self):
        kill = plan.fault_of(1, 0, ("asynchronous", "kill", "ps"))
        good = faults.Result(kill, named=0.1, replaced=0.2, recovered=1.0, losses=accounts.Losses(killed=7))
        bad = faults.Result(kill, problems=["no training after the fault"], hang=True)
        table = report.by_kind([good, bad])
        self.assertIn("| `kill`: kill -9 | 2 | 1 | 0.10 s, 0.10 s | 0.20 s, 0.20 s | 1.00 s, 1.00 s | 7 | 0 | 0 | 0 | 1 | 0 |",
                      table)
        self.assertIn("| asynchronous | 1 of 2 | - | - | - |", report.by_role([good, bad]))

    def test_the_page_says_who_has_ended_tasks_that_hung(self):
        hang = plan.fault_of(1, 0, ("asynchronous", "hang", "worker"))
        results = [faults.Result(hang, note=faults.KILLED_BY_RUN), faults.Result(hang), faults.Result(hang)]
        self.assertIn("3 tasks; 1 killed by the run, the others by the launcher.", report.page(results, "how"))
        kill = plan.fault_of(1, 0, ("asynchronous", "kill", "ps"))
        self.assertNotIn("killed by the run", report.page([faults.Result(kill)], "how"))


if __name__ == "__main__":
    unittest.main()
