"""SavedModels: TensorFlow loads what an Estimator exports, and we load what TensorFlow 1's way of saving writes."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.python.framework import op_def_registry

import our_programs

v1 = tf.compat.v1


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    return json.loads(our_programs.output("interop_saved_model", "export", tmp_path_factory.mktemp("model")))


def check(ours, theirs):
    assert theirs.dtype == (np.int64 if isinstance(ours[0], int) else np.float32)
    np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-6)


def test_tensorflow_2_loads_an_export(exported):
    model = tf.saved_model.load(exported["dir"], tags=["serve"])
    x = tf.constant(exported["x"])
    assert {*model.signatures} == {"serving_default", "scores"}
    predicted = model.signatures["serving_default"](x=x)
    assert {*predicted} == {"labels", "probabilities"}
    for name, value in predicted.items():
        check(exported[name], value.numpy())
    check(exported["logits"], model.signatures["scores"](x=x)["logits"].numpy())
    assert {variable.name for variable in model.variables} == {
        "global_step:0", "dense/kernel:0", "dense/bias:0", "logits/kernel:0", "logits/bias:0",
    }  # fmt: skip


def test_tensorflow_1_loads_an_export(exported):
    with tf.Graph().as_default(), v1.Session() as session:
        meta = v1.saved_model.load(session, ["serve"], exported["dir"])
        signature = meta.signature_def["serving_default"]
        assert signature.method_name == "tensorflow/serving/predict"
        assert [d.size for d in signature.inputs["x"].tensor_shape.dim] == [-1, 4]
        outputs = {name: info.name for name, info in signature.outputs.items()}
        for name, value in session.run(outputs, {signature.inputs["x"].name: exported["x"]}).items():
            check(exported[name], value)
        assert len(v1.global_variables()) == 5
        assert len(v1.trainable_variables()) == 4


def test_tensorflow_imports_the_graph_of_a_training(exported):
    """The graph in the event file is for TensorBoard, and has also the ops of Cohort that TensorFlow lacks."""
    folder = pathlib.Path(exported["dir"]).parents[1]
    graph = text_format.Parse((folder / "graph.pbtxt").read_text(), v1.GraphDef())
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(graph, name="")
    operations = {op.name: op.type for op in imported.get_operations()}
    assert operations["global_step"] == "VarHandleOp"
    assert operations["Adam"] == "AssignAddVariableOp"
    shown = [
        v1.GraphDef.FromString(event.graph_def)
        for file in folder.glob("events.out.tfevents.*")
        for event in v1.train.summary_iterator(str(file))
        if event.graph_def
    ]
    assert len(shown) == 1
    ops = {node.op for node in shown[0].node}
    assert "LayerNorm" in ops
    assert not any(op.startswith("_") for op in ops)


def test_tensorflow_saves_an_export_again(exported, tmp_path):
    """The ops that the saver_def names are those that TensorFlow's Saver runs."""
    with tf.Graph().as_default(), v1.Session() as session:
        meta = v1.saved_model.load(session, ["serve"], exported["dir"])
        saver = v1.train.Saver(saver_def=meta.saver_def)
        prefix = saver.save(session, str(tmp_path / "again"), write_meta_graph=False)
    names = dict(tf.train.list_variables(prefix))
    assert names["logits/kernel"] == [8, 3]
    ours = tf.train.load_variable(exported["dir"] + "/variables/variables", "logits/kernel")
    np.testing.assert_array_equal(tf.train.load_variable(prefix, "logits/kernel"), ours)


def test_we_load_a_model_with_reference_variables(tmp_path):
    """TensorFlow 1's variables were references, unless a program asked for resources."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None], name="x")
        w = v1.get_variable("w", [2, 1], use_resource=False)
        b = v1.get_variable("b", [1], initializer=v1.zeros_initializer(), use_resource=False)
        y = tf.nn.sigmoid(tf.matmul(tf.reshape(x, [-1, 2]), w) + b, name="y")
        step = v1.get_variable("global_step", initializer=0, trainable=False, use_resource=False)
        v1.train.MomentumOptimizer(0.5, 0.9).minimize(tf.reduce_mean(y), global_step=step)
        assert {"VariableV2", "ApplyMomentum", "AssignAdd"} <= {op.type for op in session.graph.get_operations()}
        session.run(v1.global_variables_initializer())
        session.run(v1.get_default_graph().get_operation_by_name("Momentum"), {x: [1.0, 2.0]})
        wanted = session.run(y, {x: [1.0, -2.0]})
        v1.saved_model.simple_save(session, str(tmp_path / "model"), {"x": x}, {"y": y})
    ours = json.loads(
        our_programs.output("interop_saved_model", "run", tmp_path / "model", "serving_default", "y", 1.0, -2.0)
    )
    np.testing.assert_allclose(np.ravel(ours), np.ravel(wanted), rtol=1e-6)


def test_we_load_a_model_of_tensorflow(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None], name="x")
        w = v1.get_variable("w", initializer=[3.0], use_resource=True)
        c = v1.get_variable("c", initializer=1.0, use_resource=True, collections=["local_variables"])
        y = tf.exp(x) * w + c
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        session.run(w.assign([0.5]))
        wanted = session.run(y, {x: [1.0, -2.0]})
        builder = v1.saved_model.Builder(str(tmp_path / "model"))
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
        main_op = v1.local_variables_initializer()
        builder.add_meta_graph_and_variables(session, ["serve"], {"f": signature}, main_op=main_op)
        builder.save()
    ours = json.loads(our_programs.output("interop_saved_model", "run", tmp_path / "model", "f", "y", 1.0, -2.0))
    np.testing.assert_allclose(ours, wanted, rtol=1e-6)


def test_tensorflow_loads_a_session(tmp_path):
    """The variables were on a parameter server. The optimizer's variables and the step are not in the file."""
    folder = str(tmp_path / "model")
    printed = json.loads(our_programs.output("interop_saved_model", "save_session", folder))
    model = tf.saved_model.load(folder)
    assert {*model.signatures} == {"serving_default"}
    check(printed["scores"], model.signatures["serving_default"](x=tf.constant(printed["x"]))["scores"].numpy())
    assert {variable.name for variable in model.variables} == {"linear/w:0", "linear/b:0"}
    with tf.Graph().as_default(), v1.Session() as session:
        meta = v1.saved_model.load(session, ["serve"], folder)
        signature = meta.signature_def["serving_default"]
        assert signature.method_name == "tensorflow/serving/predict"
        scores = session.run(signature.outputs["scores"].name, {signature.inputs["x"].name: printed["x"]})
        check(printed["scores"], scores)


def test_the_ops_that_tensorflow_lacks_are_known():
    """An export names an op that TensorFlow does not have. So the list of those ops has to be right."""
    for name, has_form in json.loads(our_programs.output("interop_saved_model", "ops")).items():
        in_tensorflow = not name.startswith("_") and op_def_registry.get(name) is not None
        assert has_form == in_tensorflow, name
