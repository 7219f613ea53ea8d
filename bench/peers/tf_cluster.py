#!/usr/bin/env python3
"""Peer: starts a real cluster of tf_linear_regression.py on loopback and measures it.

By default all workers train for a warm-up and then for --seconds. The figures are the steps per second of each worker and
of all workers. With --startup, the figures are the times from the start of the processes, and from the construction of
tf.distribute.Server, to each worker's first training step.
"""

import argparse
import statistics
import time

import measure
import processes


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ps", type=int, default=1)
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--seconds", type=float, default=10)
    p.add_argument("--warmup", type=float, default=2)
    p.add_argument("--rounds", type=int, default=3, help="rounds, each with a new cluster")
    p.add_argument("--learning_rate", type=float, default=0.05)
    p.add_argument("--startup", action="store_true", help="measure start-up instead of steps")
    p.add_argument("--api", choices=["run", "callable"], default="run")
    p.add_argument("--executor", default="", help="executor type, for example SINGLE_THREADED_EXECUTOR")
    p.add_argument("--resource_variables", action="store_true")
    p.add_argument("--interop_threads", type=int, default=0, help="inter-op threads of every process; 0: TensorFlow's default")
    p.add_argument("--sync", action="store_true", help="SyncReplicasOptimizer; needs TensorFlow 2.15. The figure is then "
                                                       "global steps per second, and each worker has all of them")
    p.add_argument("--idle_wait", type=float, default=20, help="seconds to wait for an idle machine before a round")
    p.add_argument("--recovery_wait_secs", type=float, default=30, help="30 is Supervisor's default")
    return p.parse_args()


def start_cluster(children, addresses, args):
    ps, workers = addresses[:args.ps], addresses[args.ps:]
    common = ["--ps_hosts", ",".join(ps), "--worker_hosts", ",".join(workers), "--seconds", 600,
              "--until_stdin_ends", "--max_steps", 10**9, "--learning_rate", args.learning_rate, "--api", args.api, "--executor", args.executor,
              "--recovery_wait_secs", args.recovery_wait_secs]
    common += ["--resource_variables"] * args.resource_variables + ["--sync"] * args.sync

    env = {"TF_NUM_INTEROP_THREADS": str(args.interop_threads)} if args.interop_threads else {}

    def start(job, i):
        return children.start(f"{job} {i}", "tf_linear_regression.py",
                              common + ["--job_name", job, "--task_index", i], env=env)
    for i in range(args.ps):
        start("ps", i)
    return [start("worker", i) for i in range(args.workers)]


def steps_at(progress, t):
    """Returns the local steps at time t, by linear interpolation."""
    for (t0, n0), (t1, n1) in zip(progress, progress[1:]):
        if t0 <= t <= t1:
            return n0 + (n1 - n0) * (t - t0) / max(t1 - t0, 1e-9)
    raise processes.Failed(f"no progress was noted around {t}; give a longer --seconds")


def check_trained(done):
    if not (abs(done["weight"] - 2) < 0.5 and abs(done["bias"] - 10) < 0.5):
        raise SystemExit(f"tf_cluster: wrong result: trained weight {done['weight']}, bias {done['bias']}; expected about 2 and 10")


def measure_steps(args):
    measure.wait_until_idle(args.idle_wait)
    with processes.ReservedAddresses(args.ps + args.workers) as addresses, \
            processes.Children(limit_seconds=60 + args.warmup + args.seconds) as children:
        workers = start_cluster(children, addresses, args)
        begin = max(children.wait_for(w, "first_step")["time"] for w in workers) + args.warmup
        time.sleep(max(0, begin - time.time()))
        with measure.ForeignLoad(children.pids) as load:
            time.sleep(args.seconds)
            for w in workers:
                w.stop()
            done = [children.wait_for(w, "done") for w in workers]
        end = min([begin + args.seconds] + [d["progress"][-1][0] for d in done])
        for d in done:
            check_trained(d)
        rates = [(steps_at(d["progress"], end) - steps_at(d["progress"], begin)) / (end - begin) for d in done]
        return {"rates": rates, "total": min(rates) if args.sync else sum(rates), "window": end - begin, "version": done[0]["version"],
                "us_median": max(d["us_median"] for d in done), "us_p99": max(d["us_p99"] for d in done),
                "foreign_cores": load.cores}


def measure_startup(args):
    measure.wait_until_idle(args.idle_wait)
    with processes.ReservedAddresses(args.ps + args.workers) as addresses, \
            processes.Children(limit_seconds=90) as children:
        workers = start_cluster(children, addresses, args)
        result = {"from_process_start": [], "from_server_construction": []}
        for w in workers:
            first = children.wait_for(w, "first_step")["time"]
            constructing = children.wait_for(w, "constructing_server")["time"]
            result["from_process_start"].append(first - w.started)
            result["from_server_construction"].append(first - constructing)
        return result


def main():
    args = parse()
    shape = {"peer": "tf.distribute.Server linear regression", "ps": args.ps, "workers": args.workers,
             "sync": args.sync, "api": args.api, "executor": args.executor or "default",
             "variables": "resource" if args.resource_variables else "reference",
             "interop_threads": args.interop_threads or "default"}
    if args.startup:
        rounds = [processes.first_success(lambda: measure_startup(args)) for _ in range(args.rounds)]
        for kind in ("from_process_start", "from_server_construction"):
            measure.emit(**shape, figure=f"seconds {kind} to first step", recovery_wait_secs=args.recovery_wait_secs,
                         each_worker=[measure.best_and_median([r[kind][i] for r in rounds], best=min)
                                      for i in range(args.workers)],
                         all_workers=measure.best_and_median([max(r[kind]) for r in rounds], best=min))
        return
    rounds = [processes.first_success(lambda: measure_steps(args)) for _ in range(args.rounds)]
    measure.emit(**shape, figure="steps/s", version=rounds[0]["version"],
                 total=measure.best_and_median([r["total"] for r in rounds], 0),
                 each_worker=[measure.best_and_median([r["rates"][i] for r in rounds], 0) for i in range(args.workers)],
                 us_median=statistics.median(r["us_median"] for r in rounds),
                 us_p99=statistics.median(r["us_p99"] for r in rounds),
                 seconds=round(min(r["window"] for r in rounds), 1),
                 foreign_cores=max(r["foreign_cores"] for r in rounds))


if __name__ == "__main__":
    main()
