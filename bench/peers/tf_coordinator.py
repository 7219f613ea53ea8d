#!/usr/bin/env python3
"""Peer: ParameterServerStrategy with all workers and parameter servers in this process, as guide-002's notebook has them.

fit       guide-002's Keras model and data: 5 epochs of 10 steps; prints the milliseconds of a step of epochs 2 to 5
closures  ClusterCoordinator.schedule of a function that returns a scalar; prints closures per second

It needs TensorFlow 2.15 (venv.sh tf215).
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
    p.add_argument("what", choices=["fit", "closures"])
    p.add_argument("--workers", type=int, default=3)
    p.add_argument("--ps", type=int, default=2)
    p.add_argument("--count", type=int, default=1000, help="closures of a round")
    p.add_argument("--rounds", type=int, default=3, help="rounds of closures after the first one, which prepares")
    return p.parse_args()


def start_cluster(tf, args, addresses):
    """Starts the servers in this process, and returns a strategy and what must stay alive."""
    workers, ps = addresses[1:1 + args.workers], addresses[1 + args.workers:]
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"chief": addresses[:1], "worker": workers, "ps": ps},
                                          "task": {"type": "chief", "index": 0}})
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    config = tf.compat.v1.ConfigProto()
    config.inter_op_parallelism_threads = 4  # the guide's setting
    servers = [tf.distribute.Server(resolver.cluster_spec(), job_name="worker", task_index=i, config=config)
               for i in range(args.workers)]
    servers += [tf.distribute.Server(resolver.cluster_spec(), job_name="ps", task_index=i) for i in range(args.ps)]
    return tf.distribute.experimental.ParameterServerStrategy(resolver), servers


def fit(tf, strategy):
    dataset = tf.data.Dataset.from_tensor_slices(
        ([[1., 1.5], [2., 2.5], [3., 3.5]], [[0.3], [0.5], [0.7]])).shuffle(10).repeat().batch(64)
    with strategy.scope():
        model = tf.keras.models.Sequential([tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.Adagrad(learning_rate=0.05), "mse")
    begins = []
    note = tf.keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: begins.append(time.perf_counter()))
    history = model.fit(dataset, epochs=5, steps_per_epoch=10, verbose=0, callbacks=[note])
    end = time.perf_counter()
    losses = history.history["loss"]
    if not losses[-1] < losses[0]:
        raise SystemExit(f"tf_coordinator: wrong result: the losses {losses} do not fall")
    measure.emit(peer="guide-002's fit", version=tf.__version__, ms_per_step=round((end - begins[1]) * 1e3 / 40, 4))


def closures(tf, strategy, args):
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

    @tf.function
    def plus_one(x):
        return x + 1.0

    one, rates = tf.constant(1.0), []
    for _ in range(1 + args.rounds):
        begin = time.perf_counter()
        values = [coordinator.schedule(plus_one, args=(one,)) for _ in range(args.count)]
        coordinator.join()
        rates.append(args.count / (time.perf_counter() - begin))
        if float(values[-1].fetch()) != 2.0:
            raise SystemExit(f"tf_coordinator: wrong result: {values[-1].fetch()}")
    measure.emit(peer="ClusterCoordinator closures", version=tf.__version__, workers=args.workers,
                 per_second=measure.best_and_median(rates[1:], 0))


def main():
    args = parse()
    import tensorflow as tf

    with processes.ReservedAddresses(1 + args.workers + args.ps) as addresses:
        strategy, servers = start_cluster(tf, args, addresses)
        if args.what == "fit":
            fit(tf, strategy)
        else:
            closures(tf, strategy, args)
        os._exit(0 if servers else 1)  # the servers' threads do not end by themselves


if __name__ == "__main__":
    main()
