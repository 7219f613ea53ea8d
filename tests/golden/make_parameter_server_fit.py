"""Writes parameter_server_fit.txt: what TensorFlow 2.15.1 (Keras 2) computes in Model.fit under a
ParameterServerStrategy with one worker, whose data have a fixed order.

    pip install tensorflow==2.15.1
    python make_parameter_server_fit.py parameter_server_fit.txt

Each line is a name and its values. The weights and data begin as the formulas below say, so that another program can
make them.
"""

import os
import socket
import sys

import numpy as np

EPOCHS, STEPS, BATCH = 3, 5, 4


def waves(shape, scale, shift):
    """Numbers that follow from their positions, in [-scale, scale]."""
    i = np.arange(int(np.prod(shape)), dtype=np.float64)
    return (scale * (((i * 37 + shift) % 19) - 9) / 9).astype(np.float32).reshape(shape)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def open_strategy(tf, shards):
    cluster = {job: ["127.0.0.1:%d" % free_port() for _ in range(n)] for job, n in (("worker", 1), ("ps", 2))}
    spec = tf.train.ClusterSpec(cluster)
    for job, tasks in cluster.items():
        for i in range(len(tasks)):
            tf.distribute.Server(spec, job_name=job, task_index=i, protocol="grpc")
    os.environ["GRPC_FAIL_FAST"] = "use_caller"
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, rpc_layer="grpc")
    partitioner = tf.distribute.experimental.partitioners.FixedShardsPartitioner(shards) if shards > 1 else None
    return tf.distribute.experimental.ParameterServerStrategy(resolver, variable_partitioner=partitioner)


def train(tf, strategy, make_optimizer):
    with strategy.scope():
        model = tf.keras.Sequential(
            [tf.keras.layers.Dense(6, activation="tanh", input_shape=(3,)), tf.keras.layers.Dense(1)])
        model.compile(optimizer=make_optimizer(), loss="mse", metrics=["mae"])
    model.set_weights([waves((3, 6), 0.5, 1), waves((6,), 0.1, 2), waves((6, 1), 0.5, 3), waves((1,), 0.1, 4)])
    x, y = waves((10, 3), 1.0, 5), waves((10, 1), 1.0, 6)
    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(BATCH)
    history = model.fit(data, epochs=EPOCHS, steps_per_epoch=STEPS, verbose=0)
    validation = model.evaluate(data, steps=3, verbose=0)
    return history.history, validation, model.get_weights()


def main(path):
    import tensorflow as tf

    assert tf.__version__ == "2.15.1", tf.__version__
    strategy = open_strategy(tf, int(os.environ.get("SHARDS", "1")))
    optimizers = {
        "sgd": lambda: tf.keras.optimizers.SGD(0.05, momentum=0.9),
        "adam": lambda: tf.keras.optimizers.Adam(0.01),
        "adagrad": lambda: tf.keras.optimizers.Adagrad(0.05),
        "rmsprop": lambda: tf.keras.optimizers.RMSprop(0.01),
        "clipnorm": lambda: tf.keras.optimizers.SGD(0.5, clipnorm=0.05),
    }
    with open(path, "w") as out:
        for name, make in optimizers.items():
            history, validation, weights = train(tf, strategy, make)
            rows = {"loss": history["loss"], "mae": history["mae"], "evaluate": validation,
                    "weights": np.concatenate([w.reshape(-1) for w in weights])}
            for what, values in rows.items():
                out.write(" ".join([f"{name}/{what}"] + [repr(float(v)) for v in values]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
    sys.stdout.flush()
    os._exit(0)  # the servers of the cluster have no end of their own
