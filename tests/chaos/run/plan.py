"""Which faults there are, and the seeded list of those that a run injects."""

import dataclasses
import random

JOBS = ("asynchronous", "in_graph", "mirrored")

# What each kind of fault does, for the table.
KINDS = {
    "kill": "kill -9",
    "stop": "SIGSTOP for ever",
    "pause": "SIGSTOP for 8 s",
    "late": "delayed start",
    "cut_one_way": "network cut one way for 8 s",
    "cut_both_ways": "network cut both ways for 8 s",
    "disk": "disk full twice",
    "port": "kill -9, and another process takes the port",
    "hang": "user code never returns; the run kills the task if nobody waits for it",
    "torn": "the newest checkpoint is damaged, then kill -9",
}
# The kinds that need the right to make namespaces.
NEED_NAMESPACES = ("cut_one_way", "cut_both_ways", "disk")

# The kinds that can come while the tasks start.
MAY_BE_EARLY = ("kill", "stop", "pause", "port")

# The task of each role. A launcher is no task.
TASKS = {"ps": ("ps/0", "ps/1"), "chief": ("worker/0",), "worker": ("worker/1",), "launcher": ()}

_ROLES = {
    "kill": ("ps", "chief", "worker", "launcher"),
    "stop": ("ps", "chief", "worker"),  # a launcher that is stopped for ever only pauses: see "pause"
    "pause": ("ps", "chief", "worker", "launcher"),
    "late": ("ps", "chief", "worker"),
    "cut_one_way": ("ps", "chief", "worker"),
    "cut_both_ways": ("ps", "chief", "worker"),
    "disk": ("chief",),
    "port": ("ps", "chief", "worker"),
    "hang": ("chief", "worker"),
    "torn": ("ps", "chief", "worker", "launcher"),
}


def _makes_sense(job, kind, role):
    if job == "mirrored" and role == "ps":
        return False  # there is none
    if kind == "hang" and job == "in_graph" and role == "worker":
        return False  # it only serves, so it runs no code of the user
    if kind == "torn" and job != "mirrored" and role in ("chief", "worker"):
        return False  # nothing is restored: the parameter servers live
    return True


CASES = tuple((job, kind, role) for kind in KINDS for job in JOBS for role in _ROLES[kind] if _makes_sense(job, kind, role))


@dataclasses.dataclass(frozen=True)
class Fault:
    index: int
    job: str
    kind: str
    role: str
    moment: float  # seconds after the job has begun to train; if `early`, seconds after the launch
    early: bool  # whether the fault comes before the job trains
    mixed: bool  # whether a restored parameter server keeps the others as they are (allow_mixed_steps)
    default_limit: bool  # whether the launcher has its default of --unhealthy_after
    details: int  # the seed of what else is drawn: which of two servers, which bytes

    @property
    def name(self):
        return f"{self.job}/{self.kind}/{self.role}"

    def random(self):
        return random.Random(self.details)

    def task(self):
        """Returns the task that the fault hits, or "launcher"."""
        tasks = TASKS[self.role]
        return tasks[self.details % len(tasks)] if tasks else "launcher"


def fault_of(seed, index, case=None):
    """Returns fault `index` of a seed. It does not depend on the other faults. Each round through CASES has another order."""
    if case is None:
        order = list(CASES)
        random.Random(f"{seed} round {index // len(CASES)}").shuffle(order)
        case = order[index % len(CASES)]
    draw = random.Random(f"{seed} fault {index}")
    early = case[1] in MAY_BE_EARLY and draw.random() < 0.2
    return Fault(index, *case, moment=draw.uniform(0.0, 0.3 if early else 3.0), early=early, mixed=draw.random() < 0.5,
                 default_limit=draw.random() < 0.2, details=draw.randrange(2**32))


# The short list has what no other test does under the launcher (docs/reliability.md).
SHORT = (
    ("mirrored", "hang", "worker"),
    ("mirrored", "stop", "worker"),
    ("in_graph", "stop", "worker"),
    ("asynchronous", "pause", "launcher"),
    ("asynchronous", "pause", "chief"),
    ("asynchronous", "cut_both_ways", "ps"),
    ("in_graph", "cut_one_way", "worker"),
    ("mirrored", "disk", "chief"),
    ("asynchronous", "kill", "launcher"),
    ("asynchronous", "torn", "launcher"),
    ("asynchronous", "port", "ps"),
    ("asynchronous", "late", "ps"),
    ("in_graph", "kill", "ps"),
    ("in_graph", "kill", "chief"),
    ("in_graph", "kill", "worker"),
    ("mirrored", "kill", "worker"),
)


def short_plan(seed):
    faults = [fault_of(seed, index, case) for index, case in enumerate(SHORT)]
    return [dataclasses.replace(fault, default_limit=False, early=False) for fault in faults]


def plan(seed, count, only=None, without=()):
    """Returns the first `count` faults of the seed whose kinds are in `only` (None: all) and not in `without`."""
    faults = []
    index = 0
    wanted = set(KINDS if only is None else only) - set(without)
    while wanted and len(faults) < count:
        fault = fault_of(seed, index)
        if fault.kind in wanted:
            faults.append(fault)
        index += 1
    return faults
