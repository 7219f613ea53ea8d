"""The rows of the time from a server's start to the end of the first training step, in the slower of two workers."""

import time

from rows import programs
from rows.table import Contestant, Line


def ours():
    start = time.time()
    found = [o for o in programs.objects(programs.launch(2, 2, programs.BIN / "cluster_steps", "startup", limit=60))
             if o.get("bench") == "startup"]
    if len(found) != 2:
        raise programs.Failed(f"cluster_steps: {len(found)} of 2 workers came to a first step")
    return {"server": max(o["ms_from_server_to_first_step"] for o in found),
            "process": max(1000 * (o["first_step_at"] - start) for o in found)}


def theirs(interpreter):
    text = programs.run([interpreter, programs.PEERS / "tf_cluster.py", "--ps", 2, "--workers", 2, "--startup",
                         "--rounds", 1, "--recovery_wait_secs", 0.1, "--idle_wait", 0], limit=300)
    found = programs.objects(text)
    return {kind: 1000 * programs.only(found, "tf_cluster.py",
                                       figure=f"seconds from_{name} to first step")["all_workers"]["median"]
            for kind, name in (("server", "server_construction"), ("process", "process_start"))}


def prepare(interpreter, quick):
    mine = Contestant("Cohort", ours)
    # By default a worker checks every 30 s whether the chief is ready. Then mostly that wait would be measured.
    peer = Contestant("tf.distribute.Server, looking every 0.1 s", lambda: theirs(interpreter))
    cluster = "2 ps + 2 workers"
    return [mine, peer], [
        Line(f"from the server's constructor to the first step, {cluster}", "ms", mine, "server", peer, least_ratio=10),
        Line(f"from the start of the processes to the first step, {cluster}", "ms", mine, "process", peer,
             least_ratio=10)]
