#!/usr/bin/env python3
"""Runs our benchmarks and their peers by turns and prints one table: medians, ratios, and whether a target is met.

Every figure of a row is measured in the same run: in each round each side starts its processes once, and every other
round goes through the sides backwards. Results are checked for their values on both sides. A side that fails is told
in the table and below it, and the exit status is then 1; a target that is not met is no failure.

Needs a release build (./dev bench peers makes it) and the peers' environment (made by bench/peers/venv.sh).
"""

import argparse
import os
import pathlib
import platform
import resource
import signal
import subprocess
import sys
import time

from rows import all_reduce, bulk, guide_network, linear_regression, null_step, programs, session_run, startup, table

ROWS = {
    "session": session_run.prepare,
    "linear_1": lambda *given: linear_regression.prepare(*given, workers=1),
    "linear_2": lambda *given: linear_regression.prepare(*given, workers=2),
    "null_1": lambda *given: null_step.prepare(*given, workers=1),
    "null_8": lambda *given: null_step.prepare(*given, workers=8),
    "bulk": bulk.prepare,
    "startup": startup.prepare,
    **{f"guide_{kind}{batch}_{threads}": lambda *given, b=batch, t=threads, k=kind: guide_network.prepare(
        *given, batch=b, threads=t, bfloat16=k != "")
       for kind in ("", "bfloat16_") for batch in (256, 64) for threads in (1, 2)},
    "all_reduce_2": lambda *given: all_reduce.prepare(*given, members=2),
    "all_reduce_4": lambda *given: all_reduce.prepare(*given, members=4),
}


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="ROW[,ROW]", default=",".join(ROWS), help=f"of {', '.join(ROWS)}")
    parser.add_argument("--rounds", type=int, default=3, help="starts of each side (3)")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that everything runs; the "
                                                             "figures mean little")
    parser.add_argument("--markdown", metavar="FILE", type=pathlib.Path, help="also write the table there")
    args = parser.parse_args()
    args.only = args.only.split(",")
    for row in args.only:
        if row not in ROWS:
            parser.error(f"--only: there is no row '{row}'; there are {', '.join(ROWS)}")
    if args.rounds < 1:
        parser.error("--rounds: at least 1")
    args.rounds = 1 if args.quick else args.rounds
    return args


class ForeignLoad:
    """How many cores processes other than this one and what it ran used on average since this was made."""

    def __init__(self):
        self._start = self._now()

    @staticmethod
    def _now():
        with open("/proc/stat") as f:
            user, nice, system, _, _, irq, softirq, *_ = (int(x) for x in f.readline().split()[1:])
        own = sum(usage.ru_utime + usage.ru_stime for usage in
                  (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))
        return time.monotonic(), (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK"), own

    def cores(self):
        seconds, busy, own = (after - before for before, after in zip(self._start, self._now()))
        return max(0.0, (busy - own) / max(seconds, 1e-3))


def progress(text):
    print(f"== {text}", file=sys.stderr, flush=True)


def measure(name, contestants, rounds):
    """Lets the sides take turns. One that fails sits out the rest."""
    for i in range(rounds):
        for side in contestants if i % 2 == 0 else reversed(contestants):
            if side.failures or i >= (side.rounds or rounds):
                continue
            progress(f"{name}, round {i + 1} of {rounds}: {side.name}")
            try:
                side.add(side.measure())
            except programs.Failed as error:
                side.failures.append(f"{name}, {side.name}: {error}")
                progress(f"failed: {side.failures[-1]}")


def run_row(name, python, args):
    """The row's lines of the table, and what failed."""
    load = ForeignLoad()
    try:
        contestants, lines = ROWS[name](python, args.quick)
    except programs.Failed as error:
        return [], [f"{name}: {error}"]
    measure(name, contestants, args.rounds)
    progress(f"{name}: other processes used {load.cores():.2f} cores meanwhile")
    cells = [line.cells() for line in lines]
    for line in table.markdown(cells)[2:]:
        print(line, file=sys.stderr, flush=True)
    return cells, [failure for side in contestants for failure in side.failures]


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=programs.ROOT).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def first_value(path, key):
    with open(path) as f:
        return next((line.split(":", 1)[1].strip() for line in f if line.startswith(key)), "?")


def conditions(python, args, commit, load, seconds):
    """What the reader of the table must know, as a paragraph."""
    tensorflow = output_of(python, "-c", "import importlib.metadata as m; print(*[d.version for d in m.distributions() "
                                         "if d.name.replace('_', '-') in ('tensorflow', 'tensorflow-cpu')])") or "?"
    memory = int(first_value("/proc/meminfo", "MemTotal").split()[0]) / 2**20
    with open("/proc/sys/net/ipv4/tcp_congestion_control") as f:
        congestion = f.read().strip()
    return (f"{os.cpu_count()} cores of {first_value('/proc/cpuinfo', 'model name')}, {memory:.0f} GiB, kernel "
            f"{platform.release().split('-')[0]}; {output_of('c++', '--version').splitlines()[0]}; gRPC "
            f"{output_of('pkg-config', '--modversion', 'grpc++')}; tensorflow {tensorflow} on Python "
            f"{output_of(python, '-V').removeprefix('Python ')}; loopback TCP ({congestion}). Commit {commit}. "
            f"{'A quick look, not a measurement: ' if args.quick else ''}{args.rounds} "
            f"round{'s' * (args.rounds > 1)}, {seconds / 60:.1f} minutes; other processes used {load:.2f} cores on "
            f"average. Median (least to greatest, n = starts of the processes).")


def main():
    args = parse()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda caught, _: sys.exit(f"compare: stopped by {signal.Signals(caught).name}"))
    start, load = time.monotonic(), ForeignLoad()
    commit = output_of("git", "describe", "--always", "--dirty") or "?"
    try:
        python = programs.last_line(programs.run([programs.PEERS / "venv.sh"], limit=900))
    except programs.Failed as error:
        sys.exit(f"compare: {error}")
    cells, failures = [], []
    for name in args.only:
        more_cells, more_failures = run_row(name, python, args)
        cells += more_cells
        failures += more_failures
    told = conditions(python, args, commit, load.cores(), time.monotonic() - start)
    text = "\n".join([told, "", *table.markdown(cells)])
    print(text)
    if args.markdown:
        args.markdown.write_text(text + "\n")
    for failure in failures:
        print(f"\nfailed: {failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
