"""Losses, metrics and layers of Estimators, and input from TFRecords: TensorFlow 1 computes the same."""

import numpy as np
import pytest
import tensorflow as tf

import our_programs

v1 = tf.compat.v1
RNG = np.random.default_rng(11)
PROBABILITIES = RNG.uniform(0.02, 0.98, (5, 3)).astype(np.float32)
LOGITS = RNG.normal(0, 2, (5, 3)).astype(np.float32)
BITS = RNG.integers(0, 2, (5, 3)).astype(np.float32)
ONE_HOT = np.eye(3, dtype=np.float32)[[0, 2, 1, 1, 0]]
REDUCTIONS = ["none", "weighted_sum", "weighted_mean", "weighted_sum_over_batch_size", "weighted_sum_by_nonzero_weights"]


def tensor(array):
    array = np.asarray(array)
    integers = bool(np.issubdtype(array.dtype, np.integer))
    values = {"shape": list(array.shape), "values": array.ravel().tolist(), "integers": integers}
    return {**values, "truths": True} if array.dtype == bool else values


def array(answer):
    return np.array(answer["values"], np.float32).reshape(answer["shape"])


def ask(request):
    return our_programs.ask("interop_estimator", [request])[0]


LOSSES = {
    "absolute_difference": (LOGITS, PROBABILITIES, {}),
    "mean_squared_error": (LOGITS, PROBABILITIES, {}),
    "hinge_loss": (BITS, LOGITS, {}),
    "huber_loss": (LOGITS, PROBABILITIES, {"delta": 0.7}),
    "log_loss": (BITS, PROBABILITIES, {"epsilon": 1e-3}),
    "sigmoid_cross_entropy": (BITS, LOGITS, {"label_smoothing": 0.1}),
    "softmax_cross_entropy": (ONE_HOT, LOGITS, {"label_smoothing": 0.2}),
    "sparse_softmax_cross_entropy": (np.array([0, 2, 1, 1, 0], np.int64), LOGITS, {}),
}
ROWS = {"softmax_cross_entropy", "sparse_softmax_cross_entropy"}  # one loss for each row


def weights_of(name, kind):
    if kind == "scalar":
        return np.float32(0.5)
    if kind == "zero":
        return np.float32(0.0)
    rows = np.array([0.5, 0.0, 2.0, 1.0, 0.25], np.float32)
    return rows if name in ROWS else rows[:, None]


@pytest.mark.parametrize("weights", ["none", "scalar", "zero", "rows"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", LOSSES)
def test_loss(name, reduction, weights):
    labels, predictions, options = LOSSES[name]
    request = {"kind": "loss", "loss": name, "labels": tensor(labels), "predictions": tensor(predictions)}
    request |= {"reduction": reduction, **options}
    arguments = dict(options, reduction=reduction)
    if weights != "none":
        arguments["weights"] = weights_of(name, weights)
        request["weights"] = tensor(arguments["weights"])
    ours = ask(request)
    with tf.Graph().as_default(), v1.Session() as session:
        fed = tf.constant(predictions)
        loss = getattr(v1.losses, name)(tf.constant(labels), fed, **arguments)
        theirs, gradient = session.run([loss, tf.gradients(loss, fed)[0]])
        assert ours["losses"] == len(v1.losses.get_losses())
    np.testing.assert_allclose(array(ours["loss"]), theirs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(array(ours["gradient"]), gradient, rtol=1e-5, atol=1e-6)


def test_labels_and_weights_of_sparse_cross_entropy_may_be_columns():
    labels, logits, _ = LOSSES["sparse_softmax_cross_entropy"]
    weights = weights_of("sparse_softmax_cross_entropy", "rows")
    ours = ask({
        "kind": "loss", "loss": "sparse_softmax_cross_entropy", "labels": tensor(labels[:, None]),
        "predictions": tensor(logits), "weights": tensor(weights[:, None]),
    })  # fmt: skip
    with tf.Graph().as_default(), v1.Session() as session:
        theirs = session.run(v1.losses.sparse_softmax_cross_entropy(labels[:, None], logits, weights[:, None]))
    np.testing.assert_allclose(array(ours["loss"]), theirs, rtol=1e-5)


THRESHOLDS = [0.1, 0.5, 0.9]
METRICS = [
    ("mean", {}),
    ("accuracy", {}),
    ("mean_absolute_error", {}),
    ("mean_squared_error", {}),
    ("root_mean_squared_error", {}),
    ("precision", {}),
    ("recall", {}),
    ("precision", {"dtype": "bool"}),
    ("recall", {"dtype": "bool"}),
    ("precision_at_thresholds", {"thresholds": THRESHOLDS}),
    ("recall_at_thresholds", {"thresholds": THRESHOLDS}),
    ("auc", {}),
    ("auc", {"num_thresholds": 20, "curve": "PR", "summation_method": "careful_interpolation"}),
    ("auc", {"num_thresholds": 11, "curve": "PR"}),
    ("auc", {"num_thresholds": 11, "summation_method": "minoring"}),
    ("auc", {"num_thresholds": 11, "summation_method": "majoring"}),
]


def batches_of(name, weighted, dtype="float32"):
    rng = np.random.default_rng(5)
    for _ in range(3):
        labels = rng.integers(0, 2, (40, 1)).astype(np.float32)
        predictions = np.clip(0.3 * labels + rng.uniform(0, 0.7, (40, 1)), 0, 1).astype(np.float32)
        if name in ("accuracy", "precision", "recall"):
            predictions = predictions.round()
        batch = {"labels": labels.astype(dtype), "predictions": predictions.astype(dtype)}
        if weighted:
            batch["weights"] = rng.integers(0, 3, (40, 1)).astype(np.float32)
        yield batch


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "options"), METRICS, ids=lambda value: str(value).replace(" ", ""))
def test_metric(name, options, weighted):
    options = dict(options)
    batches = list(batches_of(name, weighted, options.pop("dtype", "float32")))
    parts = [{key: tensor(value) for key, value in batch.items()} for batch in batches]
    ours = [array(value) for value in ask({"kind": "metric", "metric": name, "batches": parts, **options})]
    with tf.Graph().as_default(), v1.Session() as session:
        fed = {key: v1.placeholder(value.dtype, [40, 1]) for key, value in batches[0].items()}
        inputs = (fed["predictions"],) if name == "mean" else (fed["labels"], fed["predictions"])
        value, update = getattr(v1.metrics, name)(*inputs, weights=fed.get("weights"), **options)
        session.run(v1.local_variables_initializer())
        theirs = [session.run(value)]
        for batch in batches:
            session.run(update, {fed[key]: batch[key] for key in fed})
            theirs.append(session.run(value))
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours[1:], theirs[1:], rtol=1e-5, atol=1e-6)


NAMES = [
    "conv2d/kernel", "conv2d/bias", "batch_normalization/gamma", "batch_normalization/beta",
    "batch_normalization/moving_mean", "batch_normalization/moving_variance", "second/kernel", "dense/kernel",
    "dense/bias", "batch_normalization_1/gamma", "batch_normalization_1/beta", "batch_normalization_1/moving_mean",
    "batch_normalization_1/moving_variance", "dense_1/kernel", "dense_1/bias",
]  # fmt: skip


def variables_of(checkpoint):
    """The variables of TensorFlow 1's layers, with the shapes in the checkpoint."""
    frozen = ("moving_mean", "moving_variance")
    shapes = dict(tf.train.list_variables(checkpoint))
    return {name: v1.get_variable(name, shapes[name], trainable=not name.endswith(frozen)) for name in NAMES}


def normalized(x, w, scope, momentum, training):
    """What v1.layers.batch_normalization computes: the output, and the updates of the moving averages."""
    gamma, beta, mean, variance = (w[f"{scope}/{part}"] for part in ("gamma", "beta", "moving_mean", "moving_variance"))
    if not training:
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3), []
    if x.shape.rank == 4:
        y, batch_mean, batch_variance = v1.nn.fused_batch_norm(x, gamma, beta, epsilon=1e-3)[:3]
    else:
        batch_mean, batch_variance = tf.nn.moments(x, [0])
        y = tf.nn.batch_normalization(x, batch_mean, batch_variance, beta, gamma, 1e-3)
    pairs = ((mean, batch_mean), (variance, batch_variance))
    return y, [average.assign_sub((average - value) * (1 - momentum)) for average, value in pairs]


@pytest.mark.parametrize("fed", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_layers(training, fed, tmp_path):
    rng = np.random.default_rng(2)
    images = rng.normal(0, 1, (6, 8, 8, 3)).astype(np.float32)
    labels = np.array([0, 1, 2, 2, 1, 0], np.int64)
    request = {"images": tensor(images), "labels": tensor(labels), "training": training, "fed": fed, "steps": 5}
    ours = ask({"kind": "layers", "dir": str(tmp_path), **request})
    assert sorted(ours["variables"]) == sorted(NAMES)
    initial, trained = str(tmp_path / "initial"), str(tmp_path / "trained")
    with tf.Graph().as_default(), v1.Session() as session:
        v1.disable_resource_variables()
        w = variables_of(initial)
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, w["conv2d/kernel"], 1, "SAME"), w["conv2d/bias"]))
        x, updates = normalized(x, w, "batch_normalization", 0.9, training)
        x = tf.nn.conv2d(tf.nn.max_pool2d(x, 2, 2, "VALID"), w["second/kernel"], 2, "VALID")
        x = tf.nn.avg_pool2d(x, [2, 1], 1, "SAME")
        x = tf.tanh(tf.reshape(x, [len(images), -1]) @ w["dense/kernel"] + w["dense/bias"])
        x, more = normalized(x, w, "batch_normalization_1", 0.99, training)
        logits = x @ w["dense_1/kernel"] + w["dense_1/bias"]
        v1.losses.sparse_softmax_cross_entropy(labels, logits)
        loss = v1.losses.get_total_loss() + 0.01 * tf.nn.l2_loss(w["dense/kernel"])
        with tf.control_dependencies(updates + more):
            step = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        v1.train.Saver().restore(session, initial)
        theirs = [session.run([loss, step])[0] for _ in range(5)]
        np.testing.assert_allclose(ours["losses"], theirs, rtol=2e-4)
        np.testing.assert_allclose(array(ours["logits"]), session.run(logits), rtol=2e-3, atol=1e-4)
        for name, value in w.items():
            np.testing.assert_allclose(
                tf.train.load_variable(trained, name), session.run(value), rtol=1e-3, atol=1e-4, err_msg=name
            )


def write_records(path):
    """Images of 4 x 4 pixels, as image_raw: class 1 is brighter in its lower half, class 0 in its upper half."""
    rng = np.random.default_rng(4)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for i in range(40):
            image = rng.integers(0, 150, (4, 4, 1))
            image[2:] += 100 * (i % 2)
            image[:2] += 100 * (1 - i % 2)
            features = {
                "image_raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.astype(np.uint8).tobytes()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 2])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())


def test_an_estimator_learns_from_raw_images_in_records(tmp_path):
    write_records(tmp_path / "images.tfrecord")
    metrics = ask({"kind": "records", "file": str(tmp_path / "images.tfrecord"), "dir": str(tmp_path / "model")})
    assert metrics["global_step"] == 100
    assert metrics["accuracy"] > 0.9
    assert metrics["auc"] > 0.9
    assert metrics["recall"] > 0.8
    names = dict(tf.train.list_variables(str(tmp_path / "model")))
    assert {"conv2d/kernel", "batch_normalization/moving_mean", "dense/bias", "global_step"} <= {*names}


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_examples_and_records(compression, tmp_path):
    path = str(tmp_path / "x.tfrecord")
    ask({"kind": "write_records", "file": path, "compression": compression})
    dataset = tf.data.TFRecordDataset(path, compression_type=compression)
    first, second, last = [tf.train.Example.FromString(record) for record in dataset.as_numpy_iterator()]
    assert {*first.features.feature} == {"ids", "x", "image_raw"}
    assert [*first.features.feature["ids"].int64_list.value] == [1, -1, 1 << 40]
    assert [*second.features.feature["x"].float_list.value] == [1.0]
    assert [*second.features.feature["image_raw"].bytes_list.value] == [b"\0\xff", b"c" * 100_000]
    assert [*last.features.feature["x"].float_list.value] == []


def save_table(folder, partitions):
    """TensorFlow's own checkpoint of a partitioned table, and of a bias. Returns its prefix, and look-ups in it."""
    ids = [0, 6, 3, 3, 4, 1]
    rows = {}
    with tf.Graph().as_default(), v1.Session() as session:
        table = v1.get_variable("emb", [7, 3], partitioner=v1.fixed_size_partitioner(partitions))
        v1.get_variable("dense/bias", initializer=np.array([1, 2, 3], np.float32))
        for strategy in ("mod", "div"):
            rows[strategy] = v1.nn.embedding_lookup(table, ids, partition_strategy=strategy)
        session.run(v1.global_variables_initializer())
        prefix = v1.train.Saver().save(session, str(folder / "model.ckpt"), global_step=7)
        return prefix, ids, session.run(rows)


@pytest.mark.parametrize("partitions", [2, 3])
def test_lookups_in_partitioned_variables(partitions, tmp_path):
    prefix, ids, theirs = save_table(tmp_path, partitions)
    for strategy in ("mod", "div"):
        request = {"kind": "embedding", "prefix": prefix, "ids": ids, "strategy": strategy, "parts": partitions}
        np.testing.assert_array_equal(array(ask(request)), theirs[strategy])
    # Rows in order do not depend on the number of parts.
    request = {"kind": "embedding", "prefix": prefix, "ids": ids, "strategy": "div", "parts": 1}
    np.testing.assert_array_equal(array(ask(request)), theirs["div"])


def test_variables_of_checkpoints(tmp_path):
    prefix, _, _ = save_table(tmp_path, 3)
    ours = ask({"kind": "checkpoint", "dir": str(tmp_path)})
    assert ours["shapes"] == {name: [*shape] for name, shape in tf.train.list_variables(prefix)}
    table = tf.train.load_variable(prefix, "emb")
    np.testing.assert_array_equal(array(ours["loaded"]), table)
    np.testing.assert_array_equal(array(ours["emb"]), table)
    np.testing.assert_array_equal(array(ours["bias"]), [1, 2, 3])
