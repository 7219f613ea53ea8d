"""The rows of guide-003's program with its hooks, of guide-002's TrainAndEvaluate, and of hooks around a local step."""

import json
import time

from rows import linear_regression, programs, tf215
from rows.table import Contestant, Line


def prepare_003(_, quick):
    def ours():
        text = programs.launch(1, 1, programs.BIN / "cluster_steps", "guide_003", f"--seconds={0.5 if quick else 2}",
                               limit=90)
        found = programs.only(programs.objects(text), "cluster_steps", bench="guide_003")
        return {"rate": found["steps_per_s"], "step_us": found["us_median"]}

    def theirs():
        return {"rate": tf215.only_result("tf_monitored_session.py", "--steps", 300 if quick else 3000)["steps_per_s"]}

    program = programs.last_line(programs.run([programs.PEERS / "build_grpc.sh"], limit=300))
    mine = Contestant("Cohort", ours)
    peer = Contestant(f"MonitoredTrainingSession of {tf215.NAME}", theirs)
    raw = Contestant("raw gRPC stream, round trip", lambda: linear_regression.round_trip(program, quick))
    name = "guide-003's program with its hooks, 1 ps + 1 worker"
    lines = [Line(name, "steps/s", mine, "rate", peer, larger_is_better=True, least_ratio=10)]
    lines.append(linear_regression.PerRoundTrip(f"{name}, a step", "us", mine, "step_us", raw, "round_trip_us", most=2,
                                                instead_of=tuple(lines)))
    return [mine, peer, raw], lines


def prepare_estimator(_, quick):
    def ours():
        begin = time.monotonic()
        text = programs.run([programs.BIN / "guide_002_estimator"], limit=60)
        if "'global_step': 3}" not in text:
            raise programs.Failed(f"guide_002_estimator: expected a result of step 3; got\n{text}")
        return {"seconds": time.monotonic() - begin}

    def theirs():
        found = tf215.only_result("tf_estimator.py")
        return {"seconds": found["seconds"], "alone": found["seconds"] - found["imports"]}

    mine = Contestant("Cohort", ours)
    peer = Contestant(f"train_and_evaluate of {tf215.NAME}, with its imports", theirs)
    name = "guide-002's `TrainAndEvaluate`, local, from start to end"
    return [mine, peer], [
        Line(name, "s", mine, "seconds", peer, least_ratio=10),
        Line(name, "s", mine, "seconds", peer.also("the same without its imports"), "alone")]


def added(found):
    """Returns the times of a step in us, and what the monitored session adds to it without hooks and with the four."""
    wrong = [b["error_message"] for b in found if b.get("error_occurred")]
    if wrong:
        raise programs.Failed(f"hooks_bench: {wrong[0]}")
    alone, without, four = (programs.only(found, "hooks_bench", name=f"BM_{name}_median")["us_median"]
                            for name in ("SessionRun", "NoHooks", "FourHooks"))
    return {"alone": alone, "without": without - alone, "hooks": four - alone}


def prepare_hooks(_, quick):
    def ours():
        text = programs.run([programs.BIN / "hooks_bench", "--benchmark_format=json", "--benchmark_repetitions=5",
                             "--benchmark_enable_random_interleaving=true",
                             f"--benchmark_min_time={0.05 if quick else 0.2}"], limit=120)
        return added(json.loads(text)["benchmarks"])

    mine = Contestant("MonitoredSession", ours)
    return [mine], [
        Line("`Session::Run`, 10 ops and the global step", "us", mine, "alone"),
        Line("what a MonitoredSession without hooks adds to it", "us", mine, "without"),
        Line("what StopAtStep, NanTensor, StepCounter and CheckpointSaver add to it", "us", mine, "hooks", most=3)]
