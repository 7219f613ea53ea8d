"""Makes the files of this folder with TensorFlow: `build/venv/bin/python tests/golden/make.py`. See README.md."""

import pathlib

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
HERE = pathlib.Path(__file__).resolve().parent


def save(name, tensors, slices=()):
    names = [*tensors, *("v" for _ in slices)]
    specs = [""] * len(tensors) + [spec for spec, _ in slices]
    values = [tf.constant(value) for value in (*tensors.values(), *(value for _, value in slices))]
    tf.raw_ops.SaveV2(prefix=str(HERE / name), tensor_names=names, shape_and_slices=specs, tensors=values)


def checkpoints():
    save("tiny", {"w": np.float32([1, 2])})
    save(
        "dtypes",
        {
            "bfloat16": np.array([1.5, -2], tf.bfloat16.as_numpy_dtype),
            "bool": np.array([True, False]),
            "empty": np.zeros((0, 3), np.float32),
            "float64": np.array([[0.5], [1e300]]),
            "half": np.float16([1]),
            "int32": np.int32([-7, 7]),
            "scalar": np.int64(1 << 40),
            "string": np.array([[b"hi", b""], [b"\0\xff", b"x" * 130]], object),
            "uint8": np.uint8([0, 255]),
        },
        [("5 2 0,3:0,2", np.float32([[0, 1], [2, 3], [4, 5]])), ("5 2 3,2:0,2", np.float32([[6, 7], [8, 9]]))],
    )


def events():
    target = HERE / "events.out.tfevents.1700000000.golden"
    with v1.Graph().as_default(), v1.Session() as session:
        histogram = session.run(v1.summary.histogram("weights", [0.0, 0.0, 2.0]))
    scalar = v1.Summary(value=[v1.Summary.Value(tag="loss", simple_value=0.5)])
    with tf.io.TFRecordWriter(str(target)) as writer:
        for event in (
            v1.Event(wall_time=1.7e9, file_version="brain.Event:2"),
            v1.Event(wall_time=1.7e9, step=3, summary=scalar),
            v1.Event(wall_time=1.7e9, step=4, summary=v1.Summary.FromString(histogram)),
            v1.Event(wall_time=1.7e9, graph_def=v1.GraphDef(node=[v1.NodeDef(name="a", op="NoOp")]).SerializeToString()),
            v1.Event(wall_time=1.7e9, step=5, session_log=v1.SessionLog(status="CHECKPOINT", checkpoint_path="/m-5")),
        ):
            writer.write(event.SerializeToString(deterministic=True))


def records():
    with tf.io.TFRecordWriter(str(HERE / "examples.tfrecord")) as writer:
        for label in range(2):
            example = tf.train.Example()
            example.features.feature["label"].int64_list.value.append(label)
            example.features.feature["pixels"].float_list.value.extend([0.5 * label, 1])
            example.features.feature["name"].bytes_list.value.append(b"n%d" % label)
            writer.write(example.SerializeToString(deterministic=True))


if __name__ == "__main__":
    checkpoints()
    events()
    records()
