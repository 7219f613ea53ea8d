#!/usr/bin/env python3
"""Peer: distributed linear regression, y = 2x + 10, as the classic between-graph TensorFlow program.

Weight and bias live on the parameter servers, every worker builds its own graph and applies plain SGD
asynchronously, or with --sync through a SyncReplicasOptimizer. Each process is one task. tf_cluster.py starts a whole
cluster and measures it.
Events are printed as JSON lines. Times are seconds since the epoch.
"""

import argparse
import collections
import os
import threading
import time

from processes import emit_event, stop_requested

PROCESS_START = time.time()
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ps_hosts", required=True, help="addresses of the parameter servers, host:port, separated by commas")
    p.add_argument("--worker_hosts", required=True, help="comma-separated host:port")
    p.add_argument("--job_name", required=True, choices=["ps", "worker"])
    p.add_argument("--task_index", type=int, default=0)
    p.add_argument("--learning_rate", type=float, default=0.00003)
    p.add_argument("--max_steps", type=int, default=1_000_000, help="global step at which training ends")
    p.add_argument("--seconds", type=float, default=60, help="seconds of training, from the worker's first step")
    p.add_argument("--until_stdin_ends", action="store_true", help="train until stdin ends, or for --seconds if that is shorter")
    p.add_argument("--api", choices=["run", "callable"], default="run", help="Session.run or Session.make_callable")
    p.add_argument("--executor", default="", help="executor type, for example SINGLE_THREADED_EXECUTOR")
    p.add_argument("--resource_variables", action="store_true", help="use resource variables instead of reference variables")
    p.add_argument("--sync", action="store_true", help="wait in each step for the mean of all workers' gradients; "
                                                       "the progress is then in global steps, and the end is that of stdin")
    p.add_argument("--recovery_wait_secs", type=float, default=30,
                   help="seconds between two checks whether the chief has initialized (30 is Supervisor's default)")
    return p.parse_args()


Model = collections.namedtuple("Model", "train loss step x label weight bias optimizer")


def build(tf, args, cluster):
    """Returns the model, and the op that initializes it; None with --sync, where the session's scaffold does it."""
    setter = tf.compat.v1.train.replica_device_setter(
        worker_device=f"/job:worker/task:{args.task_index}", cluster=cluster)
    with tf.compat.v1.device(setter):
        v1 = tf.compat.v1
        step = v1.get_variable("global_step", [], tf.int64, v1.zeros_initializer(), trainable=False)
        x, label = v1.placeholder(tf.float32, name="input"), v1.placeholder(tf.float32, name="label")
        weight = v1.get_variable("weight", [1], tf.float32, v1.random_normal_initializer())
        bias = v1.get_variable("biase", [1], tf.float32, v1.random_normal_initializer())
        loss = tf.square(label - (tf.multiply(x, weight) + bias))
        optimizer = v1.train.GradientDescentOptimizer(args.learning_rate)
        if args.sync:
            workers = cluster.num_tasks("worker")
            optimizer = v1.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=workers,
                                                       total_num_replicas=workers)
        train = optimizer.minimize(loss, global_step=step)
        model = Model(train, loss, step, x, label, weight, bias, optimizer)
        return model, None if args.sync else v1.global_variables_initializer()


def train_loop(args, session, np, model):
    """Runs steps until --seconds or --max_steps. Returns (progress, latencies in us, last loss)."""
    train, loss, step, x, label = model[:5]
    if args.api == "callable":
        run = session.make_callable([train, loss, step], feed_list=[x, label])
    else:
        def run(value, target):
            return session.run([train, loss, step], {x: value, label: target})
    stop = stop_requested() if args.until_stdin_ends else threading.Event()
    progress, latencies, local_steps = [], [], 0
    end = next_note = 0.0
    while True:
        value = np.random.randn(1)
        target = 2 * value + np.random.randn(1) * 0.33 + 10
        start = time.perf_counter()
        _, last_loss, global_step = run(value, target)
        now = time.perf_counter()
        if not local_steps:
            emit_event("first_step", task=args.task_index)
            end = now + args.seconds
        local_steps += 1
        latencies.append((now - start) * 1e6)
        if now >= next_note:
            progress.append((time.time(), local_steps))
            next_note = now + 0.1
        if now >= end or stop.is_set() or global_step >= args.max_steps:
            progress.append((time.time(), local_steps))
            return progress, latencies, float(np.asarray(last_loss).ravel()[0])


def main():
    args = parse()
    import numpy as np
    import tensorflow as tf

    import measure

    tf.compat.v1.disable_v2_behavior()
    if args.resource_variables:
        tf.compat.v1.enable_resource_variables()
    emit_event("imported", process_start=PROCESS_START)
    cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")})
    emit_event("constructing_server")
    server = tf.distribute.Server(cluster, job_name=args.job_name, task_index=args.task_index)
    emit_event("serving")
    if args.job_name == "ps":
        server.join()
        return
    with tf.Graph().as_default():
        model, init = build(tf, args, cluster)
        config = tf.compat.v1.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{args.task_index}"])
        config.experimental.executor_type = args.executor
        if args.sync:
            train_in_step(args, tf, np, model, server, config)
            return
        supervisor = tf.compat.v1.train.Supervisor(
            is_chief=args.task_index == 0, logdir=None, init_op=init, summary_op=None, saver=None, global_step=model.step,
            save_model_secs=0, recovery_wait_secs=args.recovery_wait_secs)
        with supervisor.managed_session(server.target, config=config) as session:
            progress, latencies, last_loss = train_loop(args, session, np, model)
            w, b = session.run([model.weight, model.bias])
            steady = latencies[len(latencies) // 3:]
            emit_event("done", task=args.task_index, version=tf.__version__, progress=progress, loss=last_loss,
                  weight=float(w[0]), bias=float(b[0]), us_median=round(measure.percentile(steady, 0.5), 1),
                  us_p99=round(measure.percentile(steady, 0.99), 1))


def train_in_step(args, tf, np, model, server, config):
    """Trains with SyncReplicasOptimizer until stdin ends. A worker whose peers have stopped waits for them for ever, so
    the steps run on a thread that the end of the process ends."""
    is_chief = args.task_index == 0
    hook = model.optimizer.make_session_run_hook(is_chief)
    session = tf.compat.v1.train.MonitoredTrainingSession(server.target, is_chief, hooks=[hook], config=config,
                                                          save_summaries_steps=None, save_summaries_secs=None)
    progress, stop = [], stop_requested()

    def steps():
        next_note = 0.0
        while True:
            value = np.random.randn(1)
            _, step = session.run([model.train, model.step],
                                  {model.x: value, model.label: 2 * value + np.random.randn(1) * 0.33 + 10})
            if not progress:
                emit_event("first_step", task=args.task_index)
            if time.time() >= next_note:
                progress.append((time.time(), int(step)))
                next_note = time.time() + 0.05
    threading.Thread(target=steps, daemon=True).start()
    stop.wait()
    noted = list(progress)
    w, b = session._tf_sess().run([model.weight, model.bias])
    emit_event("done", task=args.task_index, version=tf.__version__, progress=noted, weight=float(w[0]), bias=float(b[0]),
               us_median=0, us_p99=0)
    os._exit(0)


if __name__ == "__main__":
    main()
