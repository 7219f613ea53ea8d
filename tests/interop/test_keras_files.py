"""Files of models: we read what Keras saves, and Keras loads what we write."""

import keras
import numpy as np
import pytest

import our_programs


def ask(request):
    (answer,) = our_programs.ask("interop_keras_training", [request])
    assert "error" not in answer, answer
    return answer


def trained_model():
    keras.utils.set_random_seed(1)
    layers = keras.layers
    model = keras.Sequential([
        layers.Input((8, 8, 1)),
        layers.Conv2D(4, 3),
        layers.BatchNormalization(),
        layers.Dropout(0.2),
        layers.Flatten(),
        layers.Dense(5),
        layers.Dense(3, activation="softmax"),
    ])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    rng = np.random.default_rng(0)
    model.fit(rng.normal(size=(32, 8, 8, 1)), rng.integers(0, 3, 32), verbose=0)
    return model


@pytest.mark.parametrize("whole", [True, False], ids=["keras", "weights"])
def test_weights_come_and_go(tmp_path, whole):
    model = trained_model()
    ending = "keras" if whole else "weights.h5"
    theirs, ours = tmp_path / f"theirs.{ending}", tmp_path / f"ours.{ending}"
    (model.save if whole else model.save_weights)(theirs)
    answer = ask({"kind": "file", "from": str(theirs), "to": str(ours), "whole": whole})
    if whole:
        assert answer["version"] == keras.__version__
    groups = {group["path"]: group for group in answer["groups"]}
    for path, layer in zip(
        ["conv2d", "batch_normalization", "dense", "dense_1"], [model.layers[i] for i in (0, 1, 4, 5)], strict=True
    ):
        values = groups[f"layers/{path}"]["values"]
        assert len(values) == len(layer.weights) > 0
        for value, weight in zip(values, layer.weights, strict=True):
            np.testing.assert_array_equal(np.reshape(value["values"], value["shape"]), weight.numpy())
    state = groups["optimizer"]["values"]
    assert [value["shape"] for value in state] == [list(variable.shape) for variable in model.optimizer.variables]
    assert state[0]["dtype"] == "int64"

    if whole:
        loaded = keras.models.load_model(ours)
    else:
        loaded = trained_model()
        for variable in loaded.trainable_variables + loaded.optimizer.variables:  # these were equal from the beginning
            variable.assign(variable + keras.ops.ones_like(variable))
        loaded.load_weights(ours)
    for before, after in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(before + np.float32(1), after)
    for before, after in zip(model.optimizer.variables, loaded.optimizer.variables, strict=True):
        np.testing.assert_array_equal(before.numpy(), after.numpy())


schedules = keras.optimizers.schedules
PARTS = [
    ("optimizer", lambda: keras.optimizers.SGD(0.5, momentum=0.5, nesterov=True, clipnorm=2.0)),
    ("optimizer", lambda: keras.optimizers.Adagrad(0.5, epsilon=0.25, weight_decay=0.125)),
    ("optimizer", lambda: keras.optimizers.Adam(schedules.ExponentialDecay(0.5, 10, 0.25), amsgrad=True)),
    ("optimizer", lambda: keras.optimizers.AdamW(schedules.CosineDecay(0.5, 10, warmup_target=2.0, warmup_steps=3))),
    ("optimizer", lambda: keras.optimizers.RMSprop(schedules.PiecewiseConstantDecay([3], [1.0, 2.0]), centered=True)),
    ("optimizer", lambda: keras.optimizers.RMSprop(schedules.PolynomialDecay(0.5, 10, cycle=True), momentum=0.5)),
    ("optimizer", lambda: keras.optimizers.Ftrl(schedules.InverseTimeDecay(0.5, 10, 0.25), beta=0.5, clipvalue=0.5)),
    ("optimizer", lambda: keras.optimizers.Nadam(0.5, beta_1=0.5, epsilon=0.25)),
    ("optimizer", lambda: keras.optimizers.Adamax(0.5, beta_2=0.5, clipnorm=2.0)),
    ("optimizer", lambda: keras.optimizers.Lion(schedules.ExponentialDecay(0.5, 10, 0.25), beta_1=0.5)),
    ("optimizer", lambda: keras.optimizers.Adadelta(0.5, rho=0.5, weight_decay=0.125)),
    ("optimizer", lambda: keras.optimizers.SGD(0.5, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3)),
    ("optimizer", lambda: keras.optimizers.Adam(0.5, gradient_accumulation_steps=4, loss_scale_factor=8.0)),
    ("optimizer", lambda: keras.optimizers.Adam(schedules.CosineDecayRestarts(0.5, 10, t_mul=1.5, m_mul=0.5))),
    ("loss", lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True)),
    ("loss", lambda: keras.losses.CategoricalCrossentropy(label_smoothing=0.25)),
    ("loss", lambda: keras.losses.BinaryCrossentropy(from_logits=True, name="mine")),
    ("loss", lambda: keras.losses.MeanSquaredError(reduction="sum")),
    ("loss", lambda: keras.losses.MeanAbsoluteError()),
    ("loss", lambda: keras.losses.Huber()),
    ("loss", lambda: keras.losses.MeanAbsolutePercentageError(reduction="sum")),
    ("loss", lambda: keras.losses.MeanSquaredLogarithmicError()),
    ("loss", lambda: keras.losses.LogCosh(name="mine")),
    ("loss", lambda: keras.losses.Poisson()),
    ("loss", lambda: keras.losses.Hinge()),
    ("loss", lambda: keras.losses.SquaredHinge()),
    ("loss", lambda: keras.losses.CosineSimilarity()),
    ("loss", lambda: keras.losses.KLDivergence(reduction="mean_with_sample_weight")),
    ("loss", lambda: keras.losses.BinaryFocalCrossentropy(apply_class_balancing=True, alpha=0.5, gamma=3.0)),
    ("loss", lambda: keras.losses.CategoricalFocalCrossentropy(alpha=0.5, label_smoothing=0.25, from_logits=True)),
    ("loss", lambda: keras.losses.CategoricalHinge()),
    ("loss", lambda: keras.losses.Dice()),
    ("loss", lambda: keras.losses.Dice(axis=-1)),
    ("loss", lambda: keras.losses.Tversky(alpha=0.25, beta=0.75, axis=[1, 2])),
    ("metric", lambda: keras.metrics.AUC(num_thresholds=20, curve="PR", summation_method="minoring")),
    ("metric", lambda: keras.metrics.AUC(thresholds=[0.25, 0.5])),
    ("metric", lambda: keras.metrics.BinaryAccuracy(threshold=0.25)),
    ("metric", lambda: keras.metrics.TopKCategoricalAccuracy(k=3)),
    ("metric", lambda: keras.metrics.SparseTopKCategoricalAccuracy(k=2)),
    ("metric", lambda: keras.metrics.SparseCategoricalAccuracy()),
    ("metric", lambda: keras.metrics.CategoricalAccuracy(name="c")),
    ("metric", lambda: keras.metrics.Mean()),
    ("metric", lambda: keras.metrics.Precision()),
    ("metric", lambda: keras.metrics.Precision(thresholds=0.25, class_id=2)),
    ("metric", lambda: keras.metrics.Recall(name="found")),
    ("metric", lambda: keras.metrics.TruePositives(thresholds=0.25)),
    ("metric", lambda: keras.metrics.FalseNegatives(name="missed")),
    ("metric", lambda: keras.metrics.PrecisionAtRecall(0.5)),
    ("metric", lambda: keras.metrics.RecallAtPrecision(0.25, num_thresholds=20, class_id=1)),
    ("metric", lambda: keras.metrics.SensitivityAtSpecificity(0.5)),
    ("metric", lambda: keras.metrics.SpecificityAtSensitivity(0.5)),
    ("metric", lambda: keras.metrics.F1Score(average="macro")),
    ("metric", lambda: keras.metrics.FBetaScore(average="weighted", beta=2.0, threshold=0.25)),
    ("metric", lambda: keras.metrics.IoU(3, [0, 2], name="i")),
    ("metric", lambda: keras.metrics.MeanIoU(3, ignore_class=0, sparse_y_pred=False, name="i")),
    ("metric", lambda: keras.metrics.OneHotIoU(3, [1], name="i")),
    ("metric", lambda: keras.metrics.OneHotMeanIoU(3, sparse_y_pred=True, name="i")),
    ("metric", lambda: keras.metrics.BinaryIoU([1], threshold=0.25, name="i")),
    ("metric", lambda: keras.metrics.R2Score(class_aggregation="variance_weighted_average", num_regressors=2)),
    ("metric", lambda: keras.metrics.CategoricalHinge()),
    ("metric", lambda: keras.metrics.BinaryCrossentropy(label_smoothing=0.25)),
    ("metric", lambda: keras.metrics.CategoricalCrossentropy(from_logits=True)),
    ("metric", lambda: keras.metrics.SparseCategoricalCrossentropy()),
    ("metric", lambda: keras.metrics.RootMeanSquaredError()),
    ("metric", lambda: keras.metrics.MeanSquaredError()),
    ("metric", lambda: keras.metrics.MeanAbsoluteError()),
    ("metric", lambda: keras.metrics.MeanAbsolutePercentageError()),
    ("metric", lambda: keras.metrics.MeanSquaredLogarithmicError()),
    ("metric", lambda: keras.metrics.LogCoshError()),
    ("metric", lambda: keras.metrics.Hinge()),
    ("metric", lambda: keras.metrics.SquaredHinge()),
    ("metric", lambda: keras.metrics.KLDivergence()),
    ("metric", lambda: keras.metrics.Poisson()),
    ("metric", lambda: keras.metrics.CosineSimilarity()),
]


@pytest.mark.parametrize(("what", "make"), PARTS, ids=lambda part: part if isinstance(part, str) else "")
def test_configurations_come_and_go(what, make):
    module = {"optimizer": keras.optimizers, "loss": keras.losses, "metric": keras.metrics}[what]
    theirs = module.serialize(make())
    ours = ask({"kind": "config", "what": what, "value": theirs})
    assert ours["class_name"] == theirs["class_name"]
    # Our file has every entry that Keras wrote. Keras understands its further entries.
    assert theirs["config"] == {name: ours["config"][name] for name in theirs["config"]}
    loaded = module.deserialize(ours)
    assert module.serialize(loaded)["config"] == theirs["config"]
