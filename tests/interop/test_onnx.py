"""ONNX files: onnxruntime makes the same predictions with a file as the model from which it was exported."""

import numpy as np
import onnxruntime
import pytest

from test_keras_saving import ALL, SAVED, ask, assert_same, case_id, described

STEPS = 3
# Each model once. It is trained a little, so that no weight has a special value.
CASES = [case for i, case in enumerate(SAVED) if case[0] not in [other[0] for other in SAVED[:i]]]
CASES.append(("activations", "momentum", 0.02))


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("onnx")
    requests = [
        {**described(case)[2], "steps": STEPS, "onnx": str(folder / f"{case[0]}.onnx")} for case in CASES
    ]
    return {case: pair for case, *pair in zip(CASES, requests, ask(requests), strict=True)}


def test_ops_that_move_values(tmp_path):
    """A layer of the program. Keras has no such layer, so it is defined here."""
    rng = np.random.default_rng(5)
    x = rng.normal(0, 1, (7, 4, 6)).astype(np.float32)
    y = rng.normal(0, 1, (7, 3)).astype(np.float32)
    path = str(tmp_path / "array_ops.onnx")
    request = {
        "model": "array_ops", "optimizer": "sgd", "learning_rate": 0.01, "loss": "mse", "steps": STEPS,
        "batches": [{"x": [x], "y": [y]}], "onnx": path,
    }
    (answer,) = ask([request])
    assert "error" not in answer, answer
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    (result,) = session.run(None, {name: x})
    np.testing.assert_allclose(result, np.reshape(answer["predictions"][0], (7, 3)), rtol=1e-4, atol=1e-5)
    (one,) = session.run(None, {name: x[:1]})
    np.testing.assert_allclose(one, result[:1], rtol=1e-4, atol=1e-5)


def test_every_model_is_exported():
    assert {case[0] for case in CASES} == set(ALL)


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_onnxruntime_predicts_the_same(case, exported):
    request, answer = exported[case]
    assert "error" not in answer, answer
    session = onnxruntime.InferenceSession(request["onnx"], providers=["CPUExecutionProvider"])
    xs = request["batches"][0]["x"]
    names = [value.name for value in session.get_inputs()]
    assert len(names) == len(xs)
    results = session.run(None, dict(zip(names, xs, strict=True)))
    # The file computes in float32 where the model has a policy of mixed precision.
    assert_same(case, answer["predictions"], results)
    # Any batch size will do.
    one = session.run(None, {name: x[:1] for name, x in zip(names, xs, strict=True)})
    np.testing.assert_allclose(one[0], results[0][:1], rtol=1e-4, atol=1e-5)
