"""Models: 50 steps from the same weights on the same batches give the same losses, weights and predictions as Keras."""

import functools

import keras
import numpy as np
import pytest

import mask_models
import our_programs

layers = keras.layers
BATCH, BATCHES, STEPS = 16, 2, 50


def chain(shape, *items, dtype="float32"):
    return keras.Sequential([keras.Input(shape, dtype=dtype), *items])


def numbers(shape, *items, dtype="float32"):
    """Returns a model with `items` and three outputs."""
    return chain(shape, *items, layers.Flatten(), layers.Dense(3), dtype=dtype)


def separable(filters):
    return layers.SeparableConv2D(filters, 3, padding="same", activation="selu", depthwise_initializer="lecun_normal")


def branches():
    a, b = keras.Input((5,), name="a"), keras.Input((5,), name="b")
    shared = layers.Dense(6, activation="tanh", name="shared")
    left, right = shared(a), shared(b)
    total = layers.Add()([left, right])
    joined = layers.Concatenate()([total, left, a])
    first = layers.Dense(2, name="first")(joined)
    return keras.Model([a, b], [first, layers.Dense(3, name="second")(total)])


def siamese():
    """Returns a model with one normalization of two inputs, whose moving statistics are updated twice in each step."""
    a, b = keras.Input((5,), name="a"), keras.Input((5,), name="b")
    shared = layers.Dense(6, use_bias=False, name="shared")
    normalization = layers.BatchNormalization(momentum=0.5, name="normalization")
    left, right = normalization(shared(a)), normalization(shared(b))
    return keras.Model([a, b], layers.Dense(3, name="end")(layers.Concatenate()([left, right])))


def merging():
    """Returns a model with all layers that put several values together."""
    x = keras.Input((6,), name="x")
    a = layers.Dense(6, activation="tanh", name="a")(x)
    b = layers.Dense(6, activation="tanh", name="b")(x)
    c = layers.Dense(6, name="c")(x)
    difference = layers.Subtract()([layers.Multiply()([a, b, c]), layers.Maximum()([a, c])])
    joined = layers.Concatenate()([difference, layers.Average()([a, b, c]), layers.Minimum()([b, c])])
    return keras.Model(x, layers.Dense(3, name="end")(joined))


def dots():
    """Returns a model with dot products of vectors and of matrices."""
    x = keras.Input((5, 4), name="x")
    a = layers.Dense(4, activation="tanh", name="a")(x)
    b = layers.Dense(4, activation="tanh", name="b")(x)
    products = layers.Dot(axes=(2, 1))([layers.Permute((2, 1))(a), b])
    cosines = layers.Dot(axes=2, normalize=True)([a, b])
    one = layers.Dot(axes=-1)([layers.Flatten()(a), layers.Flatten()(b)])
    joined = layers.Concatenate()([layers.Flatten()(products), layers.Flatten()(cosines), one])
    return keras.Model(x, layers.Dense(3, name="end")(joined))


def recurrent_states():
    """Returns a model in which recurrent layers begin with the last states of others."""
    x = keras.Input((5, 4), name="x")
    sequence, h, c = layers.LSTM(3, return_sequences=True, return_state=True, name="encoder")(x)
    gated, last = layers.GRU(3, return_sequences=True, return_state=True, name="gated")(sequence, initial_state=h)
    decoded = layers.LSTM(3, name="decoder")(gated, initial_state=[last, c])
    both = layers.Bidirectional(layers.SimpleRNN(3, name="both"), merge_mode=None, name="directions")(
        sequence, initial_state=[h, last]
    )
    return keras.Model(x, layers.Dense(3, name="end")(layers.Concatenate()([decoded, *both])))


def attention():
    x, y = keras.Input((5, 4), name="x"), keras.Input((3, 6), name="y")
    z = layers.Dense(4, activation="tanh", name="z")(y)
    own = layers.MultiHeadAttention(2, 3, value_dim=5, name="own")(x, x, use_causal_mask=True)
    other = layers.MultiHeadAttention(
        3, 2, use_bias=False, output_shape=6, kernel_regularizer=keras.regularizers.L2(0.01), name="other"
    )(query=layers.Dense(4, name="sum")(own), key=y, value=z)
    return keras.Model([x, y], layers.Dense(3, name="end")(layers.Flatten()(other)))


def scored_attention():
    """Returns a model with the kinds of attention that have no matrices."""
    x, y = keras.Input((5, 4), name="x"), keras.Input((3, 4), name="y")
    a = layers.Dense(4, activation="tanh", name="a")(x)
    b = layers.Dense(4, activation="tanh", name="b")(y)
    dot = layers.Attention(use_scale=True, name="dot")([a, b])
    concat = layers.Attention(use_scale=True, score_mode="concat", name="concat")([a, b, y])
    added = layers.AdditiveAttention(name="added")([a, a], use_causal_mask=True)
    joined = layers.Concatenate()([dot, concat, added, layers.AdditiveAttention(use_scale=False)([a, b])])
    return keras.Model([x, y], layers.Dense(3, name="end")(layers.Flatten()(joined)))


# The models of keras_models_main.cc, by name.
MODELS = {
    "linear": lambda: numbers((6,)),
    "dense": lambda: numbers((6,), layers.Dense(8, activation="tanh")),
    "dense_of_rank_3": lambda: numbers((4, 5), layers.Dense(6, activation="selu")),
    "activations": lambda: numbers(
        (6,),
        layers.Dense(8),
        layers.Activation("softplus"),
        layers.Dense(8, activation=lambda x: keras.activations.gelu(x, approximate=False)),
        layers.Dense(8),
        layers.Activation("softsign"),
        layers.Dense(8, activation="elu"),
        layers.Dense(8, activation="swish"),
    ),
    "regularized": lambda: numbers(
        (6,),
        layers.Dense(
            8,
            activation="tanh",
            kernel_regularizer=keras.regularizers.L2(0.02),
            bias_regularizer=keras.regularizers.L1L2(0.001, 0.01),
        ),
    ),
    "conv2d": lambda: numbers(
        (9, 9, 2),
        layers.Conv2D(6, 3, strides=2, padding="same", groups=2, activation="selu"),
        layers.Conv2D(4, (2, 1), dilation_rate=2, activation="tanh"),
    ),
    "depthwise_conv2d": lambda: numbers(
        (7, 7, 2),
        layers.DepthwiseConv2D(3, strides=2, padding="same", depth_multiplier=2, activation="tanh"),
        layers.DepthwiseConv2D(2, activation="selu"),
    ),
    "separable_conv2d": lambda: numbers(
        (7, 7, 2), layers.SeparableConv2D(6, 3, padding="same", depth_multiplier=2, activation="selu")
    ),
    "pools": lambda: numbers(
        (9, 9, 2),
        layers.Conv2D(4, 2, activation="tanh"),
        layers.MaxPooling2D((2, 1)),
        layers.Conv2D(6, 2, padding="same", activation="tanh"),
        layers.AveragePooling2D(3, strides=2, padding="same"),
    ),
    "global_average_pooling": lambda: chain(
        (6, 6, 2), layers.Conv2D(8, 3, activation="tanh"), layers.GlobalAveragePooling2D(), layers.Dense(3)
    ),
    "batch_normalization": lambda: numbers(
        (6, 6, 2),
        layers.Conv2D(6, 3, use_bias=False),
        layers.BatchNormalization(momentum=0.9),
        layers.Activation("tanh"),
        layers.Flatten(),
        layers.Dense(6, use_bias=False),
        layers.BatchNormalization(momentum=0.8, epsilon=0.01),
        layers.Activation("tanh"),
    ),
    "synchronized_batch_normalization": lambda: numbers(
        (6, 6, 2),
        layers.Conv2D(6, 3, use_bias=False),
        layers.BatchNormalization(momentum=0.9),
        layers.Activation("tanh"),
    ),
    "layer_normalization": lambda: numbers(
        (5, 6), layers.Dense(8), layers.LayerNormalization(), layers.Activation("tanh")
    ),
    "embedding": lambda: numbers(
        (6,), layers.Embedding(12, 4), layers.Reshape((3, 8)), layers.Dense(6, activation="tanh"), dtype="int32"
    ),
    "merging": merging,
    "rectifiers": lambda: numbers(
        (6,),
        layers.Dense(8),
        layers.ReLU(),
        layers.Dense(8),
        layers.ReLU(max_value=1.5, negative_slope=0.1, threshold=0.25),
        layers.Dense(8),
        layers.LeakyReLU(),
        layers.Dense(8),
        layers.ReLU(negative_slope=0.2),
    ),
    "softmax_layers": lambda: numbers(
        (4, 6),
        layers.Dense(8, use_bias=False),  # the softmax over the other axis takes a bias away
        layers.Softmax(axis=1),
        layers.Permute((2, 1)),
        layers.Dense(6, activation="tanh"),
        layers.Softmax(),
    ),
    "padded_images": lambda: numbers(
        (5, 5, 2),
        layers.Rescaling([0.5, 2.0], offset=[0.1, -0.2]),
        layers.ZeroPadding2D(((1, 2), (0, 1))),
        layers.Conv2D(4, 3, strides=2, activation="tanh"),
        layers.ZeroPadding2D(),
        layers.Rescaling(1.5, offset=0.25),
        layers.Conv2D(4, 3, activation="tanh"),
    ),
    "global_max_pooling": lambda: chain(
        (6, 6, 2), layers.Conv2D(8, 3, activation="tanh"), layers.GlobalMaxPooling2D(), layers.Dense(3)
    ),
    "global_average_pooling_1d": lambda: chain(
        (6,),
        layers.Embedding(12, 4),
        layers.GlobalAveragePooling1D(),
        layers.Dense(8, activation="tanh"),
        layers.Dense(3),
        dtype="int32",
    ),
    "conv1d": lambda: numbers(
        (9, 4),
        layers.Conv1D(6, 3, strides=2, padding="same", groups=2, activation="selu"),
        layers.Conv1D(4, 2, dilation_rate=2, padding="causal", activation="tanh"),
    ),
    "depthwise_conv1d": lambda: numbers(
        (9, 2), layers.DepthwiseConv1D(3, padding="same", depth_multiplier=2, activation="tanh")
    ),
    "separable_conv1d": lambda: numbers(
        (9, 2), layers.SeparableConv1D(6, 3, strides=2, padding="same", depth_multiplier=2, activation="selu")
    ),
    "conv1d_transpose": lambda: numbers(
        (5, 2),
        layers.Conv1DTranspose(4, 3, strides=2, padding="same", activation="tanh"),
        layers.Conv1DTranspose(3, 2, strides=3, output_padding=1, activation="tanh"),
    ),
    "conv2d_transpose": lambda: numbers(
        (3, 4, 2),
        layers.Conv2DTranspose(5, 3, strides=2, padding="same", activation="tanh"),
        layers.Conv2DTranspose(4, (3, 2), strides=(2, 3), padding="same", output_padding=(1, 2), activation="tanh"),
        layers.Conv2D(4, 3, strides=3, activation="tanh"),
    ),
    "conv2d_transpose_valid": lambda: numbers(
        (3, 4, 2),
        layers.Conv2DTranspose(5, (3, 2), use_bias=False, activation="tanh"),
        layers.Conv2DTranspose(4, 2, strides=3, output_padding=(1, 0), activation="tanh"),
        layers.Conv2D(4, 3, strides=3, activation="tanh"),
    ),
    "up_sampling": lambda: numbers(
        (4, 4, 2),
        layers.Conv2D(4, 2, activation="tanh"),
        layers.UpSampling2D((2, 3)),
        layers.Conv2D(4, 3, strides=2, activation="tanh"),
        layers.UpSampling2D((3, 2), interpolation="bilinear"),
        layers.Conv2D(4, 2, strides=2, activation="tanh"),
    ),
    "resized_images": lambda: numbers(
        (6, 7, 2),
        layers.Conv2D(4, 2, activation="tanh"),
        layers.Resizing(9, 5),
        layers.Conv2D(4, 2, activation="tanh"),
        layers.Resizing(5, 6, interpolation="nearest"),
        layers.Resizing(4, 4, crop_to_aspect_ratio=True),
        layers.Resizing(5, 8, pad_to_aspect_ratio=True, fill_value=0.5),
        layers.CenterCrop(4, 5),
        layers.Conv2D(4, 2, activation="tanh"),
        layers.CenterCrop(6, 2),
    ),
    "augmented_images": lambda: numbers(
        (6, 7, 2),
        layers.RandomBrightness((0.25, 0.25), value_range=(-2, 2)),
        layers.RandomContrast(0.0, value_range=(-1, 2)),
        layers.RandomRotation((0.3, 0.3)),
        layers.RandomTranslation((0.2, 0.2), (-0.1, -0.1), fill_mode="constant", fill_value=0.5),
        layers.RandomZoom((-0.2, -0.2), (0.3, 0.3), fill_mode="wrap"),
        layers.RandomRotation((0.25, 0.25), fill_mode="nearest", interpolation="nearest"),
        layers.Conv2D(4, 2, activation="tanh"),
    ),
    "up_sampling_1d": lambda: numbers(
        (5, 4),
        layers.Dense(4, activation="tanh"),
        layers.UpSampling1D(3),
        layers.Conv1D(4, 4, strides=2, activation="tanh"),
    ),
    "cropping": lambda: numbers(
        (8, 7, 2),
        layers.Conv2D(4, 2, activation="tanh"),
        layers.Cropping2D(((1, 2), (0, 1))),
        layers.Conv2D(4, 2, activation="tanh"),
        layers.Cropping2D(),
    ),
    "cropping_1d": lambda: numbers(
        (7, 4),
        layers.ZeroPadding1D((2, 1)),
        layers.Conv1D(6, 3, activation="tanh"),
        layers.Cropping1D((1, 2)),
        layers.ZeroPadding1D(),
        layers.Conv1D(4, 2, activation="tanh"),
    ),
    "pools_1d": lambda: numbers(
        (9, 4),
        layers.Conv1D(6, 2, activation="tanh"),
        layers.MaxPooling1D(3, strides=2, padding="same"),
        layers.Conv1D(6, 2, padding="same", activation="tanh"),
        layers.AveragePooling1D(2, strides=1, padding="same"),
    ),
    "global_max_pooling_1d": lambda: chain(
        (6, 4), layers.Conv1D(8, 3, activation="tanh"), layers.GlobalMaxPooling1D(), layers.Dense(3)
    ),
    "group_normalization": lambda: numbers(
        (5, 4, 3),
        layers.Conv2D(6, 2, use_bias=False),
        layers.GroupNormalization(3),
        layers.Activation("tanh"),
        layers.Conv2D(4, 2, use_bias=False),  # a normalization of each channel takes a bias away
        layers.GroupNormalization(-1, epsilon=0.01, scale=False),
        layers.Activation("tanh"),
    ),
    "unit_normalization": lambda: numbers(
        (4, 6),
        layers.Dense(8),
        layers.UnitNormalization(),
        layers.Dense(6, activation="tanh"),
        layers.UnitNormalization(axis=[1, 2]),
    ),
    "slopes": lambda: numbers(
        (4, 4, 2),
        layers.Conv2D(6, 2),
        layers.PReLU(alpha_initializer=keras.initializers.Constant(0.2), shared_axes=[1, 2]),
        layers.Conv2D(4, 2),
        layers.PReLU(),
        layers.Conv2D(4, 1),
        layers.ELU(),
        layers.Conv2D(4, 1),
        layers.ELU(alpha=0.5),
    ),
    "repeat_vector": lambda: numbers(
        (6,), layers.Dense(5, activation="tanh"), layers.RepeatVector(4), layers.Dense(3, activation="tanh")
    ),
    "dots": dots,
    "lstm": lambda: numbers(
        (5, 4),
        layers.LSTM(6, return_sequences=True, recurrent_regularizer=keras.regularizers.L2(0.01)),
        layers.LSTM(
            5, activation="softsign", recurrent_activation="hard_sigmoid", unit_forget_bias=False,
            return_sequences=True, go_backwards=True,
        ),
    ),
    "gru": lambda: numbers(
        (5, 4),
        layers.GRU(6, return_sequences=True, go_backwards=True),
        layers.GRU(5, return_sequences=True, reset_after=False),
        layers.GRU(4, use_bias=False),
    ),
    "simple_rnn": lambda: numbers(
        (5, 4), layers.SimpleRNN(6, return_sequences=True), layers.SimpleRNN(5, activation="softsign", use_bias=False)
    ),
    "recurrent_states": recurrent_states,
    "bidirectional": lambda: numbers(
        (5, 4),
        layers.Bidirectional(layers.LSTM(4, return_sequences=True, name="a")),
        layers.Bidirectional(layers.GRU(4, return_sequences=True, name="b"), merge_mode="sum"),
    ),
    "merged_directions": lambda: numbers(
        (5, 4),
        layers.Bidirectional(layers.SimpleRNN(4, return_sequences=True, name="c"), merge_mode="mul"),
        layers.Bidirectional(
            layers.LSTM(4, return_sequences=True, name="d"),
            backward_layer=layers.GRU(4, return_sequences=True, go_backwards=True, name="e"),
            merge_mode="ave",
        ),
    ),
    "time_distributed": lambda: numbers(
        (3, 5, 5, 2),
        layers.TimeDistributed(layers.Conv2D(4, 3, activation="tanh", name="a")),
        layers.TimeDistributed(layers.Flatten()),
        layers.TimeDistributed(layers.Dense(5, activation="tanh", name="b")),
        layers.SimpleRNN(4),
    ),
    "attention": attention,
    "scored_attention": scored_attention,
    **mask_models.MODELS,
    "branches": branches,
    "siamese": siamese,
    "classifier": lambda: chain(
        (8, 8, 1),
        layers.Conv2D(6, 3, padding="same", activation="tanh"),
        layers.MaxPooling2D(2),
        layers.Flatten(),
        layers.Dense(10, activation="selu"),
        layers.Dense(4, activation="softmax"),
    ),
    "separables": lambda: chain(
        (8, 8, 1),
        layers.Conv2D(6, 3, padding="same", activation="selu"),
        separable(6),
        layers.MaxPooling2D(2),
        separable(8),
        layers.MaxPooling2D(2),
        layers.Flatten(),
        layers.Dense(8, activation="selu"),
        layers.Dense(4, activation="softmax"),
    ),
}
CLASSIFIERS = ("classifier", "separables")

OPTIMIZERS = {
    "sgd": lambda rate: keras.optimizers.SGD(rate),
    "momentum": lambda rate: keras.optimizers.SGD(rate, momentum=0.9),
    "nesterov": lambda rate: keras.optimizers.SGD(rate, momentum=0.9, nesterov=True),
    "adagrad": lambda rate: keras.optimizers.Adagrad(rate),
    "adam": lambda rate: keras.optimizers.Adam(rate, epsilon=1e-3),
    "adamw": lambda rate: keras.optimizers.AdamW(rate, epsilon=1e-3),
    "rmsprop": lambda rate: keras.optimizers.RMSprop(rate, epsilon=1e-3),
    "ftrl": lambda rate: keras.optimizers.Ftrl(rate),
    "nadam": lambda rate: keras.optimizers.Nadam(rate, epsilon=1e-3),
    "adamax": lambda rate: keras.optimizers.Adamax(rate, epsilon=1e-3),
    "adadelta": lambda rate: keras.optimizers.Adadelta(rate, epsilon=1e-3),
    "averaging": lambda rate: keras.optimizers.Adam(
        rate, epsilon=1e-3, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=4
    ),
    "summing": lambda rate: keras.optimizers.SGD(
        rate, momentum=0.9, use_ema=True, ema_momentum=0.9, gradient_accumulation_steps=2
    ),
}
RATES = {
    "averaging": 0.01, "summing": 0.1,
    "momentum": 0.02, "nesterov": 0.02, "adagrad": 0.05, "adam": 0.01, "adamw": 0.01, "rmsprop": 0.005, "ftrl": 0.5,
    "nadam": 0.01, "adamax": 0.02, "adadelta": 0.5,
}  # fmt: skip

# The softmax of attention does not change if all keys get the same bias, so these have no gradient.
WITHOUT_GRADIENT = ("own/key/bias", "masked/key/bias")

# Learning rates with which the loss falls fast enough and rounding errors do not grow.
RATES_OF_MODELS = {
    "separables": 0.1, "batch_normalization": 0.1, "separable_conv2d": 0.1, "padded_images": 0.1,
    "softmax_layers": 0.5, "global_average_pooling_1d": 0.35, "dots": 0.02, "lstm": 0.4, "augmented_images": 0.02,
    "masked_lstm": 1.0, "masked_gru": 0.5, "masked_simple_rnn": 0.05, "masked_bidirectional": 0.5, "masked_average": 1.0,
    "masked_batch_normalization": 0.05, "masked_states": 1.0,
}
SLOW = (
    "activations", "global_average_pooling", "rectifiers", "global_max_pooling", "global_average_pooling_1d",
    "softmax_layers", "lstm", "gru", "recurrent_states", "bidirectional",
    "merged_directions", *mask_models.MODELS,
)
CASES = [
    (model, "momentum" if model in SLOW else "sgd", RATES_OF_MODELS.get(model, 0.2)) for model in MODELS
] + [
    # Ftrl ignores initial weights. It begins near 0, where deep networks do not learn.
    ("linear" if optimizer == "ftrl" else "classifier", optimizer, rate)
    for optimizer, rate in RATES.items()
] + [("embedding", "summing", 0.2)]


def case_id(case):
    return f"{case[0]}-{case[1]}"


def examples(model, name, rng):
    """Returns one batch: x and y, each a list."""
    xs = []
    for tensor in model.inputs:
        shape = (BATCH, *tensor.shape[1:])
        if tensor.dtype == "int32":
            xs.append(rng.integers(0, 12, shape).astype(np.int32))
        else:
            xs.append(rng.normal(0, 1, shape).astype(np.float32))
    if name in mask_models.MODELS:
        xs = [mask_models.padded(x, rng) for x in xs]
    if name in CLASSIFIERS:
        return xs, [rng.integers(0, 4, BATCH).astype(np.int32)]
    return xs, [rng.normal(0, 1, (BATCH, *tensor.shape[1:])).astype(np.float32) for tensor in model.outputs]


def path(variable):
    """Returns <layer>/<weight>, without the name of the model."""
    return variable.path.removeprefix("sequential/")


@functools.cache
def theirs(case):
    """Trains with Keras. Returns the request for interop_keras_models, and Keras's results."""
    name, optimizer, rate = case
    keras.utils.clear_session()
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(list(case_id(case).encode()))
    model = MODELS[name]()
    for weight in model.weights:  # biases, too, so that no weight begins at a special value
        if "moving" not in weight.path:
            weight.assign(weight.numpy() + rng.normal(0, 0.05, weight.shape).astype(np.float32))
    batches = [examples(model, name, rng) for _ in range(BATCHES)]
    loss = "sparse_categorical_crossentropy" if name in CLASSIFIERS else "mse"
    weights = [1.0, 0.5] if name == "branches" else None
    model.compile(
        optimizer=OPTIMIZERS[optimizer](rate),
        loss=[loss] * len(model.outputs) if weights else loss,
        loss_weights=weights,
        jit_compile=False,
    )
    request = {
        "model": name,
        "optimizer": optimizer,
        "learning_rate": rate,
        "loss": loss,
        "steps": STEPS,
        "weights": {path(weight): weight.numpy() for weight in model.weights},
        "batches": [{"x": xs, "y": ys} for xs, ys in batches],
    }
    if weights:
        request["loss_weights"] = weights
    losses = []
    for step in range(STEPS):
        xs, ys = batches[step % BATCHES]
        model.reset_metrics()
        logs = model.train_on_batch(xs if len(xs) > 1 else xs[0], ys if len(ys) > 1 else ys[0], return_dict=True)
        losses.append(float(logs["loss"]))
    predictions = model.predict_on_batch(batches[0][0] if len(model.inputs) > 1 else batches[0][0][0])
    return request, {
        "losses": losses,
        "weights": {path(weight): weight.numpy() for weight in model.weights},
        "trainable": [path(weight) for weight in model.trainable_weights],
        "predictions": predictions if isinstance(predictions, list) else [predictions],
    }


def as_json(array):
    return {"dtype": str(array.dtype), "shape": list(array.shape), "values": array.ravel().tolist()}


@functools.cache
def ours():
    """Returns the answers of interop_keras_models to all cases."""
    answers = our_programs.ask("interop_keras_models", [theirs(case)[0] for case in CASES], as_json)
    return dict(zip(CASES, answers, strict=True))


def relative(mine, expected, scale):
    return np.linalg.norm(np.reshape(mine, expected.shape) - expected) / np.linalg.norm(scale)


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_model(case):
    request, expected = theirs(case)
    answer = ours()[case]
    assert "error" not in answer, answer.get("error")
    losses = expected["losses"]
    # The comparison means something: the model learns, and every trained weight changes.
    assert sum(losses[-BATCHES:]) < 0.7 * sum(losses[:BATCHES])
    np.testing.assert_allclose(answer["losses"], losses, rtol=1e-4, atol=1e-5 * losses[0])
    assert sorted(answer["trainable"]) == sorted(expected["trainable"])
    assert sorted(answer["weights"]) == sorted(expected["weights"])
    for name, weight in expected["weights"].items():
        change = weight - request["weights"][name]
        if name in WITHOUT_GRADIENT:
            np.testing.assert_allclose(np.reshape(answer["weights"][name], weight.shape), weight, atol=1e-6)
            continue
        assert np.linalg.norm(change) > 1e-3 * np.sqrt(change.size), name
        assert relative(answer["weights"][name], weight, change) <= 1e-4, name
    for mine, prediction in zip(answer["predictions"], expected["predictions"], strict=True):
        assert relative(mine, prediction, prediction) <= 1e-4
