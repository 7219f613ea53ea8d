#!/usr/bin/env python3
"""Peer: measures a step of tf.compat.v1.Session on graphs of 1 to 1000 small ops.

The graph is a chain on a fed x [rows, 8] f32: op 0 multiplies by -1, op 1 adds 1, op 2 multiplies by -1,
op 3 adds 3, ... (Mul and AddV2 by turns, op i adds (i % 7)). Every run feeds another x. The result, which is exact
in f32, is checked after every run.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import measure  # noqa: E402

SETTINGS = {  # name -> (inter_op_threads, intra_op_threads, executor)
    "default": (0, 0, ""),
    "threads_1": (1, 1, ""),
    "caller_thread": (-1, 1, ""),
    "single_threaded_executor": (1, 1, "SINGLE_THREADED_EXECUTOR"),
}


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ops", type=int, nargs="+", default=[1, 10, 100, 1000])
    p.add_argument("--rows", type=int, default=1, help="x is [rows, 8] f32")
    p.add_argument("--settings", nargs="+", choices=SETTINGS, default=["default", "threads_1", "single_threaded_executor"])
    p.add_argument("--seconds", type=float, default=1.0, help="seconds of each round")
    p.add_argument("--rounds", type=int, default=5)
    return p.parse_args()


def build(tf, ops, rows):
    """Returns (graph, x, y, sign, offset) with y = sign * x + offset."""
    graph, sign, offset = tf.Graph(), 1.0, 0.0
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [rows, 8], name="x")
        y = x
        for i in range(ops):
            if i % 2 == 0:
                y, sign, offset = tf.multiply(y, -1.0, name=f"op{i}"), -sign, -offset
            else:
                y, offset = tf.add(y, float(i % 7), name=f"op{i}"), offset + i % 7
    return graph, x, y, sign, offset


def config_for(tf, name):
    inter, intra, executor = SETTINGS[name]
    config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=inter, intra_op_parallelism_threads=intra)
    # A process has one pool, whose size its first session sets. -1 (no pool) has an effect only without an own pool.
    config.use_per_session_threads = inter > 0
    config.experimental.executor_type = executor
    return config


def executed_ops(tf, session, x, y, value):
    """Returns how many of the chain's ops the optimized graph runs."""
    options = tf.compat.v1.RunOptions(output_partition_graphs=True)
    metadata = tf.compat.v1.RunMetadata()
    session.run(y, {x: value}, options=options, run_metadata=metadata)
    return sum(n.op in ("Mul", "AddV2", "Add", "Neg", "Sub") for g in metadata.partition_graphs for n in g.node)


def runners(tf, session, x, y):
    """Returns the ways to run a step. Each is a function from a value of x to the value of y."""
    fetch_callable = session.make_callable(y, feed_list=[x])
    return {
        "tf.compat.v1.Session.run": lambda v: session.run(y, {x: v}),
        "tf.compat.v1.Session.make_callable": lambda v: fetch_callable(v),
    }


def main():
    args = parse()
    import numpy as np
    import tensorflow as tf

    tf.compat.v1.disable_v2_behavior()
    values = [np.arange(8 * args.rows, dtype=np.float32).reshape(args.rows, 8) + k for k in range(64)]
    for setting in args.settings:
        for ops in args.ops:
            graph, x, y, sign, offset = build(tf, ops, args.rows)
            expected = [sign * v + offset for v in values]

            def check(i, result):
                if not np.array_equal(result, expected[i % 64]):
                    raise SystemExit(f"tf_session_run: {ops} ops: run {i} gave {result}, expected {expected[i % 64]}")

            with tf.compat.v1.Session(graph=graph, config=config_for(tf, setting)) as session:
                executed = executed_ops(tf, session, x, y, values[0])
                for peer, run in runners(tf, session, x, y).items():
                    with measure.ForeignLoad() as load:
                        rounds = measure.time_rounds(lambda i: run(values[i % 64]), args.seconds, args.rounds, check)
                    measure.emit(peer=peer, version=tf.__version__, setting=setting, ops=ops, executed_ops=executed,
                                 rows=args.rows, **measure.summarise_us(rounds), foreign_cores=load.cores)


if __name__ == "__main__":
    main()
