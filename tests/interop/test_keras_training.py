"""Losses, metrics, optimizers and schedules: Keras computes the same results from the same numbers."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import our_programs

BATCH, CLASSES, STEPS = 24, 7, 50


def random(name):
    return np.random.default_rng(list(name.encode()))


def as_json(array):
    return {"dtype": str(array.dtype), "shape": list(array.shape), "values": array.ravel().tolist()}


# ---- requests ------------------------------------------------------------------------------------------------------


def normal(rng, *shape, scale=1.0):
    return rng.normal(0, scale, shape).astype(np.float32)


def one_hot(labels):
    return np.eye(CLASSES, dtype=np.float32)[labels]


def distribution(scores):
    return (np.exp(scores) / np.exp(scores).sum(1, keepdims=True)).astype(np.float32)


def loss_data(name, options, activation, rng):
    """Returns y_true and y_pred that make sense for the loss."""
    kind = name.lower().replace("_", "")
    if kind == "sparsecategoricalcrossentropy":
        y_true = rng.integers(0, CLASSES, BATCH).astype(np.int32)
    elif kind in ("categoricalcrossentropy", "categoricalfocalcrossentropy"):
        y_true = one_hot(rng.integers(0, CLASSES, BATCH))
    elif kind in ("binarycrossentropy", "binaryfocalcrossentropy"):
        y_true = rng.integers(0, 2, (BATCH, CLASSES)).astype(np.float32)
    elif kind in ("hinge", "squaredhinge"):
        signs = rng.integers(0, 2, (BATCH, CLASSES)).astype(np.float32)
        # A class's name stands for targets of 0 and 1, a function's name for targets of -1 and 1.
        return (signs if name[0].isupper() else 2 * signs - 1), normal(rng, BATCH, CLASSES)
    elif kind == "categoricalhinge":
        return one_hot(rng.integers(0, CLASSES, BATCH)), normal(rng, BATCH, CLASSES)
    elif kind in ("dice", "tversky"):
        masks = rng.integers(0, 2, (BATCH, 3, CLASSES)).astype(np.float32)
        return masks, (1 / (1 + np.exp(-normal(rng, *masks.shape) - masks))).astype(np.float32)
    elif kind in ("kldivergence", "kld"):
        y_true = distribution(normal(rng, BATCH, CLASSES))
        y_true[0] = one_hot(1)
        return y_true, distribution(normal(rng, BATCH, CLASSES, scale=3))
    elif kind == "poisson":
        return rng.poisson(2, (BATCH, CLASSES)).astype(np.float32), np.abs(normal(rng, BATCH, CLASSES)) + 0.01
    else:
        return normal(rng, BATCH, CLASSES), normal(rng, BATCH, CLASSES, scale=2)
    scores = normal(rng, BATCH, CLASSES, scale=3)
    if options.get("from_logits") or activation:
        return y_true, scores
    if kind.startswith("binary"):
        return y_true, (1 / (1 + np.exp(-scores))).astype(np.float32)
    # The probabilities are not quite normalized. One is 1 and one is 0.
    probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True) * 1.1
    probabilities[0] = 0
    probabilities[0, 1] = 1
    return y_true, probabilities.astype(np.float32)


LOSSES = [
    (name, options, activation, weighted)
    for name, variants in {
        "SparseCategoricalCrossentropy": [({}, ""), ({"from_logits": True}, ""), ({}, "softmax")],
        "CategoricalCrossentropy": [
            ({}, ""),
            ({"from_logits": True}, ""),
            ({}, "softmax"),
            ({"label_smoothing": 0.2}, ""),
            ({"from_logits": True, "label_smoothing": 0.1}, ""),
        ],
        "BinaryCrossentropy": [
            ({}, ""),
            ({"from_logits": True}, ""),
            ({}, "sigmoid"),
            ({"label_smoothing": 0.2}, ""),
            ({"from_logits": True, "label_smoothing": 0.1}, ""),
        ],
        "MeanSquaredError": [({}, ""), ({"reduction": "sum"}, "")],
        "MeanAbsoluteError": [({}, ""), ({"reduction": "mean_with_sample_weight"}, "")],
        "Huber": [({}, ""), ({"delta": 0.5}, ""), ({"delta": 3.0, "reduction": "sum"}, "")],
        "MeanAbsolutePercentageError": [({}, ""), ({"reduction": "sum"}, "")],
        "MeanSquaredLogarithmicError": [({}, ""), ({"reduction": "mean_with_sample_weight"}, "")],
        "LogCosh": [({}, ""), ({"reduction": "sum"}, "")],
        "Poisson": [({}, ""), ({"reduction": "mean_with_sample_weight"}, "")],
        "Hinge": [({}, ""), ({"reduction": "sum"}, "")],
        "SquaredHinge": [({}, ""), ({"reduction": "sum"}, "")],
        "CosineSimilarity": [({}, ""), ({"reduction": "mean_with_sample_weight"}, "")],
        "KLDivergence": [({}, ""), ({"reduction": "sum"}, "")],
        "BinaryFocalCrossentropy": [
            ({}, ""),
            ({"from_logits": True}, ""),
            ({}, "sigmoid"),
            ({"apply_class_balancing": True, "alpha": 0.4, "gamma": 1.5}, ""),
            ({"gamma": 3.0, "label_smoothing": 0.2}, ""),
        ],
        "CategoricalFocalCrossentropy": [
            ({}, ""),
            ({"from_logits": True}, ""),
            ({}, "softmax"),
            ({"alpha": 0.6, "gamma": 1.5}, ""),
            ({"from_logits": True, "label_smoothing": 0.1}, ""),
        ],
        "CategoricalHinge": [({}, ""), ({"reduction": "sum"}, "")],
        "Dice": [
            ({}, ""),
            ({"axis": [1, 2]}, ""),
            ({"axis": [-2, -1]}, ""),
            ({"reduction": "sum"}, ""),
            ({"reduction": "mean_with_sample_weight"}, ""),
        ],
        "Tversky": [({}, ""), ({"alpha": 0.3, "beta": 0.8}, ""), ({"axis": [1, 2], "reduction": "sum"}, "")],
        "binary_focal_crossentropy": [({}, "")],
        "categorical_focal_crossentropy": [({}, "")],
        "categorical_hinge": [({}, "")],
        "dice": [({}, "")],
        "tversky": [({}, "")],
        "sparse_categorical_crossentropy": [({}, "")],
        "binary_crossentropy": [({}, "")],
        "mape": [({}, "")],
        "MSLE": [({}, "")],
        "log_cosh": [({}, "")],
        "poisson": [({}, "")],
        "hinge": [({}, "")],
        "squared_hinge": [({}, "")],
        "cosine_similarity": [({}, "")],
        "kld": [({}, "")],
        "mse": [({}, "")],
        "MAE": [({}, "")],
        "huber": [({}, "")],
    }.items()
    for options, activation in variants
    for weighted in (False, True)
]


def loss_id(case):
    name, options, activation, weighted = case
    parts = [name, *(f"{key}={value}" for key, value in options.items()), activation, "weighted" if weighted else ""]
    return "-".join(part for part in parts if part)


def loss_request(case):
    name, options, activation, weighted = case
    rng = random(loss_id(case))
    y_true, y_pred = loss_data(name, options, activation, rng)
    request = {"kind": "loss", "name": name, "options": options, "activation": activation}
    request["y_true"], request["y_pred"] = y_true, y_pred
    if weighted:
        request["sample_weight"] = rng.uniform(0, 2, BATCH).astype(np.float32)
    return request


# The metrics that are means of losses.
OF_LOSSES = ("mse", "mape", "msle", "LogCoshError", "hinge", "SquaredHinge", "kl_divergence", "poisson")
# interop_keras_training makes these metrics from their options, and the others from Keras's own form in files.
METRICS_BY_OPTIONS = (
    "BinaryAccuracy", "TopKCategoricalAccuracy", "SparseTopKCategoricalAccuracy", "Precision", "Recall", "AUC",
)  # fmt: skip
METRICS = [
    (name, options, weighted)
    for name, variants in {
        "accuracy:binary": [{}],
        "accuracy:categorical": [{}],
        "accuracy:sparse": [{}],
        "acc:sparse_column": [{}],
        "BinaryAccuracy": [{"threshold": 0.3}],
        "categorical_accuracy": [{}],
        "sparse_categorical_accuracy": [{}],
        "top_k_categorical_accuracy": [{}],
        "TopKCategoricalAccuracy": [{"k": 2}],
        "SparseTopKCategoricalAccuracy": [{"k": 3}],
        **{name: [{}] for name in OF_LOSSES},
        "cosine_similarity": [{}],
        "root_mean_squared_error": [{}],
        "precision": [{}],
        "Precision": [{"thresholds": 0.3}, {"class_id": 2}, {"thresholds": 0.7, "class_id": 0}],
        "recall": [{}],
        "Recall": [{"thresholds": 0.7}, {"class_id": 1}, {"thresholds": 0.6, "class_id": 4}],
        **{name: [{}] for name in ("true_positives", "FalsePositives", "true_negatives", "FalseNegatives")},
        "TruePositives": [{"thresholds": 0.3}],
        "TrueNegatives": [{"thresholds": [0.7]}],
        "PrecisionAtRecall": [{"recall": 0.6}, {"recall": 0.4, "num_thresholds": 10, "class_id": 2}],
        "RecallAtPrecision": [{"precision": 0.6}, {"precision": 0.5, "num_thresholds": 1}],
        "SensitivityAtSpecificity": [{"specificity": 0.6}, {"specificity": 0.5, "num_thresholds": 5}],
        "SpecificityAtSensitivity": [{"sensitivity": 0.6}, {"sensitivity": 0.5, "num_thresholds": 30, "class_id": 1}],
        "F1Score": [{"average": "micro"}, {"average": "macro"}, {"average": "weighted", "threshold": 0.4}],
        "FBetaScore": [{"average": "macro", "beta": 2.0}, {"average": "micro", "beta": 0.5, "threshold": 0.6}],
        "IoU": [{"num_classes": CLASSES, "target_class_ids": [1, 4]}, {"num_classes": 4, "target_class_ids": [0, 3]}],
        "MeanIoU": [{"num_classes": CLASSES}, {"num_classes": CLASSES, "ignore_class": 2}],
        "OneHotIoU": [{"num_classes": CLASSES, "target_class_ids": [0, 2]}],
        "OneHotMeanIoU": [{"num_classes": CLASSES, "ignore_class": 1}],
        "BinaryIoU": [{}, {"target_class_ids": [1], "threshold": 0.3}],
        "R2Score": [{}, {"class_aggregation": "variance_weighted_average"}, {"num_regressors": 3}],
        "categorical_hinge": [{}],
        "BinaryCrossentropy": [{"from_logits": True, "label_smoothing": 0.1}],
        "CategoricalCrossentropy": [{"label_smoothing": 0.1}],
        "AUC": [
            {},
            {"num_thresholds": 20},
            {"curve": "PR"},
            {"curve": "PR", "summation_method": "minoring"},
            {"summation_method": "majoring"},
            {"summation_method": "minoring"},
            {"thresholds": [0.9, 0.1, 0.35, 0.5]},
            {"from_logits": True},
        ],
    }.items()
    for options in variants
    for weighted in (False, True)
]


def metric_id(case):
    return loss_id((case[0], case[1], "", case[2])).replace(" ", "")


def metric_batch(name, options, rng):
    labels = rng.integers(0, CLASSES, BATCH).astype(np.int64)
    # The scores are close to the labels, so that the metric is neither that of chance nor perfect. Rounding makes ties.
    scores = np.round(normal(rng, BATCH, CLASSES) + 1.5 * one_hot(labels), 1).astype(np.float32)
    if name.startswith("AUC") or name in ("accuracy:binary", "BinaryAccuracy"):
        y_true = rng.integers(0, 2, (BATCH, 1)).astype(np.float32)
        logits = np.round(normal(rng, BATCH, 1) + y_true, 1)
        return y_true, logits if options.get("from_logits") else (1 / (1 + np.exp(-logits))).astype(np.float32)
    if name in OF_LOSSES:
        return loss_data(name, {}, "", rng)
    if name in ("BinaryCrossentropy", "CategoricalCrossentropy", "categorical_hinge"):
        return loss_data(name, options, "", rng)
    if name == "root_mean_squared_error":
        return normal(rng, BATCH, 3), normal(rng, BATCH, 3)
    if name == "R2Score":
        y_true = normal(rng, BATCH, 3)
        return y_true, y_true + normal(rng, BATCH, 3, scale=0.5)
    if name == "BinaryIoU":
        y_true = rng.integers(0, 2, BATCH).astype(np.float32)
        return y_true, (1 / (1 + np.exp(-normal(rng, BATCH) - y_true))).astype(np.float32)
    if name in ("IoU", "MeanIoU"):
        return labels, scores.argmax(1)
    if "ositives" in name or "egatives" in name or "Score" in name or "recision" in name or "ecall" in name \
            or "nsitivity" in name:
        y_true = rng.integers(0, 2, (BATCH, CLASSES)).astype(np.float32)
        return y_true, (1 / (1 + np.exp(-normal(rng, BATCH, CLASSES) - y_true))).astype(np.float32)
    if "parse" in name:
        return (labels[:, None] if "column" in name else labels), scores
    return one_hot(labels), scores


def metric_request(case):
    name, options, weighted = case
    rng = random(metric_id(case))
    batches = []
    for _ in range(5):
        y_true, y_pred = metric_batch(name, options, rng)
        batches.append({"y_true": y_true, "y_pred": y_pred})
        if weighted:
            # Keras cuts off the fractions of weights in IoU.
            weights = rng.integers(0, 3, BATCH) if "IoU" in name else rng.uniform(0, 2, BATCH)
            batches[-1]["sample_weight"] = weights.astype(np.float32)
    request = {"kind": "metric", "name": name.split(":")[0], "options": options, "batches": batches}
    if options and name not in METRICS_BY_OPTIONS:
        request["config"] = keras.metrics.serialize(getattr(keras.metrics, name)(**options))
    return request


SCHEDULES = [
    ("ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 7, "decay_rate": 0.8}),
    ("ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 7, "decay_rate": 0.8, "staircase": True}),
    ("InverseTimeDecay", {"initial_learning_rate": 0.1, "decay_steps": 5, "decay_rate": 0.5}),
    ("InverseTimeDecay", {"initial_learning_rate": 0.1, "decay_steps": 5, "decay_rate": 0.5, "staircase": True}),
    ("PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 30, "end_learning_rate": 0.01, "power": 2.0}),
    ("PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 12, "end_learning_rate": 0.01, "cycle": True}),
    ("CosineDecay", {"initial_learning_rate": 0.1, "decay_steps": 30, "alpha": 0.05}),
    ("CosineDecay", {"initial_learning_rate": 0.01, "decay_steps": 30, "warmup_target": 0.2, "warmup_steps": 9}),
    ("CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 6, "m_mul": 0.8, "alpha": 0.05}),
    ("CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 11, "t_mul": 1.0}),
    ("CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 9, "t_mul": 1.5, "m_mul": 0.9}),
    ("PiecewiseConstantDecay", {"boundaries": [5, 20], "values": [0.1, 0.05, 0.01]}),
]


def schedule_id(case):
    name, options = case
    return name + "".join(f"-{key}" for key in options if key in ("staircase", "cycle", "warmup_steps", "t_mul", "m_mul"))


OPTIMIZERS = [
    *[
        (name, {})
        for name in ("sgd", "adagrad", "adam", "adamw", "rmsprop", "ftrl", "nadam", "adamax", "lion")
    ],
    ("Nadam", {"learning_rate": 0.02, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-3}),
    ("Nadam", {"learning_rate": 0.02, "weight_decay": 0.05, "clipnorm": 0.5}),
    ("Adamax", {"learning_rate": 0.02, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-3}),
    ("Adamax", {"learning_rate": 0.02, "weight_decay": 0.1}),
    ("Lion", {"learning_rate": 0.01, "beta_1": 0.8, "beta_2": 0.9}),
    ("Lion", {"learning_rate": 0.01, "weight_decay": 0.2, "clipvalue": 0.3}),
    ("Adadelta", {"learning_rate": 1.0, "rho": 0.9, "epsilon": 1e-4}),
    ("Adadelta", {"learning_rate": 2.0, "weight_decay": 0.01, "global_clipnorm": 0.7}),
    ("SGD", {"learning_rate": 0.05, "momentum": 0.9}),
    ("SGD", {"learning_rate": 0.05, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"learning_rate": 0.05, "momentum": 0.5, "weight_decay": 0.02}),
    ("SGD", {"learning_rate": 0.05, "clipvalue": 0.3}),
    ("SGD", {"learning_rate": 0.05, "clipnorm": 0.4}),
    ("SGD", {"learning_rate": 0.05, "momentum": 0.9, "global_clipnorm": 0.7}),
    ("Adagrad", {"learning_rate": 0.05, "initial_accumulator_value": 0.0, "epsilon": 0.01}),
    ("Adagrad", {"learning_rate": 0.05, "weight_decay": 0.01, "global_clipnorm": 1.0}),
    ("Adam", {"learning_rate": 0.02, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-3}),
    ("Adam", {"learning_rate": 0.02, "amsgrad": True}),
    ("Adam", {"learning_rate": 0.02, "clipnorm": 0.5, "weight_decay": 0.1}),
    ("AdamW", {"learning_rate": 0.01, "weight_decay": 0.05}),
    ("AdamW", {"learning_rate": 0.01, "amsgrad": True, "clipvalue": 0.2}),
    ("RMSprop", {"learning_rate": 0.01, "rho": 0.8, "momentum": 0.7}),
    ("RMSprop", {"learning_rate": 0.01, "centered": True, "epsilon": 1e-4}),
    ("RMSprop", {"learning_rate": 0.01, "centered": True, "momentum": 0.5, "weight_decay": 0.03}),
    ("Ftrl", {"learning_rate": 0.1, "l1_regularization_strength": 0.05, "l2_regularization_strength": 0.1}),
    ("Ftrl", {"learning_rate": 0.1, "l2_shrinkage_regularization_strength": 0.1, "beta": 0.3}),
    ("Ftrl", {"learning_rate": 0.1, "learning_rate_power": -0.7, "initial_accumulator_value": 0.2}),
    ("Ftrl", {"learning_rate": 0.1, "weight_decay": 0.05, "clipnorm": 0.6}),
    *[
        (name, base | options)
        for name, base in (
            ("SGD", {"learning_rate": 0.1, "momentum": 0.9}),
            ("Adam", {"learning_rate": 0.02}),
            ("Nadam", {"learning_rate": 0.02}),
        )
        for options in (
            {"use_ema": True},
            {"use_ema": True, "ema_momentum": 0.8, "ema_overwrite_frequency": 7},
            {"gradient_accumulation_steps": 4},
            {"gradient_accumulation_steps": 3, "weight_decay": 0.05, "global_clipnorm": 0.6},
            {"gradient_accumulation_steps": 4, "use_ema": True, "ema_momentum": 0.9, "ema_overwrite_frequency": 3},
            {"loss_scale_factor": 8.0, "clipnorm": 0.4},
        )
    ],
    ("SGD", {"gradient_accumulation_steps": 4, "learning_rate": 0.1, "clipvalue": 0.2}),
    *[
        (name, {"schedule": "CosineDecay", "schedule_options": {"initial_learning_rate": 0.1, "decay_steps": 30}}
         | {"gradient_accumulation_steps": 4})
        for name in ("SGD", "Adam")
    ],
    *[
        (name, {"schedule": schedule, "schedule_options": options})
        for name in ("SGD", "Adam")
        for schedule, options in SCHEDULES
    ],
]


def optimizer_id(case):
    name, options = case
    if "schedule" in options:
        steps = options.get("gradient_accumulation_steps")
        return f"{name}-{schedule_id((options['schedule'], options['schedule_options']))}" + (f"-{steps}" if steps else "")
    return "-".join([name, *(f"{key}={value}" for key, value in options.items())])


def optimizer_request(case):
    name, options = case
    rng = random(optimizer_id(case))
    shapes = [(4, 3), (3,), (2, 3, 2)]
    return {
        "kind": "optimizer",
        "name": name,
        "options": options,
        "weights": [normal(rng, *shape) for shape in shapes],
        "gradients": [[normal(rng, *shape, scale=0.5) + 0.1 for shape in shapes] for _ in range(STEPS)],
    }


REQUESTS = {
    **{"loss " + loss_id(case): loss_request(case) for case in LOSSES},
    **{"metric " + metric_id(case): metric_request(case) for case in METRICS},
    **{"optimizer " + optimizer_id(case): optimizer_request(case) for case in OPTIMIZERS},
    **{
        "schedule " + schedule_id(case): {"kind": "schedule", "name": case[0], "options": case[1], "steps": STEPS}
        for case in SCHEDULES
    },
}


@functools.cache
def answers():
    """Returns the answers of interop_keras_training to all requests."""
    return dict(zip(REQUESTS, our_programs.ask("interop_keras_training", list(REQUESTS.values()), as_json), strict=True))


def ours(name):
    answer = answers()[name]
    assert "error" not in answer, answer.get("error")
    return REQUESTS[name], answer


# ---- comparisons ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", LOSSES, ids=loss_id)
def test_loss(case):
    request, answer = ours("loss " + loss_id(case))
    options = request["options"]
    loss = getattr(keras.losses, request["name"])(**options) if options else keras.losses.get(request["name"])
    if not isinstance(loss, keras.losses.Loss):
        per_example = loss
        weights = request.get("sample_weight", np.float32(1))
        loss = lambda t, p, sample_weight: keras.ops.mean(per_example(t, p) * weights)  # noqa: E731
    y_pred = tf.Variable(request["y_pred"])
    with tf.GradientTape() as tape:
        predicted = getattr(keras.activations, request["activation"])(y_pred) if request["activation"] else y_pred
        value = loss(request["y_true"], predicted, sample_weight=request.get("sample_weight"))
    np.testing.assert_allclose(answer["loss"], float(value), rtol=1e-5)
    gradient = tape.gradient(value, y_pred).numpy()
    error = np.linalg.norm(np.reshape(answer["gradient"], gradient.shape) - gradient)
    assert error <= 1e-4 * np.linalg.norm(gradient)


@pytest.mark.parametrize("case", METRICS, ids=metric_id)
def test_metric(case):
    request, answer = ours("metric " + metric_id(case))
    name, options, first = request["name"], request["options"], request["batches"][0]
    if name in ("accuracy", "acc"):
        theirs = keras.src.trainers.compile_utils.get_metric(name, first["y_true"], first["y_pred"])
    elif options:
        theirs = getattr(keras.metrics, name)(**options)
    else:
        theirs = keras.metrics.get(name)
        if not isinstance(theirs, keras.metrics.Metric):
            theirs = keras.metrics.MeanMetricWrapper(theirs)
    for batch in request["batches"]:
        theirs.update_state(batch["y_true"], batch["y_pred"], sample_weight=batch.get("sample_weight"))
    np.testing.assert_allclose(answer["result"], float(theirs.result()), rtol=2e-5)
    unbounded = (*OF_LOSSES, "root_mean_squared_error", "categorical_hinge")
    is_large = name in unbounded or "rossentropy" in name or "ositives" in name or "egatives" in name
    assert 0 < answer["result"] and (is_large or answer["result"] < 1)


@pytest.mark.parametrize("case", SCHEDULES, ids=schedule_id)
def test_schedule(case):
    name, options = case
    _, answer = ours("schedule " + schedule_id(case))
    theirs = getattr(keras.optimizers.schedules, name)(**options)
    expected = [float(theirs(tf.constant(step, tf.int64))) for step in range(STEPS)]
    np.testing.assert_allclose(answer["rates"], expected, rtol=1e-5)
    assert len({round(rate, 6) for rate in expected}) > 2


def keras_optimizer(name, options):
    options = dict(options)
    if not options:
        return keras.optimizers.get(name)
    if "schedule" in options:
        schedule = getattr(keras.optimizers.schedules, options.pop("schedule"))
        options["learning_rate"] = schedule(**options.pop("schedule_options"))
    return getattr(keras.optimizers, name)(**options)


@pytest.mark.parametrize("case", OPTIMIZERS, ids=optimizer_id)
def test_optimizer(case):
    request, answer = ours("optimizer " + optimizer_id(case))
    theirs = keras_optimizer(*case)
    weights = [keras.Variable(value) for value in request["weights"]]
    for gradients in request["gradients"]:
        theirs.apply([tf.constant(gradient) for gradient in gradients], weights)
    for start, weight, mine in zip(request["weights"], weights, answer["weights"], strict=True):
        weight = weight.numpy()
        change = np.linalg.norm(weight - start)
        assert change > 1e-3
        assert np.linalg.norm(np.reshape(mine, weight.shape) - weight) <= 1e-4 * change
    # The variables that a file holds, in Keras's order.
    assert len(theirs.variables) == len(answer["state"]), [variable.path for variable in theirs.variables]
    for variable, mine in zip(theirs.variables, answer["state"], strict=True):
        value = variable.numpy()
        scale = max(np.linalg.norm(value), 1e-6)
        assert np.linalg.norm(np.reshape(mine, value.shape) - value) <= 1e-4 * scale, variable.path
