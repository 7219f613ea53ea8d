"""SavedModels that TensorFlow 2 and Keras 3 write: we load them, and compute what TensorFlow computes."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

import our_programs

L = keras.layers


def random_value(random, spec):
    """A value for an input: unknown dimensions are 5."""
    shape = [5 if size is None else size for size in spec.shape]
    if spec.dtype == tf.string:
        return random.choice(["a", "b", "c", "zz"], size=shape).astype(object)
    if spec.dtype.is_integer:
        return random.integers(0, 9, size=shape).astype(spec.dtype.as_numpy_dtype)
    return random.normal(size=shape).astype(spec.dtype.as_numpy_dtype)


def as_json(value):
    value = np.asarray(value)
    dtype = "string" if value.dtype == object else str(value.dtype)
    return {"dtype": dtype, "shape": list(value.shape), "values": value.ravel().tolist()}


def predict(folder, requests):
    """Our answers to [(signature, {name: value})], as [{name: value}]."""
    asked = [{"signature": name, "inputs": {k: as_json(v) for k, v in inputs.items()}} for name, inputs in requests]
    printed = our_programs.output("interop_saved_model", "predict", folder, text=json.dumps(asked))
    answers = []
    for answer in json.loads(printed):
        arrays = {}
        for name, tensor in answer.items():
            dtype = object if tensor["dtype"] == "string" else tensor["dtype"]
            arrays[name] = np.array(tensor["values"], dtype=dtype).reshape(tensor["shape"])
        answers.append(arrays)
    return answers


def check(ours, theirs, tolerance=1e-5):
    assert {*ours} == {*theirs}
    for name, value in theirs.items():
        value = value.numpy()
        if value.dtype == object:
            value = np.vectorize(bytes.decode, otypes=[object])(value)
        assert ours[name].dtype == value.dtype
        assert ours[name].shape == value.shape
        if value.dtype.kind == "f":
            np.testing.assert_allclose(ours[name], value, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(ours[name], value)


def compare(folder, tolerance=1e-5):
    """Feeds random values to all signatures of a SavedModel, in TensorFlow and in Cohort."""
    folder = str(folder)
    random = np.random.default_rng(3)
    signatures = tf.saved_model.load(folder).signatures
    requests = []
    for name, function in signatures.items():
        specs = function.structured_input_signature[1]
        requests.append((name, {key: random_value(random, spec) for key, spec in specs.items()}))
    for (name, inputs), ours in zip(requests, predict(folder, requests), strict=True):
        theirs = signatures[name](**{key: tf.constant(value) for key, value in inputs.items()})
        check(ours, theirs, tolerance)


def dense():
    x = keras.Input((4,))
    return keras.Model(x, L.Dense(3, activation="softmax")(L.Dense(8, activation="relu")(x)))


def convolutions():
    x = keras.Input((8, 8, 3))
    h = L.ReLU()(L.BatchNormalization()(L.Conv2D(4, 3, padding="same")(x)))
    h = L.Dropout(0.5)(L.DepthwiseConv2D(3)(L.MaxPooling2D()(h)))
    return keras.Model(x, L.Dense(2)(L.GlobalAveragePooling2D()(h)))


def normalization():
    layer = L.Normalization()
    layer.adapt(np.random.default_rng(0).normal(size=(20, 3)))
    x = keras.Input((3,))
    return keras.Model(x, L.Dense(2)(layer(x)))


KERAS_MODELS = {"dense": dense, "convolutions": convolutions, "normalization": normalization}


@pytest.mark.parametrize("name", KERAS_MODELS)
def test_exports_of_keras_3(name, tmp_path):
    keras.utils.set_random_seed(1)
    model = KERAS_MODELS[name]()
    # Values other than those at the beginning, such as a moving variance of 1.
    model.set_weights([w + np.random.default_rng(1).uniform(0, 0.2, w.shape) for w in model.get_weights()])
    model.export(tmp_path / "model", verbose=False)
    compare(tmp_path / "model")
