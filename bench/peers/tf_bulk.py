#!/usr/bin/env python3
"""Peer: bulk traffic of one worker with one parameter server.

"pull" reads the f32 parameters (100 MiB by default) from the ps to the worker. "push" sends gradients of the same size
from the worker, and applies them on the ps with assign_sub. "both" does one after the other in one step. The figures are
bytes per second. The values of the parameters are checked.
"""

import argparse
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import measure  # noqa: E402
import processes  # noqa: E402

START_VALUE = 1000.0


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--mib", type=int, default=100)
    p.add_argument("--tensors", type=int, default=1, help="the parameters are split evenly over that many variables")
    p.add_argument("--steps", type=int, default=20, help="steps of each kind in each round")
    p.add_argument("--rounds", type=int, default=3, help="rounds, each with a new cluster")
    p.add_argument("--malloc_tuned", action="store_true", help="glibc keeps freed memory (warm pages)")
    p.add_argument("--resource_variables", action="store_true", help="use resource variables instead of reference variables")
    p.add_argument("--idle_wait", type=float, default=20, help="seconds to wait for an idle machine before a round")
    p.add_argument("--task", help=argparse.SUPPRESS)
    return p.parse_args()


def build(tf, task):
    """Returns (initializer, pull, push, both). pull and both return the first element of every variable."""
    v1 = tf.compat.v1
    length = task["mib"] * 2**20 // 4 // task["tensors"]
    params, grads = [], []
    for i in range(task["tensors"]):
        with tf.device("/job:ps/task:0"):
            params.append(v1.get_variable(f"p{i}", [length], tf.float32, tf.constant_initializer(START_VALUE)))
        with tf.device("/job:worker/task:0"):
            grads.append(v1.get_variable(f"g{i}", [length], tf.float32, tf.constant_initializer(1.0)))
    with tf.device("/job:worker/task:0"):
        # The slice is computed on the worker, so that the whole tensor travels. The client on the same host fetches it.
        pull = tf.stack([tf.slice(p.read_value(), [0], [1])[0] for p in params])
    with tf.device("/job:ps/task:0"):
        push = tf.group(*[v1.assign_sub(p, g) for p, g in zip(params, grads)])
    with tf.control_dependencies([pull]):
        with tf.device("/job:worker/task:0"):
            late = [tf.identity(g) for g in grads]
        with tf.device("/job:ps/task:0"):
            applied = tf.group(*[v1.assign_sub(p, g) for p, g in zip(params, late)])
    with tf.control_dependencies([applied]), tf.device("/job:worker/task:0"):
        both = tf.identity(pull)
    return v1.global_variables_initializer(), pull, push, both


def run_task(task):
    import time

    import tensorflow as tf
    tf.compat.v1.disable_v2_behavior()
    if task["resource_variables"]:
        tf.compat.v1.enable_resource_variables()
    server = tf.distribute.Server(tf.train.ClusterSpec(task["cluster"]), job_name=task["job"], task_index=0)
    if task["job"] == "ps":
        server.join()
    init, pull, push, both = build(tf, task)
    with tf.compat.v1.Session(server.target) as session:
        session.run(init)
        pushes, seconds = 0, {"pull": [], "push": [], "both": []}
        for i in range(task["steps"] + 3):
            for kind, fetch in (("pull", pull), ("push", push), ("both", both)):
                start = time.perf_counter()
                result = session.run(fetch)
                elapsed = time.perf_counter() - start
                if kind != "push" and not (result == START_VALUE - pushes).all():
                    raise SystemExit(f"{kind}: read {result} after {pushes} pushes, expected {START_VALUE - pushes}")
                pushes += kind != "pull"
                if i >= 3:
                    seconds[kind].append(elapsed)
        processes.emit_event("done", version=tf.__version__, seconds=seconds)


def measure_round(args):
    measure.wait_until_idle(args.idle_wait)
    with processes.ReservedAddresses(2) as addresses, \
            processes.Children(limit_seconds=60 + 3 * args.steps) as children:
        def start(job):
            task = {"cluster": {"ps": addresses[:1], "worker": addresses[1:]}, "job": job, "mib": args.mib,
                    "tensors": args.tensors, "steps": args.steps, "resource_variables": args.resource_variables}
            return children.start(job, os.path.basename(__file__), ["--task", json.dumps(task)],
                                  env=processes.MALLOC_TUNED if args.malloc_tuned else {})
        start("ps")
        worker = start("worker")
        with measure.ForeignLoad(children.pids) as load:
            done = children.wait_for(worker, "done")
    return {**done, "foreign_cores": load.cores}


def main():
    args = parse()
    if args.task:
        run_task(json.loads(args.task))
        return
    if args.mib < 1 or args.tensors < 1 or args.mib * 2**18 % args.tensors:
        raise SystemExit(f"tf_bulk: --tensors={args.tensors} does not divide {args.mib} MiB of f32")
    rounds = [processes.first_success(lambda: measure_round(args)) for _ in range(args.rounds)]
    for kind in ("pull", "push", "both"):
        moved = args.mib * 2**20 * (2 if kind == "both" else 1)
        samples = [s for r in rounds for s in r["seconds"][kind]]
        measure.emit(peer="tf.distribute.Server bulk", version=rounds[0]["version"], figure=kind, bytes=moved,
                     tensors=args.tensors, malloc="tuned" if args.malloc_tuned else "default",
                     variables="resource" if args.resource_variables else "reference",
                     gb_per_s={"best": round(moved / min(samples) / 1e9, 3),
                               "median": round(moved / measure.percentile(samples, 0.5) / 1e9, 3),
                               "best_round": round(max(moved / measure.percentile(r["seconds"][kind], 0.5)
                                                       for r in rounds) / 1e9, 3)},
                     foreign_cores=max(r["foreign_cores"] for r in rounds))


if __name__ == "__main__":
    main()
