"""Files of whole models: Keras continues a training from our file, and we from Keras's."""

import keras
import numpy as np
import pytest

import our_programs
from test_keras_models import BATCHES, CASES, CLASSIFIERS, MODELS, OPTIMIZERS, as_json, case_id, examples

layers = keras.layers
STEPS, MORE = 3, 4


class Scale(layers.Layer):
    """The layer of the same name in keras_models_main.cc."""

    def __init__(self, by, **kwargs):
        super().__init__(**kwargs)
        self.by = by

    def build(self, input_shape):
        self.factor = self.add_weight(shape=(), initializer="ones", name="factor")

    def call(self, x):
        return x * self.factor * self.by

    def get_config(self):
        return {**super().get_config(), "by": self.by}


def nested():
    inner = keras.Sequential([keras.Input((6,)), layers.Dense(5, activation="tanh"), layers.Dense(4)], name="chain")
    a = keras.Input((4,), name="a")
    block = keras.Model(a, layers.Add()([layers.Dense(4, activation="tanh")(a), a]), name="block")
    x = keras.Input((6,), name="x")
    return keras.Model(x, layers.Dense(3)(block(block(inner(x)))))


def crossed():
    x = keras.Input((5,), name="x")
    near = layers.Dense(4, activation="tanh", name="near")(x)
    far = layers.Dense(4, activation="tanh", name="far")(x)
    farther = layers.Dense(4, activation="tanh", name="farther")(far)
    return keras.Model(x, [layers.Add()([near, farther]), layers.Dense(2, name="end")(far)])


def frozen_base():
    x = keras.Input((6,), name="x")
    wide = layers.Dense(8, activation="tanh", kernel_regularizer=keras.regularizers.L2(0.1), name="base_dense")(x)
    norm = layers.BatchNormalization(momentum=0.5, name="base_norm")(wide)
    base = keras.Model(x, layers.Dense(2, name="old_head")(norm), name="base")
    base.trainable = False
    return base


def frozen():
    base = frozen_base()
    return keras.Model(base.inputs, layers.Dense(3, name="new_head")(base.get_layer("base_norm").output))


def frozen_inside():
    x = keras.Input((6,), name="x")
    learned = layers.Dense(6, activation="tanh", name="before")(x)
    return keras.Model(x, layers.Dense(3, name="new_head")(frozen_base()(learned)))


def mixed():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        return keras.Sequential([
            keras.Input((6, 6, 2)), layers.Conv2D(8, 3, activation="tanh"), layers.BatchNormalization(),
            layers.Flatten(), layers.Dense(8, activation="tanh"), layers.Dense(3),
        ])
    finally:
        keras.config.set_dtype_policy("float32")


def model_in_each_step():
    step = keras.Sequential([keras.Input((4,)), layers.Dense(5, activation="tanh"), layers.Dense(3)], name="step")
    return keras.Sequential([keras.Input((3, 4)), layers.TimeDistributed(step), layers.Flatten(), layers.Dense(3)])


def recurrent_dropout():
    return keras.Sequential([
        keras.Input((4, 3)), layers.LSTM(3, dropout=0.2, recurrent_dropout=0.3, return_sequences=True, seed=4),
        layers.GRU(3, dropout=0.2, return_sequences=True), layers.SimpleRNN(3, recurrent_dropout=0.1), layers.Dense(3),
    ])


def attention_dropout():
    x = keras.Input((4, 3), name="x")
    y = layers.MultiHeadAttention(2, 3, dropout=0.2, seed=5)(x, x)
    z = layers.Attention(dropout=0.3)([y, x])
    return keras.Model(x, layers.Dense(3)(layers.Flatten()(layers.AdditiveAttention(dropout=0.1, seed=2)([z, x]))))


def mixed_recurrent():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        return keras.Sequential([
            keras.Input((4, 3)), layers.Bidirectional(layers.LSTM(4, return_sequences=True, name="a")),
            layers.GRU(4), layers.Dense(3),
        ])
    finally:
        keras.config.set_dtype_policy("float32")


def sequence(*items):
    return keras.Sequential([keras.Input((6,)), *items, layers.Flatten(), layers.Dense(3)])


MORE_MODELS = {
    "dropout": lambda: sequence(
        layers.Dropout(0.25), layers.Dense(8, activation="relu"), layers.Dropout(0.5, seed=3)
    ),
    "noise": lambda: keras.Sequential([
        keras.Input((4, 5, 2)), layers.GaussianNoise(0.5), layers.Conv2D(4, 2), layers.SpatialDropout2D(0.25, seed=3),
        layers.GaussianDropout(0.25), layers.Reshape((12, 4)), layers.SpatialDropout1D(0.5), layers.Dense(3),
        layers.AlphaDropout(0.25, seed=4), layers.Flatten(), layers.Dense(3),
    ]),
    "augmentation": lambda: keras.Sequential([
        keras.Input((6, 7, 2)), layers.Rescaling(0.5), layers.RandomFlip("horizontal", seed=3), layers.RandomCrop(6, 7),
        layers.RandomContrast((0.2, 0.4), value_range=(-5, 5), seed=4),
        layers.RandomBrightness(0.1, value_range=(-5, 5)), layers.RandomTranslation(0.2, (-0.1, 0.3)),
        layers.RandomRotation(0.1, fill_mode="wrap", interpolation="nearest", seed=5),
        layers.RandomZoom((-0.2, 0.3), fill_mode="constant", fill_value=0.25),
        layers.RandomZoom(0.1, 0.2, fill_mode="nearest"), layers.RandomFlip(), layers.CenterCrop(5, 4),
        layers.Conv2D(4, 2), layers.Flatten(), layers.Dense(3),
    ]),
    "own_layer": lambda: sequence(layers.Dense(4, activation="tanh"), Scale(0.5), Scale(2)),
    "mixed": mixed,
    "model_in_each_step": model_in_each_step,
    # The recurrent kernel is not used, but it is there, with the optimizer's variables.
    "one_step": lambda: keras.Sequential([
        keras.Input((1, 4)), layers.GRU(3, return_sequences=True), layers.Bidirectional(layers.LSTM(3, name="a")),
        layers.Dense(3),
    ]),
    "recurrent_dropout": recurrent_dropout,
    "attention_dropout": attention_dropout,
    "mixed_recurrent": mixed_recurrent,
    "nested": nested,
    "crossed": crossed,
    "frozen": frozen,
    "frozen_inside": frozen_inside,
}
ALL = {**MODELS, **MORE_MODELS}
# In this case Gelu is a lambda, which Keras itself cannot save.
SAVED = [case for case in CASES if case[0] != "activations"] + [(name, "adam", 0.01) for name in MORE_MODELS]
# The training of these models draws random numbers.
RANDOM = ("dropout", "noise", "augmentation", "recurrent_dropout", "attention_dropout")
# These models compute in bfloat16. Keras rounds its eight bits at other places.
COARSE = ("mixed", "mixed_recurrent")
TWO_OUTPUTS = ("branches", "crossed")


def described(case):
    """Returns a model of Keras, its loss, and batches."""
    name, optimizer, rate = case
    keras.utils.clear_session()
    keras.utils.set_random_seed(2)
    rng = np.random.default_rng(list(case_id(case).encode()))
    model = ALL[name]()
    batches = [examples(model, name, rng) for _ in range(BATCHES)]
    loss = "sparse_categorical_crossentropy" if name in CLASSIFIERS else "mse"
    several = name in TWO_OUTPUTS
    metric = "accuracy" if name in CLASSIFIERS else "mae"
    model.compile(
        optimizer=OPTIMIZERS[optimizer](rate),
        loss=[loss] * 2 if several else loss,
        loss_weights=[1.0, 0.5] if several else None,
        metrics=[[metric], [metric]] if several else [metric],
        run_eagerly=True,  # a few steps: tracing would take longer
    )
    request = {
        "model": name, "optimizer": optimizer, "learning_rate": rate, "loss": loss,
        "batches": [{"x": xs, "y": ys} for xs, ys in batches],
    }
    if several:
        request["loss_weights"] = [1.0, 0.5]
    return model, batches, request


def only(values):
    return values if len(values) > 1 else values[0]


def train(model, batches, first, steps):
    losses = []
    for step in range(first, first + steps):
        xs, ys = batches[step % BATCHES]
        model.reset_metrics()
        losses.append(float(model.train_on_batch(only(xs), only(ys), return_dict=True)["loss"]))
    return losses


def predictions(model, batches):
    result = model.predict_on_batch(only(batches[0][0]))
    return result if isinstance(result, list) else [result]


def ask(requests):
    return our_programs.ask("interop_keras_models", requests, as_json)


def assert_same(case, mine, theirs):
    near = 0.05 if case[0] in COARSE else 1e-5
    for a, b in zip(mine, theirs, strict=True):
        b = np.asarray(b, np.float32)
        np.testing.assert_allclose(np.reshape(a, b.shape), b, rtol=near, atol=near * np.abs(b).max())


def assert_same_losses(case, mine, theirs):
    if case[0] not in RANDOM:
        np.testing.assert_allclose(mine, theirs, rtol=0.05 if case[0] in COARSE else 1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """Saves our models. Returns their results by case, and the files."""
    folder = tmp_path_factory.mktemp("ours")
    requests = []
    for case in SAVED:
        request = described(case)[2]
        requests.append({**request, "steps": STEPS, "more": MORE, "save": str(folder / f"{case_id(case)}.keras")})
    return {case: (answer, request) for case, answer, request in zip(SAVED, ask(requests), requests, strict=True)}


@pytest.mark.parametrize("case", SAVED, ids=case_id)
def test_keras_goes_on_with_ours(case, ours):
    answer, request = ours[case]
    assert "error" not in answer, answer
    model = keras.models.load_model(request["save"], custom_objects={"Scale": Scale})
    model.run_eagerly = True
    batches = [(batch["x"], batch["y"]) for batch in request["batches"]]
    assert_same(case, answer["predictions"], predictions(model, batches))
    assert int(model.optimizer.variables[0]) == STEPS
    assert_same_losses(case, answer["more"], train(model, batches, STEPS, MORE))


def flags(model):
    """Which layers are trained, those of models inside of the model too; inputs have no say."""
    told = {}
    for layer in model.layers:
        if not isinstance(layer, layers.InputLayer):
            told[layer.name] = layer.trainable
        if isinstance(layer, keras.Model):
            told.update({f"{layer.name}/{name}": flag for name, flag in flags(layer).items()})
    return told


@pytest.mark.parametrize("name", ["frozen", "frozen_inside"])
def test_keras_freezes_what_we_froze(name, ours):
    answer, request = ours[(name, "adam", 0.01)]
    assert "error" not in answer, answer
    model = keras.models.load_model(request["save"])
    assert flags(model) == flags(ALL[name]())
    assert {w.path for w in model.trainable_weights} == set(answer["trainable"])
    assert "new_head/kernel" in answer["trainable"] and "base_dense/kernel" not in answer["trainable"]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """Saves Keras's models. Returns them and our results with the files."""
    folder = tmp_path_factory.mktemp("theirs")
    requests, expected = [], []
    for case in SAVED:
        model, batches, _ = described(case)
        path = str(folder / f"{case_id(case)}.keras")
        train(model, batches, 0, STEPS)
        before = predictions(model, batches)
        model.save(path)
        expected.append((before, train(model, batches, STEPS, MORE)))
        turned = [batches[(STEPS + i) % BATCHES] for i in range(BATCHES)]
        requests.append({"load": path, "steps": 0, "batches": [{"x": xs, "y": ys} for xs, ys in batches]})
        requests.append({"load": path, "steps": MORE, "batches": [{"x": xs, "y": ys} for xs, ys in turned]})
    answers = ask(requests)
    return {
        case: (answers[2 * i], answers[2 * i + 1], *expected[i]) for i, case in enumerate(SAVED)
    }


@pytest.mark.parametrize("case", SAVED, ids=case_id)
def test_we_go_on_with_theirs(case, theirs):
    loaded, trained, before, losses = theirs[case]
    assert "error" not in loaded, loaded
    assert "error" not in trained, trained
    assert_same(case, loaded["predictions"], before)
    assert_same_losses(case, trained["losses"], losses)


@pytest.mark.parametrize("swap", [None, False, True], ids=["no-callback", "swap-for-tests", "swap-on-epochs"])
@pytest.mark.parametrize("sums", [None, 2], ids=["each-step", "summing"])
def test_fit_ends_with_the_averages(tmp_path, swap, sums):
    keras.utils.set_random_seed(5)
    rng = np.random.default_rng(6)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(5, activation="tanh"), layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9, use_ema=True, ema_momentum=0.7, gradient_accumulation_steps=sums)
    model.compile(optimizer=optimizer, loss="mse")
    path = str(tmp_path / "model.keras")
    model.save(path)
    data = [(rng.normal(0, 1, (40, 6)).astype(np.float32), rng.normal(0, 1, (40, 1)).astype(np.float32)) for _ in "ab"]
    (answer,) = ask([{
        "load": path, "steps": 0, "epochs": 4, "swap": swap, "batches": [{"x": [x], "y": [y]} for x, y in data],
    }])  # fmt: skip
    assert "error" not in answer, answer
    callbacks = [] if swap is None else [keras.callbacks.SwapEMAWeights(swap_on_epoch=swap)]
    history = model.fit(
        *data[0], batch_size=8, epochs=4, shuffle=False, verbose=0, validation_data=data[1], callbacks=callbacks
    )
    np.testing.assert_allclose(answer["losses"], history.history["val_loss"], rtol=1e-4)
    for mine, weight in zip(answer["weights"].values(), sorted(model.weights, key=lambda one: one.path), strict=True):
        np.testing.assert_allclose(np.reshape(mine, weight.shape), weight.numpy(), atol=1e-4)


def test_what_we_do_not_know_is_named(tmp_path):
    path = tmp_path / "conv_lstm.keras"
    keras.Sequential([keras.Input((3, 4, 2)), layers.ConvLSTM1D(2, 3, name="memory")]).save(path)
    (answer,) = ask([{"load": str(path), "steps": 0, "batches": []}])
    for part in ("ConvLSTM1D", '"memory"', "custom_layers", "config.json", str(path)):
        assert part in answer["error"]


def masked_by(mask_of, prepared=lambda words: words):
    """Returns a model whose layer gets the mask that mask_of makes of the two inputs."""
    x, y = keras.Input((4,), dtype="int32", name="x"), keras.Input((4,), dtype="int32", name="y")
    words = layers.Embedding(9, 3, mask_zero=True)(x)
    other = layers.GRU(3)(layers.Embedding(9, 3, mask_zero=True)(y))
    read = layers.LSTM(3, name="reader")(prepared(words), mask=mask_of(x, y))
    return keras.Model([x, y], layers.Dense(2)(layers.Add()([read, other])))


def masked_beside_states(layer):
    """Returns a model that calls the layer, which has two states, with a mask and initial states."""
    x = keras.Input((4,), dtype="int32", name="x")
    words = layers.Embedding(9, 3, mask_zero=True)(x)
    state = layers.Dense(3)(layers.Flatten()(layers.Embedding(9, 3)(x)))
    read = layer(words, mask=keras.ops.not_equal(x, 0), initial_state=[state, state])
    return keras.Model(x, layers.Dense(2)(read))


def attention_masked_by(masks_of, makes_second=True):
    """Returns a model whose attention gets the masks that masks_of makes of those of its two inputs."""
    x, y = keras.Input((4,), dtype="int32", name="x"), keras.Input((4,), dtype="int32", name="y")
    first, second = layers.Embedding(9, 3, mask_zero=True)(x), layers.Embedding(9, 3, mask_zero=makes_second)(y)
    masks = masks_of(keras.ops.not_equal(x, 0), keras.ops.not_equal(y, 0))
    read = layers.Attention(name="reader")([first, second], mask=masks)
    return keras.Model([x, y], layers.Dense(2)(layers.Flatten()(read)))


@pytest.mark.parametrize("model", [
    lambda: attention_masked_by(lambda x, y: [x, y]),
    lambda: attention_masked_by(lambda x, y: [x, None], makes_second=False),
], ids=["both", "the_only_one"])  # fmt: skip
def test_masks_of_the_inputs_are_accepted_as_arguments(model, tmp_path):
    path = tmp_path / "masked.keras"
    made = model()
    made.save(path)
    words = [np.array([[3, 1, 0, 2], [2, 0, 0, 0]], np.int32), np.array([[1, 0, 0, 0], [4, 5, 0, 1]], np.int32)]
    (answer,) = ask([{"load": str(path), "batches": [{"x": words}], "steps": 0}])
    assert "error" not in answer, answer
    np.testing.assert_allclose(np.reshape(answer["predictions"][0], (2, 2)), made.predict(words, verbose=0), atol=1e-5)


@pytest.mark.parametrize("model", [
    lambda: masked_by(lambda x, y: keras.ops.not_equal(x, 5)),
    lambda: masked_by(lambda x, y: keras.ops.less(x, 5)),
    lambda: masked_by(lambda x, y: keras.ops.not_equal(y, 0)),
    lambda: masked_by(lambda x, y: keras.ops.not_equal(x, 0), layers.Conv1D(3, 1)),
    lambda: masked_beside_states(layers.LSTM(3, name="reader")),
    lambda: masked_beside_states(layers.Bidirectional(layers.GRU(3), name="reader")),
    lambda: attention_masked_by(lambda x, y: [x, None]),
    lambda: attention_masked_by(lambda x, y: [None, None]),
    lambda: attention_masked_by(lambda x, y: [y, x]),
], ids=["another_number", "less", "another_input", "dropped_by_a_layer", "beside_states", "beside_states_of_both",
        "one_of_two", "none_of_two", "exchanged"])  # fmt: skip
def test_masks_that_a_program_makes_are_refused(model, tmp_path):
    path = tmp_path / "masked.keras"
    model().save(path)
    (answer,) = ask([{"load": str(path), "batches": [], "steps": 0}])
    assert "layer 'reader' is called with a" in answer["error"], answer
