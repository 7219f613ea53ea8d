#!/usr/bin/env python3
"""Peer: the null step. Each worker reads one f32 scalar from each parameter server and does nothing else.

Workers do not wait for each other, as in asynchronous training. Either each worker has its own process and server, or the
workers are threads of one process with a session each. It prints the milliseconds of a step as a worker measures them.
"""

import argparse
import json
import os
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import measure  # noqa: E402
import processes  # noqa: E402


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ps", type=int, default=2)
    p.add_argument("--workers", type=int, nargs="+", default=[1, 8])
    p.add_argument("--modes", nargs="+", choices=["process", "thread"], default=["process", "thread"])
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--interop_threads", type=int, default=0, help="inter-op threads of every process; 0: TensorFlow's default")
    p.add_argument("--idle_wait", type=float, default=20, help="seconds to wait for an idle machine before a round")
    p.add_argument("--task", help=argparse.SUPPRESS)
    return p.parse_args()


def run_task(task):
    """Runs a ps or worker process. task: {"cluster": {...}, "job": ..., "index": ..., "threads": ...}"""
    import tensorflow as tf
    tf.compat.v1.disable_v2_behavior()
    server = tf.distribute.Server(tf.train.ClusterSpec(task["cluster"]), job_name=task["job"],
                                  task_index=task["index"])
    if task["job"] == "ps":
        server.join()
    ps_count = len(task["cluster"]["ps"])
    values, reads = [], []
    for i in range(ps_count):
        with tf.device(f"/job:ps/task:{i}"):
            values.append(tf.compat.v1.get_variable(f"v{i}", [], tf.float32, tf.constant_initializer(i + 3.0)))
            reads.append(values[-1].read_value())
    config = tf.compat.v1.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{task['index']}"])
    expected = [i + 3.0 for i in range(ps_count)]
    stop = processes.stop_requested()
    steps = [[] for _ in range(task["threads"])]  # per thread: (end, seconds)
    failures = []

    def loop(log):
        try:
            with tf.compat.v1.Session(server.target, graph=reads[0].graph, config=config) as session:
                session.run([v.initializer for v in values])
                while not stop.is_set():
                    start = time.time()
                    result = session.run(reads)
                    end = time.time()
                    if result != expected:
                        raise RuntimeError(f"null step gave {result}, expected {expected}")
                    log.append((end, end - start))
        except Exception as error:  # the driver must learn of a thread's failure
            failures.append(repr(error))

    threads = [threading.Thread(target=loop, args=(log,)) for log in steps]
    for thread in threads:
        thread.start()
    while not failures and any(len(log) < 50 for log in steps):
        time.sleep(0.05)
    processes.emit_event("ready")
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit(failures[0])
    processes.emit_event("done", version=tf.__version__, steps=steps)


def measure_round(args, mode, workers):
    measure.wait_until_idle(args.idle_wait)
    tasks, threads = (workers, 1) if mode == "process" else (1, workers)
    env = {"TF_NUM_INTEROP_THREADS": str(args.interop_threads)} if args.interop_threads else {}
    with processes.ReservedAddresses(args.ps + tasks) as addresses, \
            processes.Children(limit_seconds=90 + args.seconds) as children:
        cluster = {"ps": addresses[:args.ps], "worker": addresses[args.ps:]}

        def start(job, i):
            task = {"cluster": cluster, "job": job, "index": i, "threads": threads}
            return children.start(f"{job} {i}", os.path.basename(__file__), ["--task", json.dumps(task)], env=env)
        for i in range(args.ps):
            start("ps", i)
        children_workers = [start("worker", i) for i in range(tasks)]
        for w in children_workers:
            children.wait_for(w, "ready")
        begin = time.time() + 0.5
        time.sleep(0.5)
        with measure.ForeignLoad(children.pids) as load:
            time.sleep(args.seconds)
        end = time.time()
        for w in children_workers:
            w.stop()
        done = [children.wait_for(w, "done") for w in children_workers]
    samples = [seconds for d in done for log in d["steps"] for t, seconds in log if begin < t <= end]
    if not samples:
        raise processes.Failed(f"no step ended within {args.seconds} s")
    return {"mean": 1e3 * sum(samples) / len(samples), "ms": measure.percentile(samples, 0.5) * 1e3,
            "p99": measure.percentile(samples, 0.99) * 1e3, "rate": len(samples) / (end - begin), "version": done[0]["version"], "foreign_cores": load.cores}


def main():
    args = parse()
    if args.task:
        run_task(json.loads(args.task))
        return
    for mode in args.modes:
        for workers in args.workers:
            rounds = [processes.first_success(lambda: measure_round(args, mode, workers))
                      for _ in range(args.rounds)]
            measure.emit(peer="tf.distribute.Server null step", version=rounds[0]["version"], ps=args.ps,
                         workers=workers, each_worker_is_a=mode, interop_threads=args.interop_threads or "default",
                         ms_per_step=measure.best_and_median([r["ms"] for r in rounds], best=min),
                         ms_mean=measure.best_and_median([r["mean"] for r in rounds], best=min),
                         ms_p99=measure.best_and_median([r["p99"] for r in rounds], best=min),
                         steps_per_s_of_all=measure.best_and_median([r["rate"] for r in rounds], 0),
                         foreign_cores=max(r["foreign_cores"] for r in rounds))


if __name__ == "__main__":
    main()
