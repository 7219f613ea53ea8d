"""Takes samples, summarizes them and prints one JSON object on each line of stdout. Every peer script uses it."""

import json
import os
import statistics
import time


def percentile(samples, fraction):
    """Returns the smallest sample that at least `fraction` of all samples do not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, max(0, -int(-fraction * len(ordered) // 1) - 1))]


def time_rounds(step, seconds, rounds, check=None, warmup=20, min_samples=20):
    """Calls step(i) for i = 0, 1, ... during `rounds` rounds of `seconds` each.

    Only step is timed. check(i, result) runs between the timed calls. Returns a list of lists of seconds.
    """
    i = 0
    for _ in range(warmup):
        result = step(i)
        if check:
            check(i, result)
        i += 1
    all_rounds = []
    for _ in range(rounds):
        samples = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(samples) < min_samples:
            start = time.perf_counter()
            result = step(i)
            samples.append(time.perf_counter() - start)
            if check:
                check(i, result)
            i += 1
        all_rounds.append(samples)
    return all_rounds


def summarise_us(rounds):
    """Returns medians over rounds, and the best round (because other jobs may share the machine)."""
    medians = [statistics.median(r) * 1e6 for r in rounds]
    return {
        "us_per_run_median": round(statistics.median(medians), 2),
        "us_per_run_best": round(min(medians), 2),
        "p99": round(statistics.median([percentile(r, 0.99) * 1e6 for r in rounds]), 2),
        "runs": sum(len(r) for r in rounds),
    }


def best_and_median(values, digits=3, best=max):
    return {"best": round(best(values), digits), "median": round(statistics.median(values), digits)}


def busy_ticks():
    """Returns the seconds of all cores since the machine was started."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, softirq, *_ = (int(x) for x in f.readline().split()[1:])
    return user + nice + system + irq + softirq


class ForeignLoad:
    """Measures how many cores processes other than `pids` and this one used on average while the block ran."""

    def __init__(self, pids=()):
        self._pids = set(pids) | {os.getpid()}

    def _own_ticks(self):
        total = 0
        for pid in self._pids:
            try:
                with open(f"/proc/{pid}/stat") as f:
                    fields = f.read().rpartition(")")[2].split()
                total += int(fields[11]) + int(fields[12])
            except (FileNotFoundError, ProcessLookupError):
                pass
        return total

    def __enter__(self):
        self._start = time.time(), busy_ticks(), self._own_ticks()
        return self

    def __exit__(self, *_):
        start, busy, own = self._start
        ticks = (busy_ticks() - busy) - (self._own_ticks() - own)
        elapsed = max(time.time() - start, 1e-3)
        self.cores = round(max(0.0, ticks / os.sysconf("SC_CLK_TCK") / elapsed), 2)


def wait_until_idle(limit_seconds, max_cores=0.05):
    """Waits until other processes have used almost nothing for half a second, but not longer than the given time."""
    end = time.time() + limit_seconds
    while time.time() < end:
        with ForeignLoad() as load:
            time.sleep(0.5)
        if load.cores <= max_cores:
            return


def emit(**fields):
    print(json.dumps(fields), flush=True)


class PeakMemory:
    """Measures the most resident memory of this process since the object was made, minus the memory at that time."""

    def __init__(self):
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")  # resets the peak
        self._start = self._kib("VmRSS")

    @staticmethod
    def _kib(field):
        with open("/proc/self/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith(field + ":"))

    def mib(self):
        return (self._kib("VmHWM") - self._start) / 1024
