#!/usr/bin/env python3
"""Peer: guide-003's program, one parameter server and one worker in processes of their own on loopback.

The worker multiplies two int32 matrices of the parameter server in a MonitoredTrainingSession with a StopAtStepHook, and
counts the global step. The guide's own loop never ends, because nothing counts the step. Prints steps per second, from
the first step after a warm-up. It needs TensorFlow 2.15 (venv.sh tf215).
"""

import argparse
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import measure  # noqa: E402
import processes  # noqa: E402


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--steps", type=int, default=2000, help="steps after the warm-up")
    p.add_argument("--warmup", type=int, default=100, help="steps of the warm-up")
    p.add_argument("--task", help=argparse.SUPPRESS)
    return p.parse_args()


def run_task(args, task):
    import tensorflow as tf
    v1 = tf.compat.v1
    v1.disable_v2_behavior()
    cluster = tf.train.ClusterSpec(task["cluster"])
    server = tf.distribute.Server(cluster, job_name=task["job"], task_index=0)
    if task["job"] == "ps":
        server.join()
    with v1.device(v1.train.replica_device_setter(worker_device="/job:worker/task:0/cpu:0", cluster=cluster)):
        global_step = v1.train.get_or_create_global_step()
        x, w = v1.Variable([[1, 2, 3, 4]]), v1.Variable([[2], [2], [2], [2]])
        mat = tf.matmul(x, w)
        count = v1.assign_add(global_step, 1)
    last_step = args.warmup + args.steps
    runs, begin = 0, 0.0
    with v1.train.MonitoredTrainingSession(master=server.target, is_chief=True,
                                           hooks=[v1.train.StopAtStepHook(last_step=last_step)]) as session:
        while not session.should_stop():
            if runs == args.warmup:
                begin = time.perf_counter()
            product = session.run([mat, count])[0]
            runs += 1
        end = time.perf_counter()
    if product.tolist() != [[20]] or runs != last_step:
        raise SystemExit(f"tf_monitored_session: wrong result: {product} after {runs} of {last_step} runs")
    processes.emit_event("done", version=tf.__version__, steps_per_s=args.steps / (end - begin))


def main():
    args = parse()
    if args.task:
        run_task(args, json.loads(args.task))
        return

    def attempt():
        with processes.ReservedAddresses(2) as addresses, processes.Children(limit_seconds=120) as children:
            cluster = {"ps": addresses[:1], "worker": addresses[1:]}

            def start(job):
                return children.start(job, os.path.basename(__file__),
                                      ["--steps", args.steps, "--warmup", args.warmup,
                                       "--task", json.dumps({"cluster": cluster, "job": job})])
            start("ps")
            return children.wait_for(start("worker"), "done")

    done = processes.first_success(attempt)
    measure.emit(peer="guide-003's program", version=done["version"], steps_per_s=round(done["steps_per_s"], 1))


if __name__ == "__main__":
    main()
