#!/usr/bin/env python3
"""Peer: the first half of guide-002, an Estimator that train_and_evaluate trains and evaluates in this process.

It prints the seconds that the imports took, and those from the start of the interpreter to the end of
train_and_evaluate. It needs TensorFlow 2.15 (venv.sh tf215).
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import measure  # noqa: E402


def started_at():
    """Returns the time at which the kernel started this process, in seconds since the epoch."""
    with open("/proc/self/stat") as f:
        ticks = int(f.read().rpartition(")")[2].split()[19])
    with open("/proc/uptime") as f:
        uptime = float(f.read().split()[0])
    return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    before_imports = time.time()
    import tensorflow as tf
    import tensorflow.compat.v1 as tf1
    imports = time.time() - before_imports
    tf1.logging.set_verbosity(tf1.logging.ERROR)

    features, labels = [[1., 1.5], [2., 2.5], [3., 3.5]], [[0.3], [0.5], [0.7]]
    eval_features, eval_labels = [[4., 4.5], [5., 5.5], [6., 6.5]], [[0.8], [0.9], [1.]]

    def input_fn():
        return tf1.data.Dataset.from_tensor_slices((features, labels)).batch(1)

    def eval_input_fn():
        return tf1.data.Dataset.from_tensor_slices((eval_features, eval_labels)).batch(1)

    def model_fn(features, labels, mode):
        logits = tf1.layers.Dense(1)(features)
        loss = tf1.losses.mean_squared_error(labels=labels, predictions=logits)
        optimizer = tf1.train.AdagradOptimizer(0.05)
        train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
        return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    metrics, _ = tf1.estimator.train_and_evaluate(tf1.estimator.Estimator(model_fn=model_fn),
                                                  tf1.estimator.TrainSpec(input_fn=input_fn),
                                                  tf1.estimator.EvalSpec(input_fn=eval_input_fn))
    if metrics["global_step"] != 3:
        raise SystemExit(f"tf_estimator: wrong result: {metrics}")
    measure.emit(peer="guide-002's train_and_evaluate", version=tf.__version__, seconds=round(time.time() - started_at(), 4),
                 imports=round(imports, 4))


if __name__ == "__main__":
    main()
