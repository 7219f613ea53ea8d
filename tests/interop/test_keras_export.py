"""Model::ExportSavedModel: TensorFlow predicts the same, and the functions are those of Keras's model.export."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from test_keras_saving import ALL, assert_same, ask, case_id, described
from test_onnx import CASES

STEPS = 3


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved_model")
    requests = [
        {**described(case)[2], "steps": STEPS, "saved_model": str(folder / case[0])} for case in CASES
    ]
    return {case: pair for case, *pair in zip(CASES, requests, ask(requests), strict=True)}


def outputs_of(function, names, xs):
    """Returns the outputs in order, of inputs that are given by name."""
    results = function(**{name: tf.constant(x) for name, x in zip(names, xs, strict=True)})
    return [results[f"output_{i}"].numpy() for i in range(len(results))]


def inputs_of(function):
    """Returns the names in the order of the model."""
    return sorted(function.structured_input_signature[1])


def test_every_model_is_exported():
    assert {case[0] for case in CASES} == set(ALL)


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_tensorflow_predicts_the_same(case, exported):
    request, answer = exported[case]
    assert "error" not in answer, answer
    model = tf.saved_model.load(request["saved_model"])
    function = model.signatures["serving_default"]
    xs = request["batches"][0]["x"]
    names = inputs_of(function)  # "a", "b": the order of the names is that of the inputs
    results = outputs_of(function, names, xs)
    assert_same(case, answer["predictions"], results)
    # Any batch size will do.
    one = outputs_of(model.signatures["serve"], names, [x[:1] for x in xs])
    np.testing.assert_allclose(one[0], results[0][:1], rtol=1e-4, atol=1e-5)
    trainable = {variable.name.removesuffix(":0") for variable in model.variables if variable.trainable}
    assert trainable == {*answer["trainable"]}
    assert {variable.name.removesuffix(":0") for variable in model.variables} == {*answer["weights"]}


@pytest.mark.parametrize("name", ["branches", "frozen"])
def test_the_functions_are_those_of_keras(name, exported, tmp_path):
    case = next(case for case in CASES if case[0] == name)
    described(case)[0].export(str(tmp_path / "theirs"), verbose=False)
    ours, theirs = tf.saved_model.load(exported[case][0]["saved_model"]), tf.saved_model.load(str(tmp_path / "theirs"))
    assert {*ours.signatures} == {*theirs.signatures}
    for key in theirs.signatures:
        mine, wanted = ours.signatures[key], theirs.signatures[key]
        for found, expected in [
            (mine.structured_input_signature[1], wanted.structured_input_signature[1]),
            (mine.structured_outputs, wanted.structured_outputs),
        ]:
            assert {*found} == {*expected}
            for spec in expected:
                assert (found[spec].dtype, found[spec].shape) == (expected[spec].dtype, expected[spec].shape)


def test_keras_uses_an_export_as_a_layer(exported):
    case = next(case for case in CASES if case[0] == "frozen")
    request, answer = exported[case]
    layer = keras.layers.TFSMLayer(request["saved_model"], call_endpoint="serving_default")
    assert_same(case, answer["predictions"], [layer(request["batches"][0]["x"][0])["output_0"].numpy()])
