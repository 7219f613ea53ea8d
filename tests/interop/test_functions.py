"""Functions, branches and loops that TensorFlow wrote: we run and differentiate them as TensorFlow does."""

import json

import numpy as np
import pytest
import tensorflow as tf

import our_programs

v1 = tf.compat.v1


def branch(x):
    return tf.cond(tf.reduce_sum(x) > 1.0, lambda: tf.sin(x) * x, lambda: x * x + 2.0)


def loop(x):
    def body(i, value):
        return i + 1, tf.cond(i % 2 > 0, lambda: tf.sin(value) * x, lambda: value * value + x)

    return tf.while_loop(lambda i, _: i < 5, body, [0, x])[1]


def until(x):
    return tf.while_loop(lambda value: tf.reduce_sum(value) < 30.0, lambda value: value * 1.5 + x, [x])[0]


def nested(x):
    def outer(i, value):
        inner = tf.while_loop(lambda v: tf.reduce_sum(v) < 4.0, lambda v: v * v + 1.0, [value])[0]
        return i + 1, tf.sin(inner) + x

    return tf.while_loop(lambda i, _: i < 3, outer, [0, x])[1]


@tf.function(autograph=False)
def called(x):
    return loop(x) + branch(x)


CASES = [branch, loop, until, nested, called]


@pytest.mark.parametrize("case", CASES, ids=lambda case: getattr(case, "__name__", "called"))
@pytest.mark.parametrize("value", [[0.5, 0.25, 0.125], [1.0, 2.0, -0.5]], ids=str)
def test_tensorflows_functions(tmp_path, case, value):
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [3], name="x")
        y = tf.identity(case(x), name="y")
        file = tmp_path / "graph.pb"
        file.write_bytes(graph.as_graph_def().SerializeToString())
        slope = tf.gradients(y, x)[0]
        with v1.Session(graph=graph) as session:
            theirs = session.run({"y": y, "slope": slope}, {x: value})
    ours = json.loads(our_programs.output("interop_functions", file, *value))
    for name, wanted in theirs.items():
        np.testing.assert_allclose(ours[name], wanted, rtol=1e-5, atol=1e-5, err_msg=name)
