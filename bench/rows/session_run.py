"""The rows of a local session on chains of 1 to 1000 small ops. Each step has a new feed, and its result is checked."""

import json

from rows import programs
from rows.table import Contestant, Line

SIZES = (1, 10, 100, 1000)


def ours(quick):
    text = programs.run([programs.BIN / "session_run_bench", "--benchmark_filter=BM_SessionRun",
                         "--benchmark_format=json", "--benchmark_repetitions=5",
                         f"--benchmark_min_time={0.05 if quick else 0.1}"], limit=60)
    found = json.loads(text)["benchmarks"]
    wrong = [b["error_message"] for b in found if b.get("error_occurred")]
    if wrong:
        raise programs.Failed(f"session_run_bench: {wrong[0]}")
    return {str(ops): programs.only(found, "session_run_bench", name=f"BM_SessionRun/{ops}_median")["us_median"]
            for ops in SIZES}


def capi(program, setting, quick):
    text = programs.run([program, f"--settings={setting}", f"--seconds={0.05 if quick else 0.1}", "--rounds=5"],
                        limit=60)
    return {str(o["ops"]): o["us_per_run_median"] for o in programs.objects(text)}


def python(interpreter, setting, quick):
    text = programs.run([interpreter, programs.PEERS / "tf_session_run.py", "--settings", setting, "--seconds",
                         0.05 if quick else 0.1, "--rounds", 5], limit=90)
    return {str(o["ops"]): o["us_per_run_median"] for o in programs.objects(text)
            if o["peer"] == "tf.compat.v1.Session.run"}


def prepare(interpreter, quick):
    program = programs.last_line(programs.run([programs.PEERS / "build_capi.sh"], limit=300))
    best = "single_threaded_executor"
    mine = Contestant("Session::Run", lambda: ours(quick))
    peers = [(Contestant("TensorFlow's C API, default", lambda: capi(program, "default", quick)), 5),
             (Contestant("TensorFlow's C API, its best setting", lambda: capi(program, best, quick)), 5),
             (Contestant("tf.compat.v1.Session, default", lambda: python(interpreter, "default", quick)), 20),
             (Contestant("tf.compat.v1.Session, its best setting", lambda: python(interpreter, best, quick)), 20)]
    lines = [Line(f"`Session::Run`, {ops} op{'s' * (ops > 1)}", "us", mine, str(ops), peer, least_ratio=target)
             for ops in SIZES for peer, target in peers]
    return [mine, *(peer for peer, _ in peers)], lines
