"""SavedModels that TensorFlow 2 and Keras 3 write: we load them, and compute what TensorFlow computes."""

import json
import re

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


def functional(shape, *layers, dtype=None):
    x = h = keras.Input(shape, dtype=dtype)
    for layer in layers:
        h = layer(h)
    return keras.Model(x, h)


def normalization():
    layer = L.Normalization()
    layer.adapt(np.random.default_rng(0).normal(size=(20, 3)))
    return functional((3,), layer, L.Dense(2))


def text_of_two_words():
    lookup = L.StringLookup()
    lookup.adapt(["a", "b", "a", "c"])
    return functional((2,), lookup, L.Embedding(5, 3), L.Flatten(), L.Dense(2), dtype="string")


def attention():
    x = keras.Input((7,), dtype="int32")
    h = L.Embedding(10, 8)(x)
    h = L.LayerNormalization()(h + L.MultiHeadAttention(2, 4)(h, h, use_causal_mask=True))
    return keras.Model(x, L.GlobalAveragePooling1D()(L.Dense(8, activation="gelu")(h)))


def two_inputs():
    x, y = keras.Input((4,)), keras.Input((4,))
    both = [L.Add()([x, y]), L.Concatenate()([x, y]), L.Dot(1)([x, y]), L.Maximum()([x, y])]
    return keras.Model([x, y], [*both, L.EinsumDense("ab,bc->ac", output_shape=3)(x)])


KERAS_MODELS = {
    "dense": lambda: functional((4,), L.Dense(8, activation="relu"), L.Dense(3, activation="softmax")),
    "convolutions": lambda: functional(
        (8, 8, 3), L.Conv2D(4, 3, padding="same"), L.BatchNormalization(), L.ReLU(), L.MaxPooling2D(),
        L.DepthwiseConv2D(3), L.Dropout(0.5), L.GlobalAveragePooling2D(), L.Dense(2),
    ),
    "dilated": lambda: functional((9, 9, 3), L.Conv2D(4, 3, dilation_rate=2), L.Conv2DTranspose(2, 3, strides=2)),
    "causal": lambda: functional((10, 3), L.Conv1D(4, 3, dilation_rate=2, padding="causal"), L.GlobalMaxPooling1D()),
    "normalization": normalization,
    "norms": lambda: functional((6, 6, 6), L.GroupNormalization(3), L.LayerNormalization(), L.UnitNormalization()),
    "lstm": lambda: functional((7,), L.Embedding(10, 4), L.LSTM(5), L.Dense(2), dtype="int32"),
    "masked": lambda: functional(
        (7,), L.Embedding(10, 4, mask_zero=True), L.Bidirectional(L.GRU(5, return_sequences=True)), L.LSTM(3),
        dtype="int32",
    ),
    "attention": attention,
    "words": text_of_two_words,
    "multi_hot": lambda: functional(
        (3,), L.StringLookup(vocabulary=["a", "b"], output_mode="multi_hot"), dtype="string"
    ),
    "counts": lambda: functional((3,), L.CategoryEncoding(12, output_mode="count"), dtype="int32"),
    "two_inputs": two_inputs,
}  # fmt: skip


@pytest.mark.parametrize("name", KERAS_MODELS)
def test_exports_of_keras_3(name, tmp_path):
    keras.utils.set_random_seed(1)
    model = KERAS_MODELS[name]()
    # Values other than those at the beginning, such as a moving variance of 1.
    model.set_weights([w + np.random.default_rng(1).uniform(0, 0.2, w.shape) for w in model.get_weights()])
    model.export(tmp_path / "model", verbose=False)
    compare(tmp_path / "model")


class Module(tf.Module):
    """Branches, loops, an array of tensors, tables and a counter."""

    def __init__(self, file):
        super().__init__()
        self.scale = tf.Variable([1.0, 2.0])
        self.count = tf.Variable(0)
        pairs = tf.lookup.KeyValueTensorInitializer(["a", "c"], tf.constant([5, 6], tf.int64))
        self.table = tf.lookup.StaticHashTable(pairs, -1)
        rows = tf.lookup.TextFileInitializer(
            file, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        )
        self.from_file = tf.lookup.StaticVocabularyTable(rows, 3)
        self.changing = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, -1.0)
        self.changing.insert(["a", "b"], [1.0, 2.0])

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
    def step(self, x):
        self.count.assign_add(2)
        if tf.reduce_sum(x) > 0:
            y = x * self.scale
        else:
            y = self.helper(x) - self.scale
        for _ in tf.range(3):
            y = self.helper(y)
        return {"y": y, "count": self.count.read_value()}

    @tf.function
    def helper(self, x):
        return tf.sin(x) + 1.5 * self.scale

    @tf.function(input_signature=[tf.TensorSpec([3, 2], tf.float32, "x")])
    def collect(self, x):
        rows = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(4):
            rows = rows.write(i, x[i % 3] * tf.cast(i, tf.float32))
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.tanh(x) ** 2)
        slopes = tape.gradient(loss, x)
        return {"rows": rows.stack(), "sums": tf.map_fn(tf.reduce_sum, x), "slopes": slopes}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])
    def look_up(self, words):
        found = {"table": self.table.lookup(words), "changing": self.changing.lookup(words)}
        return {**found, "from_file": self.from_file.lookup(words), "size": self.table.size()}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32, "i"), tf.TensorSpec([2], tf.float32, "x")])
    def choose(self, i, x):
        return {"y": tf.switch_case(i % 4, [lambda: x, lambda: x * self.scale, lambda: -x])}


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    folder = tmp_path_factory.mktemp("module")
    (folder / "words.txt").write_text("b\na\n")
    made = Module(str(folder / "words.txt"))
    path = str(folder / "model")
    names = ("step", "collect", "look_up", "choose")
    tf.saved_model.save(made, path, signatures={name: getattr(made, name) for name in names})
    (folder / "words.txt").unlink()  # the model has a copy
    return path


def test_a_module_with_functions(module):
    compare(module)


def test_effects_last_from_run_to_run(module):
    theirs = tf.saved_model.load(module).signatures["step"]
    requests = [("step", {"x": np.full((1, 2), sign, np.float32)}) for sign in (1, -1, 1)]
    for ours, (_, inputs) in zip(predict(module, requests), requests, strict=True):
        check(ours, theirs(x=tf.constant(inputs["x"])))
    assert ours["count"] == 6


def test_every_branch_of_a_switch(module):
    theirs = tf.saved_model.load(module).signatures["choose"]
    x = np.array([0.5, -2.0], np.float32)
    requests = [("choose", {"i": np.array(i, np.int32), "x": x}) for i in range(4)]
    for ours, (_, inputs) in zip(predict(module, requests), requests, strict=True):
        check(ours, theirs(**{name: tf.constant(value) for name, value in inputs.items()}))


def test_an_op_that_we_lack_is_named(tmp_path):
    made = tf.Module()
    made.f = tf.function(lambda x: {"y": tf.signal.fft(tf.cast(x, tf.complex64))}, input_signature=[
        tf.TensorSpec([4], tf.float32, "x")])  # fmt: skip
    tf.saved_model.save(made, str(tmp_path), signatures={"f": made.f})
    with pytest.raises(AssertionError, match=r"lacks the op 'FFT' of node .* in the function '__inference_"):
        predict(tmp_path, [])


def test_effects_in_nested_branches_keep_their_order(tmp_path):
    made = tf.Module()
    made.count = tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, "x")])
    def step(x):
        made.count.assign_add(10.0)
        if x > 0:
            made.count.assign_add(1.0)
            y = made.count.read_value()
        else:
            if x < -1:
                made.count.assign_add(100.0)
            y = made.count.read_value()
        return {"y": y, "count": made.count.read_value()}

    made.step = step
    tf.saved_model.save(made, str(tmp_path), signatures={"step": step})
    values = [np.float32(value) for value in (-2, -2, 1, -0.5, -2)]
    ours = predict(str(tmp_path), [("step", {"x": value}) for value in values])
    theirs = tf.saved_model.load(str(tmp_path)).signatures["step"]
    for answer, value in zip(ours, values, strict=True):
        check(answer, theirs(x=tf.constant(value)))


def test_checks_of_numbers_are_made(tmp_path):
    made = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32, "x")])
    def f(x):
        tf.debugging.assert_all_finite(tf.math.log(x), "not all are finite")
        return {"y": x + 1}

    made.f = f
    tf.saved_model.save(made, str(tmp_path), signatures={"f": f})
    (answer,) = predict(str(tmp_path), [("f", {"x": np.array([1, 2], np.float32)})])
    np.testing.assert_array_equal(answer["y"], [2, 3])
    with pytest.raises(AssertionError, match="not all are finite"):
        predict(str(tmp_path), [("f", {"x": np.array([1, 0], np.float32)})])


def test_inspect_lists_signatures_as_saved_model_cli_does(module):
    listed = our_programs.output("cohort", "inspect", module)
    for line in (
        r"step +input +x +float32 +\[\?,2\] +step_x:0",
        r"look_up +output +from_file +int64 +\[\?\] +StatefulPartitionedCall",
        r"scale/\.ATTRIBUTES/VARIABLE_VALUE +float32 +\[2\]",
    ):
        assert re.search(line, listed), listed
