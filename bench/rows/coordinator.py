"""The rows of a coordinator with workers and parameter servers in its own process: closures per second with 1 and with 4
workers, and guide-002's `Fit` on 3 workers and 2 parameter servers."""

from rows import programs, tf215
from rows.table import Contestant, Line


def ours(*arguments):
    return programs.only(programs.objects(programs.run([programs.BIN / "coordinator_bench", *arguments], limit=60)),
                         "coordinator_bench")


def prepare_closures(_, quick, workers):
    def theirs():
        rate = tf215.only_result("tf_coordinator.py", "closures", "--workers", workers, "--ps", 1,
                                 "--count", 100 if quick else 1000, "--rounds", 1 if quick else 3)["per_second"]
        return {"rate": rate["median"]}

    mine = Contestant("Cohort", lambda: {"rate": ours("closures", f"--workers={workers}")["per_second"]["median"]})
    peer = Contestant(f"ClusterCoordinator of {tf215.NAME}", theirs)
    return [mine, peer], [Line(f"closures that return a scalar, {workers} worker{'s' * (workers > 1)} in process",
                               "closures/s", mine, "rate", peer, larger_is_better=True, least_ratio=10)]


def prepare_fit(_, quick):
    mine = Contestant("Cohort", lambda: {"ms": ours("fit")["ms_per_step"]})
    peer = Contestant(f"`fit` of {tf215.NAME}",
                      lambda: {"ms": tf215.only_result("tf_coordinator.py", "fit")["ms_per_step"]})
    return [mine, peer], [Line("guide-002's `Fit`, 3 workers + 2 ps in process, a step of epochs 2 to 5", "ms", mine, "ms",
                               peer, least_ratio=10)]
