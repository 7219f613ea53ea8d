"""The rows in which 100 MiB of parameters are read from a parameter server, and 100 MiB of gradients applied there."""

from rows import programs
from rows.table import Contestant, Line


def ours(quick, *flags, launch_flags=()):
    found = programs.objects(programs.launch(1, 1, programs.BIN / "cluster_steps", "bulk",
                                             f"--seconds={0.5 if quick else 2}", *flags, limit=90, flags=launch_flags))
    return {kind: programs.only(found, "cluster_steps", bench=f"bulk_{kind}")["gb_per_s_median"]
            for kind in ("pull", "push")}


def raw(program, quick):
    """Returns the figures of the better of two chunk sizes."""
    found = programs.objects(programs.run([program, "--what=bulk", "--net=tcp", "--rounds=1",
                                           f"--repeats={3 if quick else 15}"], limit=90))
    return {kind: max(o["gb_per_s_median"] for o in found if o["figure"] == kind) for kind in ("pull", "push")}


def theirs(interpreter, quick):
    text = programs.run([interpreter, programs.PEERS / "tf_bulk.py", "--rounds", 1, "--steps", 3 if quick else 8,
                         "--malloc_tuned", "--resource_variables", "--tensors", 25, "--idle_wait", 0], limit=300)
    found = programs.objects(text)
    return {kind: programs.only(found, "tf_bulk.py", figure=kind)["gb_per_s"]["median"] for kind in ("pull", "push")}


def prepare(interpreter, quick):
    program = programs.last_line(programs.run([programs.PEERS / "build_grpc.sh"], limit=300))
    mine = Contestant("Cohort", lambda: ours(quick))
    alone = Contestant("Cohort, gRPC alone", lambda: ours(quick, "--alone"))
    stream = Contestant("raw gRPC stream, tuned", lambda: raw(program, quick))
    peer = Contestant("tf.distribute.Server, its best setting", lambda: theirs(interpreter, quick), rounds=1)
    lines = []
    for kind, name in (("pull", "100 MiB of parameters read"), ("push", "100 MiB of gradients applied")):
        for side, how, other, target in ((alone, ", gRPC alone", stream, 0.8), (mine, "", stream, 0.8), (mine, "", peer, 0)):
            lines.append(Line(f"{name}, 1 ps + 1 worker{how}", "GB/s", side, kind, other, larger_is_better=True,
                              least_ratio=target))
    return [mine, alone, stream, peer], lines
