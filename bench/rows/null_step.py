"""The rows of a step that reads one scalar from each of two parameter servers, with 1 and with 8 workers at once."""

import statistics

from rows import programs
from rows.table import Contestant, Line

MOST_MS = {1: 0.25, 8: 1.0}


def ours(workers, quick, *launch_flags):
    text = programs.launch(2, workers, programs.BIN / "cluster_steps", "null_step", f"--seconds={0.5 if quick else 2}",
                           limit=90, flags=launch_flags)
    found = [o for o in programs.objects(text) if o.get("bench") == "null_step"]
    if len(found) != workers:
        raise programs.Failed(f"cluster_steps: {len(found)} of {workers} workers said how long a step takes:\n{text}")
    return {"ms": statistics.median(o["ms_median"] for o in found)}


def theirs(interpreter, workers, quick):
    text = programs.run([interpreter, programs.PEERS / "tf_null_step.py", "--workers", workers, "--modes", "process",
                         "--rounds", 1, "--seconds", 1 if quick else 2, "--idle_wait", 0], limit=300)
    return {"ms": programs.only(programs.objects(text), "tf_null_step.py", workers=workers)["ms_per_step"]["median"]}


def prepare(interpreter, quick, workers):
    mine = Contestant("Cohort", lambda: ours(workers, quick))
    # Ten TensorFlow processes take half a minute to start on two cores; this peer is only for orientation.
    peer = Contestant("tf.distribute.Server, default", lambda: theirs(interpreter, workers, quick),
                      rounds=1 if workers > 1 else 2)
    name = f"null step, 2 ps + {workers} worker{'s' * (workers > 1)}"
    return [mine, peer], [Line(name, "ms", mine, "ms", peer, most=MOST_MS[workers])]
