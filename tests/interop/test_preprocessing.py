"""Models of raw data, and those of recommenders: Keras reads our files and predicts the same, and we read Keras's."""

import keras
import keras_rs  # noqa: F401, Keras finds the layers of our files that this package has
import numpy as np
import pytest
import tensorflow as tf

import our_programs

layers = keras.layers
WORDS = [["red", "hat", ""], ["blue", "blue", "green"], ["cap", "shoe", "red"], ["", "", "x"]]
IDS = [[7, 0], [-3, 5], [6, 7], [-8, 1 << 40]]
NUMBERS = [[-1.0, -0.5], [0.0, 0.2], [0.5, 7.0], [0.4999, -0.1]]
LISTS = [[1, 2, 3, 4], [0, 0, 0, 0], [8, 8, 1, 0], [5, 6, 7, 8]]
WEIGHTS = [[1.0, 2.0, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4], [1.0, -1.0, 1.0, 1.0]]
INPUTS = {
    "preprocessing": [("string", WORDS), ("int64", IDS), ("float32", NUMBERS)],
    "recommender": [("int64", LISTS), ("float32", WEIGHTS)],
}


def given(inputs):
    return [
        {"dtype": dtype, "shape": list(np.shape(values)), "values": [item for row in values for item in row]}
        for dtype, values in inputs
    ]


def predictions(model, inputs):
    outputs = model([tf.constant(values, dtype) for dtype, values in inputs])
    return outputs if isinstance(outputs, (list, tuple)) else [outputs]


def assert_same(theirs, ours):
    assert len(theirs) == len(ours)
    for their, our in zip(theirs, ours, strict=True):
        their = np.asarray(their).reshape(-1)
        if their.dtype == object:
            assert [value.decode() for value in their] == our
        else:
            np.testing.assert_allclose(their, our, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", INPUTS)
def test_keras_predicts_as_we_do(name, tmp_path):
    first, second = tmp_path / "first.keras", tmp_path / "second.keras"
    inputs = given(INPUTS[name])
    [ours] = our_programs.ask("interop_preprocessing", [{"model": name, "inputs": inputs, "save": str(first)}])
    model = keras.models.load_model(first)
    assert_same(predictions(model, INPUTS[name]), ours)

    model.save(second)
    [again] = our_programs.ask("interop_preprocessing", [{"load": str(second), "inputs": inputs, "save": str(first)}])
    assert again == ours


@pytest.mark.parametrize("name", INPUTS)
def test_tensorflow_predicts_as_we_do(name, tmp_path):
    folder = tmp_path / "export"
    request = {"model": name, "inputs": given(INPUTS[name]), "save": str(tmp_path / "a.keras"), "export": str(folder)}
    [ours] = our_programs.ask("interop_preprocessing", [request])
    function = tf.saved_model.load(folder).signatures["serving_default"]
    names = {"preprocessing": ["words", "ids", "x"], "recommender": ["ids", "weights"]}[name]
    xs = {key: tf.constant(values, dtype) for key, (dtype, values) in zip(names, INPUTS[name], strict=True)}
    results = function(**xs)
    assert_same([results[f"output_{i}"].numpy() for i in range(len(results))], ours)


def taught():
    """Layers that have learned from data, so that their vocabularies are assets of the file."""
    words, ids, x = keras.Input((3,), dtype="string"), keras.Input((2,), dtype="int64"), keras.Input((2,))
    strings = layers.StringLookup(mask_token="", num_oov_indices=2)
    strings.adapt(np.array([["a\tb", "red", "red"], ["green", "", "blue"]]))
    others = layers.StringLookup(output_mode="multi_hot")
    others.adapt(np.array([["hat", "cap"]]))
    integers = layers.IntegerLookup()
    integers.adapt(np.array([7, 7, -3, 1 << 40]))
    normal = layers.Normalization()
    normal.adapt(np.array(NUMBERS))
    buckets = layers.Discretization(num_bins=3)
    buckets.adapt(np.array(NUMBERS))
    inner = keras.Sequential([keras.Input((2,), dtype="int64"), integers, layers.Embedding(8, 2), layers.Flatten()])
    embedded = [layers.Flatten()(layers.Embedding(8, 2)(value)) for value in (strings(words), buckets(x))]
    return keras.Model([words, ids, x], layers.Concatenate()([*embedded, inner(ids), others(words), normal(x)]))


def test_we_predict_as_keras_does_with_what_it_has_learned(tmp_path):
    keras.utils.set_random_seed(3)
    theirs, ours = tmp_path / "theirs.keras", tmp_path / "ours.keras"
    model = taught()
    model.save(theirs)
    inputs = INPUTS["preprocessing"]
    expected = predictions(model, inputs)
    [answer] = our_programs.ask("interop_preprocessing", [{"load": str(theirs), "inputs": given(inputs), "save": str(ours)}])
    assert_same(expected, answer)
    assert_same(predictions(keras.models.load_model(ours), inputs), answer)
