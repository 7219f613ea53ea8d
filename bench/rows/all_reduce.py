"""The rows of all-reduce of float32 sums with 2 and with 4 members. Ours runs between processes of a host, with gRPC
alone, and inside one process. Gloo runs over TCP."""

from rows import programs
from rows.table import Contestant, Line

SIZES = {4096: "4 KB", 1 << 20: "1 MB", 2887306 * 4: "11.5 MB", 100 << 20: "100 MB", 0: "4 KB, 1 MB, 11.5 MB in turn"}


def measure(side, members, quick):
    """Returns, for each size, the figures of the Gloo algorithm with the best median. One that stalls is left out."""
    text = programs.run([programs.BIN / "collective_bench", f"--sides={side}", f"--members={members}", "--limit_s=30",
                         f"--effort={0.05 if quick else 0.5}"], limit=500)
    figures = {}
    for size in SIZES:
        found = [o for o in programs.objects(text) if o["bytes"] == size and not o.get("failed")]
        if not found:
            raise programs.Failed(f"collective_bench: nothing of {side} with {members} members and {size} bytes:\n{text}")
        best = min(found, key=lambda o: o["median_us"])
        figures[f"{size}"] = best["median_us"] / 1000
        figures[f"{size} p99"] = best["p99_us"] / 1000
    return figures


def prepare(_, quick, members):
    gloo = Contestant("Gloo's best algorithm, TCP", lambda: measure("gloo", members, quick))
    host = Contestant("Cohort, one host", lambda: measure("grpc", members, quick))
    grpc = Contestant("Cohort, gRPC alone", lambda: measure("grpc_alone", members, quick))
    inside = Contestant("Cohort, in process", lambda: measure("in_process", members, quick))
    lines = []
    for side, where, target in ((grpc, f"{members} processes, gRPC alone", 0.7),
                                (host, f"{members} processes of a host", 0.7),
                                (inside, f"{members} devices, in process", 5)):
        for size, name in SIZES.items():
            lines.append(Line(f"all-reduce, {name}, {where}", "ms", side, f"{size}", gloo, least_ratio=target))
            # With mixed sizes Gloo may stall. Ours must not.
            lines.append(Line("the same, p99", "ms", side, f"{size} p99", gloo, least_ratio=0 if size else 0.7))
    return [grpc, gloo, host, inside], lines
