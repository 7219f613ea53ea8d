"""Models in which steps are masked, for test_keras_models.py. keras_mask_models.cc has the models of the same names."""

import keras
import numpy as np

layers = keras.layers


def words(*items):
    """Returns a Sequential that begins with an Embedding of six words, of which 0 pads."""
    return keras.Sequential([
        keras.Input((6,), dtype="int32"), layers.Embedding(12, 8, mask_zero=True, name="words"), *items
    ])


def masked_steps():
    """Returns a model with an output for each step: the loss does not count the masked ones."""
    return keras.Sequential([
        keras.Input((5, 4)),
        layers.Masking(),
        layers.GRU(6, return_sequences=True),
        layers.LayerNormalization(),
        layers.Activation("tanh"),
        layers.Dense(2),
    ])


def masked_batch_normalization():
    return keras.Sequential([
        keras.Input((5, 4)),
        layers.Dense(4, use_bias=False, name="before"),
        layers.Masking(mask_value=0.0),
        layers.BatchNormalization(momentum=0.5),
        layers.SimpleRNN(4),
        layers.Dense(3),
    ])


def two_texts():
    x, y = keras.Input((6,), dtype="int32", name="x"), keras.Input((4,), dtype="int32", name="y")
    a = layers.Embedding(12, 4, mask_zero=True, name="a")(x)
    b = layers.Embedding(12, 4, mask_zero=True, name="b")(y)
    return [x, y], a, b


def masked_attention():
    inputs, a, b = two_texts()
    c = layers.Dense(5, activation="tanh", name="c")(b)
    attended = layers.MultiHeadAttention(2, 3, name="masked")(a, c, b)
    # In Keras, a value that a MultiHeadAttention has read carries no mask any more; so another one reads another value.
    d = layers.Dense(5, activation="tanh", name="d")(a)
    own = layers.MultiHeadAttention(2, 3, use_bias=False, name="own")(d, d, use_causal_mask=True)
    sides = [layers.GlobalAveragePooling1D()(own), layers.GlobalAveragePooling1D()(attended)]
    return keras.Model(inputs, layers.Dense(3, name="end")(layers.Concatenate()(sides)))


def masked_scored_attention():
    inputs, a, b = two_texts()
    dot = layers.Attention(use_scale=True, name="dot")([a, b])
    added = layers.AdditiveAttention(name="added")([a, b], use_causal_mask=True)
    sides = [layers.GlobalAveragePooling1D()(dot), layers.GlobalAveragePooling1D()(added)]
    return keras.Model(inputs, layers.Dense(3, name="end")(layers.Concatenate()(sides)))


def masked_merging():
    """Returns a model in which values with different masks are put together."""
    x, y = keras.Input((5,), dtype="int32", name="x"), keras.Input((5,), dtype="int32", name="y")
    a = layers.Embedding(12, 3, mask_zero=True, name="a")(x)
    b = layers.Embedding(12, 3, mask_zero=True, name="b")(y)
    plain = layers.Embedding(12, 3, name="plain")(y)
    merged = [
        layers.Add()([a, b]), layers.Subtract()([a, b]), layers.Multiply()([a, b]), layers.Average()([a, b]),
        layers.Maximum()([a, b]), layers.Minimum()([a, b]), layers.Multiply()([a, plain]),
        layers.Maximum()([a, plain, b]), layers.Concatenate()([a, b]), layers.Concatenate(axis=1)([a, b]),
        layers.Concatenate(axis=1)([plain, b]), layers.Concatenate()([a, plain]),
    ]  # fmt: skip
    means = [layers.GlobalAveragePooling1D()(value) for value in merged]
    return keras.Model([x, y], layers.Dense(3, name="end")(layers.Concatenate()(means)))


def masked_sentences():
    """Returns a model of three sentences of four words each."""
    x = keras.Input((3, 4), dtype="int32", name="x")
    sentences = layers.TimeDistributed(layers.LSTM(4, name="sentence"))(
        layers.Embedding(12, 3, mask_zero=True, name="words")(x)
    )
    return keras.Model(x, layers.Dense(3, name="end")(layers.Flatten()(sentences)))


def masked_inside():
    """Returns a model that gives values with a mask to a model inside."""
    inner = keras.Sequential([
        keras.Input((6, 4)), layers.Dense(4, activation="tanh", name="each"), layers.GRU(4, name="read")
    ], name="inner")  # fmt: skip
    x = keras.Input((6,), dtype="int32", name="x")
    read = inner(layers.Embedding(12, 4, mask_zero=True, name="words")(x))
    return keras.Model(x, layers.Dense(3, name="end")(read))


def masked_states():
    """Returns a model in which a layer begins with the states of a masked one. It does not use the mask, in Keras."""
    x = keras.Input((6,), dtype="int32", name="x")
    words_of_x = layers.Embedding(12, 4, mask_zero=True, name="words")(x)
    sequence, h, c = layers.LSTM(4, return_sequences=True, return_state=True, name="encoder")(words_of_x)
    decoded = layers.LSTM(4, return_sequences=True, name="decoder")(sequence, initial_state=[h, c])
    return keras.Model(x, layers.Dense(3, name="end")(layers.GlobalAveragePooling1D()(decoded)))


MODELS = {
    "masked_lstm": lambda: words(layers.LSTM(6, return_sequences=True), layers.LSTM(6), layers.Dense(3)),
    "masked_gru": lambda: words(
        layers.GRU(5, return_sequences=True, go_backwards=True, zero_output_for_mask=True),
        layers.GRU(4, reset_after=False), layers.Dense(3),
    ),
    "masked_simple_rnn": lambda: words(
        layers.SimpleRNN(5, return_sequences=True), layers.SimpleRNN(4, go_backwards=True, zero_output_for_mask=True),
        layers.Dense(3),
    ),
    "masked_bidirectional": lambda: words(
        layers.Bidirectional(layers.LSTM(3, return_sequences=True, name="a")),
        layers.Bidirectional(layers.GRU(3, name="b"), merge_mode="ave"), layers.Dense(3),
    ),
    "masked_average": lambda: words(
        layers.Dense(8, activation="tanh"), layers.GlobalAveragePooling1D(), layers.Dense(3)
    ),
    "masked_steps": masked_steps,
    "masked_batch_normalization": masked_batch_normalization,
    "masked_attention": masked_attention,
    "masked_scored_attention": masked_scored_attention,
    "masked_merging": masked_merging,
    "masked_sentences": masked_sentences,
    "masked_inside": masked_inside,
    "masked_states": masked_states,
}  # fmt: skip


def padded(x, rng):
    """Returns x with zeros behind a length for each example, and in some steps before. The first step stays."""
    x = np.where(x == 0, 1, x).astype(x.dtype)
    steps = x.shape[1]
    counts = np.arange(steps) < rng.integers(1, steps + 1, (len(x), 1))
    counts &= (rng.random((len(x), steps)) > 0.2) | (np.arange(steps) == 0)
    return x * counts.reshape((*counts.shape, *[1] * (x.ndim - 2))).astype(x.dtype)
