"""The row of a linear regression whose two workers wait for each other in each step (SyncReplicasOptimizer)."""

import re
import tempfile

from rows import linear_regression, programs, tf215
from rows.table import Contestant, Line

WORKERS = 2


def figures(text, steps):
    """Returns the global steps per second of the slower worker."""
    linear_regression.check_fit(text)
    seconds = [float(found) for found in re.findall(r"\d+ steps in ([0-9.]+) s", text)]
    if len(seconds) != WORKERS:
        raise programs.Failed(f"linear_regression: {len(seconds)} of {WORKERS} workers said how fast they were:\n{text}")
    return {"rate": steps / max(seconds), "step_us": 1e6 * max(seconds) / steps}


def ours(quick):
    steps = 1000 if quick else 15000
    with tempfile.TemporaryDirectory() as logdir:
        text = programs.launch(1, WORKERS, programs.BIN / "linear_regression", "--sync", f"--max_steps={steps}",
                               f"--steps_to_validate={steps // 10}", f"--logdir={logdir}",
                               f"--learning_rate={linear_regression.LEARNING_RATE}", limit=60)
    return figures(text, steps)


def theirs(quick, *setting):
    found = tf215.only_result("tf_cluster.py", "--sync", "--workers", WORKERS, "--rounds", 1, "--seconds",
                              1 if quick else 3, "--warmup", 1, "--idle_wait", 0, "--learning_rate",
                              linear_regression.LEARNING_RATE, *setting, limit=300)
    return {"rate": found["total"]["median"]}


def prepare(_, quick):
    program = programs.last_line(programs.run([programs.PEERS / "build_grpc.sh"], limit=300))
    mine = Contestant("Cohort", lambda: ours(quick))
    default = Contestant(f"SyncReplicasOptimizer of {tf215.NAME}, default", lambda: theirs(quick))
    best = Contestant(f"SyncReplicasOptimizer of {tf215.NAME}, its best setting",
                      lambda: theirs(quick, "--resource_variables", "--interop_threads", 1))
    raw = Contestant("raw gRPC stream, round trip", lambda: linear_regression.round_trip(program, quick))
    name = f"synchronous linear regression, 1 ps + {WORKERS} workers"
    lines = [Line(name, "global steps/s", mine, "rate", peer, larger_is_better=True, least_ratio=10)
             for peer in (default, best)]
    lines.append(linear_regression.PerRoundTrip(f"{name}, a step", "us", mine, "step_us", raw, "round_trip_us", most=3,
                                                instead_of=tuple(lines)))
    return [mine, default, best, raw], lines
