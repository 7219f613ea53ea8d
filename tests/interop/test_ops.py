"""Op cases: TensorFlow runs the GraphDefs that we write and must compute the same values and gradients."""

import functools
import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2

import our_programs

v1 = tf.compat.v1

# What TensorFlow 2.21 does otherwise, and why we do not follow: cases, ops, cases.
OTHER_VALUES = {
    "Conv2D_no_images": "its result for no images has the shape of the input",
    "DepthwiseConv2dNative_no_images": "the same",
    "Round_int32": "its kernel gives zeros for integers; tf.round passes them by",
    "Round_int64": "its kernel gives zeros for integers; tf.round passes them by",
}
OTHER_GRADIENTS = {
    "PadV2": "it has none for constant_values, although the output depends on them",
    "ImageProjectiveTransformV3": "it moves gradients by the inverse transform, which is not the derivative",
    "ResizeBilinearGrad": "it marks the op as not differentiable",
}
NO_GRADIENTS = {
    "GatherNd_no_coordinates": "its gradient refuses indices without coordinates",
    "GatherNd_one": "its gradient refuses the shape of a single index",
    **{
        f"SparseToDense_{label}": "its gradient takes indices to be a matrix"
        for label in ("one_index", "one_value", "vector")
    },
    "TopKV2_int64_indices": "its gradient adds int32 to int64 indices",
    "PartitionedCall_second_derivative": "calls are differentiated in its C++ code, which knows no AddN",
    "StatefulPartitionedCall_values": "calls are differentiated in its C++ code, which knows no Print",
    **{
        f"ResizeNearestNeighborGrad_{label}": "it has none for this op"
        for label in (
            "larger", "larger_corners", "larger_centers", "smaller", "smaller_corners", "smaller_centers", "one_pixel",
            "same_size", "no_images", "many_pixels",
        )
    },
}


@functools.cache
def cases():
    """All cases by name, as interop_ops prints them."""
    parsed = [json.loads(line) for line in our_programs.output("interop_ops").splitlines()]
    found = {case["name"]: case for case in parsed if case["compare"]}
    assert found, "interop_ops printed no case"
    return found


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", sorted(cases()))


def array(hexadecimal):
    proto = tensor_pb2.TensorProto.FromString(bytes.fromhex(hexadecimal))
    return tf.make_ndarray(proto)


def assert_close(what, theirs, ours):
    # A string scalar comes back as bytes, whose trailing zeros numpy's own string type would drop.
    theirs = np.asarray(theirs, dtype=object) if isinstance(theirs, bytes) else np.asarray(theirs)
    ours = np.asarray(ours)
    assert theirs.shape == ours.shape, what
    assert theirs.dtype == ours.dtype, what
    if ours.dtype == tf.bfloat16.as_numpy_dtype:
        np.testing.assert_allclose(theirs.astype(np.float32), ours.astype(np.float32), rtol=1 / 64, atol=1e-2, err_msg=what)
    elif np.issubdtype(ours.dtype, np.floating):
        tolerance = 1e-5 if ours.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(theirs, ours, rtol=tolerance, atol=tolerance, err_msg=what)
    else:
        assert theirs.tolist() == ours.tolist(), what


def rename_functions(graph_def, prefix):
    """Puts `prefix` before the names of functions, which TensorFlow has one table of for all graphs."""
    bodies = [function.node_def for function in graph_def.library.function]
    for function in graph_def.library.function:
        function.signature.name = prefix + function.signature.name
    for node in [*graph_def.node, *(node for body in bodies for node in body)]:
        for attr in node.attr.values():
            if attr.HasField("func"):
                attr.func.name = prefix + attr.func.name


def run_in_tensorflow(case):
    """Values of the outputs, and of the gradients of the weighted sum of outputs."""
    graph_def = v1.GraphDef.FromString(bytes.fromhex(case["graph_def"]))
    rename_functions(graph_def, case["name"])
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        feeds = {feed["of"]: array(feed["value"]) for feed in case["feeds"]}
        outputs = [graph.get_tensor_by_name(output["of"]) for output in case["outputs"]]
        gradients = []
        if case["gradients"] and case["name"] not in NO_GRADIENTS:
            ys = [graph.get_tensor_by_name(weight["of"]) for weight in case["weights"]]
            weights = [tf.constant(array(weight["value"])) for weight in case["weights"]]
            xs = [graph.get_tensor_by_name(gradient["of"]) for gradient in case["gradients"]]
            # After the outputs: TensorFlow's VariableShape nodes would not wait for the variable's assignment.
            with graph.control_dependencies([output.op for output in outputs]):
                gradients = tf.gradients(ys, xs, grad_ys=weights, unconnected_gradients="zero")
                gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        with v1.Session(graph=graph) as session:
            return session.run((outputs, gradients), feeds)


def test_exceptions_are_of_cases_and_ops_that_are_there():
    assert {*OTHER_VALUES, *NO_GRADIENTS} <= {*cases()}
    differentiated = {case["op"] for case in cases().values() if case["gradients"]}
    assert {*OTHER_GRADIENTS} <= differentiated
    assert all(cases()[name]["gradients"] for name in NO_GRADIENTS)


def test_op_case(name):
    case = cases()[name]
    if name in OTHER_VALUES:
        pytest.skip(OTHER_VALUES[name])
    outputs, gradients = run_in_tensorflow(case)
    for theirs, ours in zip(outputs, case["outputs"], strict=True):
        assert_close(f"{name}: {ours['of']}", theirs, array(ours["value"]))
    if case["op"] in OTHER_GRADIENTS or name in NO_GRADIENTS:
        return
    for theirs, ours in zip(gradients, case["gradients"], strict=True):
        assert_close(f"{name}: gradient of {ours['of']}", theirs, array(ours["value"]))
