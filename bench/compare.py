#!/usr/bin/env python3
"""Runs our benchmarks and their peers by turns and prints one table: medians, ratios, and whether a target is met.

Every figure of a row is measured in the same run. In each round each side starts its processes once. Every second round
goes through the sides backwards. The values of the results are checked on both sides. If a side fails, the table and the
lines below it say so, and the exit status is 1. It is not a failure if a target is not met.

It needs a release build (./dev bench peers makes it) and the peers' environment (bench/peers/venv.sh makes it).
"""

import argparse
import pathlib
import sys
import time

from rows import (all_reduce, bulk, conditions, coordinator, guide_004, guide_network, guides, input_pipeline, linear_regression,
                  null_step, page, programs, scaling, session_run, startup, sync_replicas, table, tf215, tls, turns, workers)

# Rows whose peer, if they have one that is not Cohort, is TensorFlow 2.15 (rows/tf215.py). They need no other environment.
ROWS_OF_TF215 = {
    "guide_002_fit": coordinator.prepare_fit,
    "guide_002_estimator": guides.prepare_estimator,
    "guide_003": guides.prepare_003,
    "guide_004": guide_004.prepare,
    "closures_1": lambda *given: coordinator.prepare_closures(*given, workers=1),
    "closures_4": lambda *given: coordinator.prepare_closures(*given, workers=4),
    "sync_replicas": sync_replicas.prepare,
    "hooks": guides.prepare_hooks,
}

ROWS = {
    "session": session_run.prepare,
    "linear_1": lambda *given: linear_regression.prepare(*given, workers=1),
    "linear_2": lambda *given: linear_regression.prepare(*given, workers=2),
    "null_1": lambda *given: null_step.prepare(*given, workers=1),
    "null_8": lambda *given: null_step.prepare(*given, workers=8),
    "bulk": bulk.prepare,
    "tls": tls.prepare,
    "startup": startup.prepare,
    **{f"guide_{kind}{batch}_{threads}": lambda *given, b=batch, t=threads, k=kind: guide_network.prepare(
        *given, batch=b, threads=t, bfloat16=k != "")
       for kind in ("", "bfloat16_") for batch in (256, 64) for threads in (1, 2)},
    "workers_2": workers.prepare,
    "workers_2_1gbit": workers.prepare_slow,
    "scaling": scaling.prepare,
    "input": input_pipeline.prepare,
    "all_reduce_2": lambda *given: all_reduce.prepare(*given, members=2),
    "all_reduce_4": lambda *given: all_reduce.prepare(*given, members=4),
    **ROWS_OF_TF215,
}


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="ROW[,ROW]", default=",".join(ROWS),
                        help=f"run only these rows. Rows: {', '.join(ROWS)}")
    parser.add_argument("--rounds", type=int, default=3, help="start each side so many times (3)")
    parser.add_argument("--quick", action="store_true", help="run one short round, to see that everything runs; "
                                                             "the figures mean little")
    parser.add_argument("--markdown", metavar="FILE", type=pathlib.Path, help="also write the table to FILE. If the "
                        "file has a place for it, as docs/benchmarks.md has, all rows have to be measured in all rounds")
    args = parser.parse_args()
    args.only = args.only.split(",")
    for row in args.only:
        if row not in ROWS:
            parser.error(f"--only: there is no row '{row}'; there are {', '.join(ROWS)}")
    if args.rounds < 1:
        parser.error("--rounds: at least 1")
    args.page = args.markdown.read_text() if args.markdown and args.markdown.exists() else ""
    if page.has_place(args.page) and (args.quick or set(args.only) != set(ROWS)):
        parser.error(f"--markdown: {args.markdown} has a place for the whole table; leave out --quick and --only")
    args.rounds = 1 if args.quick else args.rounds
    return args


def run_row(name, python, args):
    """Returns the row's lines of the table, and the sides that failed."""
    load = turns.ForeignLoad()
    try:
        contestants, lines = ROWS[name](python, args.quick)
    except programs.Failed as error:
        return [], [f"{name}: {error}"]
    except programs.Unavailable as reason:
        turns.progress(f"{name}: left out: {reason}")
        return [[f"`{name}`", f"left out: {reason}", "-", "-", "-", "-", "-"]], []
    turns.measure(name, contestants, args.rounds)
    turns.progress(f"{name}: other processes used {load.cores():.2f} cores meanwhile")
    cells = [line.cells() for line in lines]
    for line in table.markdown(cells)[2:]:
        print(line, file=sys.stderr, flush=True)
    return cells, [failure for side in contestants for failure in side.failures]


def main():
    args = parse()
    turns.end_on_signals("compare")
    start, load, commit = time.monotonic(), turns.ForeignLoad(), conditions.commit()
    try:
        needs_others = not set(args.only) <= set(ROWS_OF_TF215)
        python = programs.last_line(programs.run([programs.PEERS / "venv.sh"], limit=900)) if needs_others else tf215.python()
    except programs.Failed as error:
        sys.exit(f"compare: {error}")
    cells, failures = [], []
    for name in args.only:
        more_cells, more_failures = run_row(name, python, args)
        cells += more_cells
        failures += more_failures
    told = (f"{conditions.machine()}; {conditions.tensorflow(python)}; "
            f"{conditions.other_peers(guide_network.TORCH_PYTHON, guide_network.TORCH_WHEEL_PYTHON)}; "
            f"{conditions.loopback()}. "
            f"{conditions.run(args, commit, load.cores(), time.monotonic() - start)}")
    text = "\n".join([told, "", *table.markdown(cells)])
    print(text)
    if args.markdown:
        args.markdown.write_text(page.with_table(args.page, text) if page.has_place(args.page) else text + "\n")
    for failure in failures:
        print(f"\nfailed: {failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
