"""The rows of an asynchronous linear regression with one parameter server, and one or two workers."""

import dataclasses
import re
import statistics
import tempfile

from rows import programs
from rows.table import Contestant, Line

LEARNING_RATE = 0.05  # it fits within 100 steps, so that the result can be checked on a slow machine, too


def check_fit(text):
    found = re.findall(r"step: \d+, weight: (\S+), biase: (\S+),", text)
    if not found or abs(float(found[-1][0]) - 2) > 0.5 or abs(float(found[-1][1]) - 10) > 0.5:
        raise programs.Failed(f"linear_regression: trained (weight, biase) {found}; expected about 2 and 10")


def ours(workers, quick):
    steps = 2000 if quick else 30000 * workers
    with tempfile.TemporaryDirectory() as logdir:
        text = programs.launch(1, workers, programs.BIN / "linear_regression", f"--max_steps={steps}",
                               f"--steps_to_validate={steps // 10}", f"--learning_rate={LEARNING_RATE}",
                               f"--logdir={logdir}", limit=60)
    check_fit(text)
    done = [(int(made), float(seconds)) for made, seconds in re.findall(r"(\d+) steps in ([0-9.]+) s", text)]
    if len(done) != workers:
        raise programs.Failed(f"linear_regression: {len(done)} workers said how fast they were:\n{text}")
    # The steps of all workers are divided by the longest of their times, so that steps of a worker alone do not count more.
    return {"rate": sum(made for made, _ in done) / max(seconds for _, seconds in done),
            "step_us": 1e6 * statistics.mean(seconds / made for made, seconds in done)}


def theirs(interpreter, workers, quick, *setting):
    text = programs.run([interpreter, programs.PEERS / "tf_cluster.py", "--workers", workers, "--rounds", 1,
                         "--seconds", 1 if quick else 2, "--warmup", 0.5, "--idle_wait", 0,
                         "--recovery_wait_secs", 0.1, "--learning_rate", LEARNING_RATE, *setting], limit=300)
    return {"rate": programs.only(programs.objects(text), "tf_cluster.py", figure="steps/s")["total"]["median"]}


def round_trip(program, quick):
    """Measures the round trip of a small message on a raw gRPC stream, with the fastest API that does not spin."""
    text = programs.run([program, "--what=ping", "--net=tcp", "--apis=sync-sync,callback-callback,queue-queue",
                         f"--count={1000 if quick else 5000}", "--rounds=1"], limit=60)
    return {"round_trip_us": min(o["us_median"] for o in programs.objects(text))}


@dataclasses.dataclass
class PerRoundTrip(Line):
    """Shows our step in round trips of the raw stream. It cannot be smaller than one, so there is no ratio."""

    instead_of: tuple = ()  # lines that make this line's target needless if their targets are met

    def ours_in_trips(self):
        step, trip = self.ours.median(self.figure), self.peer.median(self.peer_figure)
        return None if step is None or trip is None else step / trip

    def ratio(self):
        return None

    def met(self):
        trips = self.ours_in_trips()
        return None if trips is None else trips <= self.most

    def target(self):
        return f"at most {self.most:g} round trips, where 10 x is not reached"

    def cells(self):
        what, mine, name, peer, _, target, verdict = super().cells()
        trips = self.ours_in_trips()
        if self.met() is False and all(line.met() for line in self.instead_of):
            verdict = "not needed"
        return [what, mine, name, peer, "-" if trips is None else f"{trips:.2f} round trips", target, verdict]


def prepare(interpreter, quick, workers):
    program = programs.last_line(programs.run([programs.PEERS / "build_grpc.sh"], limit=300))
    best_setting = ("--resource_variables", "--interop_threads", 1, "--api", "callable")
    mine = Contestant("Cohort", lambda: ours(workers, quick))
    default = Contestant("tf.distribute.Server, default", lambda: theirs(interpreter, workers, quick))
    best = Contestant("tf.distribute.Server, its best setting",
                      lambda: theirs(interpreter, workers, quick, *best_setting))
    raw = Contestant("raw gRPC stream, round trip", lambda: round_trip(program, quick))
    name = f"linear regression, 1 ps + {workers} worker{'s' * (workers > 1)}"
    lines = [Line(name, "steps/s", mine, "rate", peer, larger_is_better=True, least_ratio=10)
             for peer in (default, best)]
    lines.append(PerRoundTrip(f"{name}, a step of one worker", "us", mine, "step_us", raw, "round_trip_us", most=2.5,
                              instead_of=tuple(lines)))
    return [mine, default, best, raw], lines
