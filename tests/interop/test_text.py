"""Layers of texts and categories: Keras computes the same, learns the same, and reads our files; we read Keras's. Folders
of texts: Keras lists and divides their files in the same way."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.utils import dataset_utils

import our_programs

layers = keras.layers
TEXTS = [
    "The quick brown fox; the LAZY dog!",
    "",
    "  spaces\tand\nlines \v\f ",
    "déjà vu... déjà-vu? \N{EURO SIGN}5",
    "the fox's \\path [x] {y} `z` ~ ^ | #",
    "UNKNOWN words \N{GRINNING FACE}",
    "NO\u00a0BREAK",
    "the the the the the fox",
]
BYTES = [text.encode() for text in TEXTS] + [b"caf\xe9 \xff\xfe the", b"the\x00fox fox", b"\xe2\x82 \xed\xa0\x80"]
WORDS = ["the", "fox", "dog", "déjà", "and", "the fox", "fox dog", "e"]

TEXT_OPTIONS = {
    "words": {},
    "length": {"output_sequence_length": 4},
    "long": {"output_sequence_length": 20, "max_tokens": 30},
    "lower": {"standardize": "lower"},
    "punctuation": {"standardize": "strip_punctuation"},
    "unchanged": {"standardize": None, "ngrams": 3},
    "characters": {"split": "character", "output_sequence_length": 12},
    "pairs_of_characters": {"split": "character", "ngrams": 2},
    "pairs": {"ngrams": 2},
    "only_triples": {"ngrams": [3], "output_sequence_length": 5},
    "one_and_three": {"ngrams": [3, 1], "output_mode": "count"},
    "multi_hot": {"output_mode": "multi_hot"},
    "padded": {"output_mode": "count", "max_tokens": 60, "pad_to_max_tokens": True},
    "tf_idf": {"output_mode": "tf_idf"},
    "tf_idf_padded": {"output_mode": "tf_idf", "max_tokens": 60, "pad_to_max_tokens": True, "ngrams": 2},
    "few": {"max_tokens": 5},
    "few_tf_idf": {"max_tokens": 5, "output_mode": "tf_idf"},
    "whole": {"split": None},
    "whole_length": {"split": None, "output_sequence_length": 3},
    "whole_counts": {"split": None, "output_mode": "count"},
    "whole_pairs": {"split": None, "ngrams": 2, "standardize": "lower"},
}
IDF = [0.5 + 0.25 * i for i in range(len(WORDS))]


def given(values):
    """An array of bytes, strings or integers as interop_text takes it."""
    array = np.asarray(values, dtype=object)
    flat = list(array.reshape(-1))
    if isinstance(flat[0], int):
        return {"dtype": "int64", "shape": list(array.shape), "values": flat}
    digits = [(item if isinstance(item, bytes) else item.encode()).hex() for item in flat]
    return {"dtype": "string", "shape": list(array.shape), "values": digits}


def shaped(texts, options):
    """Texts [batch, 1], or pairs of them where a text is a token."""
    texts = np.array(texts, dtype=object)
    return texts[: len(texts) // 2 * 2].reshape(-1, 2) if options.get("split", "") is None else texts.reshape(-1, 1)


def as_keras(options):
    return {name: tuple(value) if name == "ngrams" and isinstance(value, list) else value for name, value in options.items()}


def model_of(layer, inputs):
    xs = [keras.Input(np.shape(x)[1:], dtype="int64" if isinstance(np.ravel(x)[0], int) else "string", name=f"x_{i}")
          for i, x in enumerate(inputs)]
    return keras.Model(xs, layer(xs[0] if len(xs) == 1 else xs))


def predicted(model, inputs):
    values = [tf.constant(x.tolist() if hasattr(x, "tolist") else x) for x in inputs]
    return np.asarray(model(values[0] if len(values) == 1 else values))


def assert_same(theirs, ours):
    assert list(theirs.shape) == ours["shape"]
    # Keras says that its counts are float32, and so are ours, but it computes them as int64.
    assert theirs.dtype.name == ours["dtype"] or (theirs.dtype, ours["dtype"]) == (np.int64, "float32")
    np.testing.assert_allclose(theirs.reshape(-1), ours["values"], rtol=1e-6, atol=1e-6)


def check_both_ways(layer, request, inputs, tmp_path):
    """Compares predictions, then Keras's from our file, then ours from Keras's file. Returns our answer."""
    ours, theirs = tmp_path / "ours.keras", tmp_path / "theirs.keras"
    model = model_of(layer, inputs)
    expected = predicted(model, inputs)
    request = {**request, "inputs": [given(x) for x in inputs]}
    [answer] = our_programs.ask("interop_text", [{**request, "save": str(ours)}])
    assert_same(expected, answer["output"])

    loaded = keras.models.load_model(ours)
    assert_same(predicted(loaded, inputs), answer["output"])
    for saved in (model, loaded):
        saved.save(theirs)
        [again] = our_programs.ask("interop_text", [{"load": str(theirs), "inputs": request["inputs"]}])
        assert_same(np.reshape(again["output"]["values"], again["output"]["shape"]).astype(expected.dtype), answer["output"])
    return answer


@pytest.mark.parametrize("name", TEXT_OPTIONS)
def test_text_vectorization_with_a_vocabulary(name, tmp_path):
    options = TEXT_OPTIONS[name]
    words = WORDS if options.get("max_tokens", 99) > 20 else WORDS[:3]
    options = {**options, "vocabulary": words}
    if options.get("output_mode") == "tf_idf":
        options["idf_weights"] = IDF[: len(words)]
    layer = layers.TextVectorization(**as_keras(options))
    check_both_ways(layer, {"layer": "TextVectorization", "options": options}, [shaped(BYTES, options)], tmp_path)


@pytest.mark.parametrize("name", TEXT_OPTIONS)
def test_text_vectorization_that_has_learned(name, tmp_path):
    options = TEXT_OPTIONS[name]
    # A file of Keras's has one token in each line, so no token may have the end of a line.
    texts = TEXTS if options.get("split", "whitespace") == "whitespace" else [text for text in TEXTS if "\n" not in text]
    data = shaped(texts, options)
    layer = layers.TextVectorization(**as_keras(options))
    layer.adapt(data.tolist())
    request = {"layer": "TextVectorization", "options": options, "learn_from": given(data)}
    answer = check_both_ways(layer, request, [shaped(BYTES, options)], tmp_path)
    assert layer.get_vocabulary(include_special_tokens=False) == answer["vocabulary"]


LOOKUPS = {
    "string_tf_idf": ("StringLookup", {"output_mode": "tf_idf", "mask_token": "", "num_oov_indices": 2}),
    "string_padded": ("StringLookup", {"output_mode": "multi_hot", "max_tokens": 20, "pad_to_max_tokens": True}),
    "string_few": ("StringLookup", {"output_mode": "tf_idf", "max_tokens": 9, "pad_to_max_tokens": True}),
    "string_none": ("StringLookup", {"output_mode": "tf_idf", "num_oov_indices": 0}),
    "integer_tf_idf": ("IntegerLookup", {"output_mode": "tf_idf", "num_oov_indices": 3}),
    "integer_padded": ("IntegerLookup", {"output_mode": "count", "max_tokens": 9, "pad_to_max_tokens": True}),
}
CATEGORIES = {
    "StringLookup": [["red", "hat", "red"], ["blue", "green", "red"], ["blue", "shoe", "hat"]],
    "IntegerLookup": [[7, -3, 7], [1 << 40, 7, 5], [5, 5, 9]],
}


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize("name", LOOKUPS)
def test_lookup(name, learned, tmp_path):
    class_name, options = LOOKUPS[name]
    data = np.array(CATEGORIES[class_name], dtype=object)
    if not learned:
        options = {**options, "vocabulary": sorted({*data.reshape(-1)})}
        if options["output_mode"] == "tf_idf":
            options["idf_weights"] = IDF[: len(options["vocabulary"])]
    layer = getattr(layers, class_name)(**options)
    request = {"layer": class_name, "options": options}
    if learned:
        layer.adapt(tf.data.Dataset.from_tensor_slices(data.tolist()).batch(2))
        # The names of the layer's options say how many tokens it may have, and ours is told by LearnOptions.
        words = layer.get_vocabulary(include_special_tokens=False)
        options = {**options, "vocabulary": [word if isinstance(word, str) else int(word) for word in words]}
        if options["output_mode"] == "tf_idf":
            request["learn_from"] = given(data)
            if "max_tokens" in options:
                assert len(options["vocabulary"]) == len({*data.reshape(-1)})
        else:
            request["options"] = options
    unknown = [["x", "y", "red"]] if class_name == "StringLookup" else [[100, 7, -100]]
    inputs = data if options.get("num_oov_indices", 1) == 0 else np.concatenate([data, np.array(unknown, dtype=object)])
    check_both_ways(layer, request, [inputs], tmp_path)


@pytest.mark.parametrize("name", TEXT_OPTIONS)
def test_tensorflow_runs_what_we_export(name, tmp_path):
    options = {**TEXT_OPTIONS[name], "vocabulary": WORDS[:3]}
    if options.get("output_mode") == "tf_idf":
        options["idf_weights"] = IDF[:3]
    inputs = shaped(BYTES, options)
    request = {"layer": "TextVectorization", "options": options, "inputs": [given(inputs)], "export": str(tmp_path / "export")}
    [answer] = our_programs.ask("interop_text", [request])
    function = tf.saved_model.load(tmp_path / "export").signatures["serving_default"]
    [result] = function(x_0=tf.constant(inputs.tolist())).values()
    assert_same(result.numpy(), answer["output"])


@pytest.mark.parametrize("mode", ["int", "one_hot"])
@pytest.mark.parametrize("shape", [[-1], [-1, 1]])
def test_hashed_crossing(mode, shape, tmp_path):
    words = np.array(BYTES, dtype=object).reshape(shape)
    ids = np.array([(-3) ** i for i in range(len(BYTES))], dtype=object).reshape(shape)
    options = {"num_bins": 1000, "output_mode": mode}
    inputs = [words, ids]
    check_both_ways(layers.HashedCrossing(**options), {"layer": "HashedCrossing", "options": options}, inputs, tmp_path)


@pytest.fixture(name="folder", scope="module")
def folder_of_texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    names = [f"{label}/{name}.txt" for label in ("pos", "neg", "Neutral") for name in (1, 10, 9, "a-b", "a/b", "a/c/d", "é", "Z")]
    for name in [*names, "pos/UPPER.TXT", "neg/.hidden.txt", "neg/notes.md", ".git/x.txt", "top.txt"]:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}\n")
    return folder


FOLDER_OPTIONS = {
    "all": {},
    "lengths": {"max_length": 7, "batch_size": 5},
    "categorical": {"label_mode": "categorical", "batch_size": None},
    "two_classes": {"label_mode": "binary", "class_names": ["pos", "neg"]},
    "no_labels": {"label_mode": None},
    "training": {"validation_split": 0.3, "subset": "training"},
    "validation": {"validation_split": 0.3, "subset": "validation"},
}


def ask_folder(folder, options):
    options = {**options, "label_mode": options.get("label_mode", "int") or "none", "batch_size": options.get("batch_size", 32) or 0}
    [answer] = our_programs.ask("interop_text", [{"directory": str(folder), "options": options}])
    return answer


@pytest.mark.parametrize("name", FOLDER_OPTIONS)
def test_folder_in_order(name, folder):
    options = {**FOLDER_OPTIONS[name], "shuffle": False}
    theirs = keras.utils.text_dataset_from_directory(folder, **options)
    ours = ask_folder(folder, options)
    labelled = options.get("label_mode", "int") is not None
    assert (theirs.class_names or []) == ours["class_names"]
    elements = [element if labelled else (element, None) for element in theirs]
    assert [[text.decode() for text in np.ravel(texts)] for texts, _ in elements] == ours["texts"]
    if labelled:
        assert [np.ravel(labels).tolist() for _, labels in elements] == ours["labels"]


@pytest.mark.parametrize("subset", ["training", "validation"])
@pytest.mark.parametrize("seed", [0, 1, 1234567, 2**32 - 1])
def test_folder_is_divided_as_by_keras(seed, subset, folder):
    options = {"seed": seed, "validation_split": 0.27, "subset": subset}
    ours = ask_folder(folder, options)
    paths, labels, _ = dataset_utils.index_directory(str(folder), "inferred", (".txt",), seed=seed)
    paths, _ = dataset_utils.get_training_or_validation_split(paths, labels, 0.27, subset)
    assert ours["paths"] == paths
    theirs = keras.utils.text_dataset_from_directory(folder, **options)
    assert sorted(text.decode() for texts, _ in theirs for text in texts.numpy()) == sorted(sum(ours["texts"], []))
