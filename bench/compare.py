#!/usr/bin/env python3
"""Runs our benchmarks and their peers by turns and prints one table of ratios.

    bench/compare.py                    every figure
    bench/compare.py session linear     some of them

Needs a release build (./dev build) and the peers' environment (bench/peers/venv.sh).
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("COHORT_BUILD_DIR", ROOT / "build/release")) / "bin"
PEERS = ROOT / "bench/peers"


def run(command, timeout=300):
    """What a command prints; an error ends everything, with its output."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"compare: {command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def objects(text):
    """The JSON objects that stand on lines of their own, whatever the launcher puts before them."""
    return [json.loads(found.group()) for found in re.finditer(r"\{.*\}", text)]


def launch(ps, workers, *program):
    return run([BIN / "cohort", "launch", f"--ps={ps}", f"--workers={workers}", "--", *program])


def row(figure, ours, peer, unit, larger_is_better):
    ratio = ours / peer if larger_is_better else peer / ours
    print(f"| {figure} | {ours:.4g} {unit} | {peer:.4g} {unit} | {ratio:.1f} x |", flush=True)


def session(python):
    capi = run([PEERS / "build_capi.sh"]).splitlines()[-1]
    theirs = {(o["setting"], o["ops"]): o for o in objects(run([capi, "--seconds=1"]))}
    slow = {o["ops"]: o for o in objects(run([python, PEERS / "tf_session_run.py", "--settings", "default",
                                              "--seconds", "1"])) if o["peer"] == "tf.compat.v1.Session"}
    text = run([BIN / "session_run_bench", "--benchmark_filter=SessionRun", "--benchmark_format=json",
                "--benchmark_repetitions=5"])
    found = json.loads(text)["benchmarks"]
    for ops in (1, 10, 100, 1000):
        ours = next(b["real_time"] for b in found if b["name"] == f"BM_SessionRun/{ops}_median")
        for setting in ("default", "single_threaded_executor"):
            peer = theirs[(setting, ops)]["us_per_run_median"]
            row(f"`Session::Run`, {ops} ops, C API, {setting}", ours, peer, "us", False)
        row(f"`Session::Run`, {ops} ops, Python, default", ours, slow[ops]["us_per_run_median"], "us", False)


def linear(python):
    for workers in (1, 2):
        ours = []
        for _ in range(3):
            with tempfile.TemporaryDirectory() as logdir:
                text = launch(1, workers, BIN / "linear_regression", "--max_steps=20000", "--steps_to_validate=1000000",
                              "--learning_rate=0.001", f"--logdir={logdir}")
            ours.append(sum(float(x) for x in re.findall(r"([0-9.]+) steps/s", text)))
        theirs = objects(run([python, PEERS / "tf_cluster.py", "--workers", workers, "--seconds", "5",
                              "--resource_variables", "--interop_threads", "1"]))
        peer = next(o for o in theirs if o.get("figure") == "steps/s")
        row(f"linear regression, 1 ps + {workers} workers", statistics.median(ours), peer["total"]["median"], "steps/s",
            True)


def null_step(python):
    for workers in (1, 8):
        ours = objects(launch(2, workers, BIN / "cluster_steps", "null_step"))[-1]
        theirs = objects(run([python, PEERS / "tf_null_step.py", "--workers", workers, "--modes", "process"]))[-1]
        row(f"null step, 2 ps, {workers} workers", ours["ms_median"], theirs["ms_per_step"]["median"], "ms", False)


def bulk(python):
    ours = {o["bench"]: o for o in objects(launch(1, 1, BIN / "cluster_steps", "bulk"))}
    grpc = run([PEERS / "build_grpc.sh"]).splitlines()[-1]
    raw = objects(run([grpc, "--what=bulk"]))
    for kind in ("pull", "push"):
        peer = max(o["gb_per_s_median"] for o in raw if o["figure"] == kind and o["net"] == "tcp")
        row(f"100 MB {kind}, raw gRPC stream", ours[f"bulk_{kind}"]["gb_per_s_median"], peer, "GB/s", True)


def startup(python):
    ours = max(o["ms_from_server_to_first_step"] for o in objects(launch(2, 2, BIN / "cluster_steps", "startup")))
    theirs = objects(run([python, PEERS / "tf_cluster.py", "--ps", "2", "--workers", "2", "--startup",
                          "--recovery_wait_secs", "0.1"]))
    peer = next(o for o in theirs if "from_server_construction" in o["figure"])
    row("server start to first step, 2 ps + 2 workers", ours, 1000 * peer["all_workers"]["median"], "ms", False)


FIGURES = {f.__name__: f for f in (session, linear, null_step, bulk, startup)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=", ".join(FIGURES))
    chosen = parser.parse_args().figures or list(FIGURES)
    for name in chosen:
        if name not in FIGURES:
            parser.error(f"there is no figure '{name}'; there are {', '.join(FIGURES)}")
    python = run([PEERS / "venv.sh"], timeout=900).splitlines()[-1]
    print("| what | Cohort | peer | ratio |\n| --- | --- | --- | --- |", flush=True)
    for name in chosen:
        FIGURES[name](python)


if __name__ == "__main__":
    main()
