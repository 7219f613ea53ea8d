"""Datasets: the same stages yield the same elements as tf.data, if its order is deterministic."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.data.experimental.ops import distribute

import our_programs

RANGE = ["range", 0, 23]

PIPELINES = [
    [["range", 3, -9, -4]],
    [RANGE, ["batch", 5]],
    [RANGE, ["batch", 5, 1]],
    [RANGE, ["batch", 5], ["batch", 2]],
    [RANGE, ["batch", 5], ["unbatch"]],
    [RANGE, ["repeat", 2], ["batch", 10]],
    *[[["range", 0, 7], ["vectors"], ["padded_batch", 3, drop, None, None]] for drop in (0, 1)],
    [["range", 0, 7], ["vectors"], ["padded_batch", 2, 1, [[9]], [-5]], ["batch", 2]],
    [["range", 0, 7], ["vectors"], ["shuffle", 4, 3], ["padded_batch", 2, 1, [[-1]], [None]], ["unbatch"]],
    [["range", 1, 6], ["matrices"], ["padded_batch", 2, 0, None, [8]], ["prefetch", 1]],
    [["range", 0, 6], ["matrices"], ["padded_batch", 4, 0, [[-1, 7]], None], ["cache"], ["repeat", 2]],
    [["range", 0, 6], ["matrices"], ["padded_batch", 1, 0, [[6, -1]], [3]]],
    [["zip", [["range", 0, 5], ["vectors"]], [RANGE]], ["padded_batch", 4, 0, [[-1], []], [7, None]]],
    [["range", 0, 0], ["vectors"], ["padded_batch", 2, 0, None, None]],
    [RANGE, ["padded_batch", 5, 1, None, None]],
    [RANGE, ["repeat", 0]],
    [RANGE, ["repeat", -1], ["take", 50], ["skip", 3]],
    [RANGE, ["take", -1], ["skip", 20]],
    [RANGE, ["skip", -1]],
    [RANGE, ["skip", 100]],
    *[[RANGE, ["shard", 5, i]] for i in range(5)],
    [RANGE, ["shard", 30, 25]],
    [["zip", [RANGE, ["batch", 4]], [["range", 100, 104]]]],
    [RANGE, ["concatenate", [["range", 50, 55]]], ["batch", 6]],
    [RANGE, ["double"], ["shard", 2, 1], ["prefetch", 3]],
    [RANGE, ["odd"], ["batch", 3], ["cache"], ["repeat", 2]],
    [RANGE, ["prefetch", -1], ["cache"], ["skip", 2]],
    *[[["range", 0, 7], ["interleave", cycle, block]] for cycle in (1, 2, 3, 10) for block in (1, 2, 5)],
    [["range", 0, 5], ["flat_map"], ["batch", 3]],
    *[[["range", first, 20], ["take_while"], ["repeat", 2]] for first in (0, 11, 12)],
    [RANGE, ["odd"], ["enumerate", 7], ["skip", 2]],
    [RANGE, ["repeat", 2], ["enumerate", -3]],
    [["generator", 5], ["repeat", 2], ["batch", 3]],
    *[[RANGE, ["shuffle", size, seed]] for size in (1, 2, 7, 23, 100) for seed in (0, 1, 12345678901)],
    [RANGE, ["shuffle", 7, 3], ["repeat", 3]],
    [RANGE, ["shuffle", 7, 3, 0], ["repeat", 3]],
    [RANGE, ["repeat", 3], ["shuffle", 30, 3]],
    [RANGE, ["shuffle", 7, 3], ["batch", 4], ["shuffle", 3, 4], ["repeat", 2], ["prefetch", 2]],
    [RANGE, ["odd"], ["shuffle", 5, 9], ["repeat", 2]],
    [RANGE, ["shuffle", 7, 3], ["shard", 2, 1], ["repeat", 2]],
]


def of_components(parts):
    """Returns what padded_batch takes: nothing, one part for an element that is a tensor, or a tuple."""
    if parts is None:
        return None
    parts = [tf.constant(part, tf.int64) if isinstance(part, int) else part for part in parts]
    return parts[0] if len(parts) == 1 else tuple(parts)


def build(stages):
    name, *arguments = stages[0]
    if name == "range":
        dataset = tf.data.Dataset.range(*arguments)
    elif name == "generator":
        spec = tf.TensorSpec([], tf.int64)
        numbers = range(*arguments)
        dataset = tf.data.Dataset.from_generator(lambda: iter(numbers), output_signature=spec)
    else:
        dataset = tf.data.Dataset.zip(tuple(build(part) for part in arguments))
    for name, *arguments in stages[1:]:
        if name == "shuffle":
            size, seed, *reshuffle = arguments
            dataset = dataset.shuffle(size, seed, bool((reshuffle or [1])[0]))
        elif name == "concatenate":
            dataset = dataset.concatenate(build(arguments[0]))
        elif name == "double":
            dataset = dataset.map(lambda x: 2 * x)
        elif name == "odd":
            dataset = dataset.filter(lambda x: x % 2 != 0)
        elif name == "interleave":
            dataset = dataset.interleave(lambda n: tf.data.Dataset.range(10 * n, 11 * n), *arguments)
        elif name == "flat_map":
            dataset = dataset.flat_map(lambda n: tf.data.Dataset.range(10 * n, 11 * n))
        elif name == "take_while":
            dataset = dataset.take_while(lambda x: x % 12 != 11)
        elif name == "vectors":
            dataset = dataset.map(lambda n: tf.fill([n], n))
        elif name == "matrices":
            dataset = dataset.map(lambda n: tf.fill([n, 5 - n], n))
        elif name == "padded_batch":
            size, drop, shapes, values = arguments
            dataset = dataset.padded_batch(size, of_components(shapes), of_components(values), bool(drop))
        elif name == "batch":
            dataset = dataset.batch(arguments[0], drop_remainder=bool(arguments[1:] and arguments[1]))
        else:
            dataset = getattr(dataset, name)(*arguments)
    return dataset


def elements(dataset):
    return [
        [np.asarray(part).ravel().tolist() for part in (element if isinstance(element, tuple) else (element,))]
        for element in dataset.as_numpy_iterator()
    ]


@pytest.fixture(scope="session")
def ours():
    lines = our_programs.output("interop_data", *map(json.dumps, PIPELINES)).splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("index", range(len(PIPELINES)), ids=lambda index: json.dumps(PIPELINES[index]))
def test_elements_and_cardinality(ours, index):
    theirs = build(PIPELINES[index])
    assert ours[index]["elements"] == elements(theirs)
    assert ours[index]["cardinality"] == int(theirs.cardinality())


def run(stages):
    return json.loads(our_programs.output("interop_data", json.dumps(stages)))["elements"]


def texts(dataset):
    return [[[part.decode() if isinstance(part, bytes) else part for part in component] for component in element]
            for element in elements(dataset)]  # fmt: skip


def test_lines(tmp_path):
    files = [str(tmp_path / name) for name in "abc"]
    for file, text in zip(files, (b"one\ntwo\r\n\nlast", b"", b"x\n" * 3)):
        pathlib.Path(file).write_bytes(text)
    assert run([["lines", 0, *files]]) == texts(tf.data.TextLineDataset(files))


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_records_and_examples(tmp_path, compression):
    files = [str(tmp_path / name) for name in "ab"]
    for number, file in enumerate(files):
        with tf.io.TFRecordWriter(file, compression) as writer:
            for i in range(5):
                features = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, number + 0.5]))}
                if i % 2:
                    features["label"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
                if i > 2:
                    features["name"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"n%d" % i]))
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    spec = {
        "x": tf.io.FixedLenFeature([2], tf.float32),
        "label": tf.io.FixedLenFeature([], tf.int64, -1),
        "name": tf.io.FixedLenFeature([], tf.string, "none"),
    }
    records = tf.data.TFRecordDataset(files, compression)
    source = ["records", ["", "GZIP", "ZLIB"].index(compression), *files]

    def parsed(parse):
        return lambda record: tuple(parse(record, spec)[name] for name in ("x", "label", "name"))

    assert run([source, ["parse"]]) == texts(records.map(parsed(tf.io.parse_single_example)))
    batches = records.batch(4).map(parsed(tf.io.parse_example))
    assert run([source, ["batch", 4], ["parse"]]) == texts(batches)


def test_padded_batches_of_examples(tmp_path):
    """Features of variable length are parsed one by one, and then padded."""
    file = str(tmp_path / "records")
    with tf.io.TFRecordWriter(file) as writer:
        for n in (2, 0, 3, 1, 4):
            features = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=[n + 0.5] * n)),
                "ids": tf.train.Feature(int64_list=tf.train.Int64List(value=range(n * 2))),
                "names": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"n%d" % i for i in range(n)])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    dtypes = {"x": tf.float32, "ids": tf.int64, "names": tf.string}
    spec = {name: tf.io.FixedLenSequenceFeature([], dtype, allow_missing=True) for name, dtype in dtypes.items()}

    def parsed(record):
        features = tf.io.parse_single_example(record, spec)
        return features["x"], features["ids"], features["names"]

    theirs = tf.data.TFRecordDataset(file).map(parsed)
    source = [["records", 0, file], ["parse_lists"]]
    assert run([*source, ["padded_batch", 2, 0, None, None]]) == texts(theirs.padded_batch(2))
    values = (-1.5, tf.constant(-1, tf.int64), "none")
    ours = run([*source, ["padded_batch", 2, 1, [[6], [-1], [5]], [-1.5, -1, "none"]]])
    assert ours == texts(theirs.padded_batch(2, ([6], [None], [5]), values, drop_remainder=True))


def test_values_larger_than_their_padded_shape_are_an_error():
    stages = [["range", 0, 5], ["vectors"], ["padded_batch", 2, 0, [[2]], None]]
    with pytest.raises(AssertionError, match="expected a value that fits into its padded shape"):
        run(stages)
    with pytest.raises(tf.errors.DataLossError, match="pad to a smaller size"):
        elements(build(stages))
    stages[-1][3] = [[2, 1]]
    with pytest.raises(AssertionError, match="expected a padded shape into which component 0"):
        run(stages)
    with pytest.raises(ValueError, match="is not compatible with the shape"):
        build(stages)


def test_csv(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text('f,i,s\n1.5,2,plain\n2e1,-3,"quoted, ""two"""\n,NA,\n0.1,4,"two\nlines"\n')
    defaults = [tf.constant([-1.0]), tf.constant([-1], tf.int64), tf.constant(["none"])]
    theirs = tf.data.experimental.CsvDataset(str(file), defaults, header=True, na_value="NA")
    assert run([["csv", str(file)]]) == texts(theirs)


def auto_sharded(dataset, workers, index, policy):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy(policy)
    return distribute._AutoShardDataset(dataset.with_options(options), workers, index)  # pylint: disable=protected-access


@pytest.fixture
def files(tmp_path):
    paths = [str(tmp_path / str(i)) for i in range(5)]
    for i, path in enumerate(paths):
        pathlib.Path(path).write_text("".join(f"{i}{j}\n" for j in range(3)))
    return paths


@pytest.mark.parametrize("policy", [-1, 0, 1, 2, 3])
@pytest.mark.parametrize("workers,index", [(1, 0), (2, 1), (3, 0)])
def test_auto_shard_of_files(files, policy, workers, index):
    dataset = tf.data.TextLineDataset(files).skip(1).batch(2).prefetch(1)
    stages = [["lines", 0, *files], ["skip", 1], ["batch", 2], ["prefetch", 1]]
    ours = run([*stages, ["auto_shard", workers, index, policy]])
    assert ours == texts(auto_sharded(dataset, workers, index, policy))


@pytest.mark.parametrize("policy", [0, 1, 2])
def test_auto_shard_of_padded_batches(files, policy):
    theirs = tf.data.TextLineDataset(files).padded_batch(2)
    ours = run([["lines", 0, *files], ["padded_batch", 2, 0, None, None], ["auto_shard", 2, 1, policy]])
    assert ours == texts(auto_sharded(theirs, 2, 1, policy))


@pytest.mark.parametrize("ours", [["take_lines_before", "40"], ["enumerate", 0]], ids=lambda stage: stage[0])
def test_auto_shard_goes_by_elements_if_files_cannot_be_divided(files, ours):
    """A worker with files of its own would end in another place, or begin to count anew."""
    lines = tf.data.TextLineDataset(files)
    theirs = lines.enumerate() if ours[0] == "enumerate" else lines.take_while(lambda line: line != "40")
    stages = [["lines", 0, *files], ours]
    assert run([*stages, ["auto_shard", 2, 1, 0]]) == texts(auto_sharded(theirs, 2, 1, 0))
    with pytest.raises(AssertionError, match="unshardable source"):
        run([*stages, ["auto_shard", 2, 1, 1]])
    with pytest.raises(tf.errors.NotFoundError, match="shardable source"):
        texts(auto_sharded(theirs, 2, 1, 1))


@pytest.mark.parametrize("policy", [-1, 0, 2, 3])
def test_auto_shard_of_numbers(policy):
    ours = run([["range", 0, 23], ["batch", 3], ["auto_shard", 3, 2, policy]])
    assert ours == elements(auto_sharded(tf.data.Dataset.range(23).batch(3), 3, 2, policy))


def lines_of(name):
    return tf.data.TextLineDataset(name)


def twice(element):
    return tf.data.Dataset.from_tensors(element).repeat(2)


def interleaves(files):
    """Returns pairs of our dataset and TensorFlow's: readers in functions, functions without readers, nested interleaves."""
    names, ours = tf.data.Dataset.from_tensor_slices(files), ["names", *files]
    lines = ["interleave_lines", 3, 2]
    return {
        "reader": ([ours, lines], names.interleave(lines_of, 3, 2)),
        "reader_behind_stages": (
            [ours, ["skip", 1], lines, ["batch", 2], ["prefetch", 1]],
            names.skip(1).interleave(lines_of, 3, 2).batch(2).prefetch(1),
        ),
        "shuffled_names": (
            [ours, ["shuffle", 9, 4], ["interleave_lines", 1, 1]],
            names.shuffle(9, 4).interleave(lines_of, 1, 1),
        ),
        "no_reader_within": (
            [ours, ["skip", 1], ["lines_of"], ["interleave_twice", 3, 2]],
            tf.data.TextLineDataset(names.skip(1)).interleave(twice, 3, 2),
        ),
        "no_reader_within_on_both": (
            [["lines", 0, *files], ["concatenate", [["lines", 0, *files]]], ["interleave_twice", 1, 1]],
            tf.data.TextLineDataset(files).concatenate(tf.data.TextLineDataset(files)).interleave(twice, 1, 1),
        ),
        "of_lines": (
            [["lines", 0, *files], ["batch", 1], ["unbatch"], ["interleave_twice", 3, 2]],
            tf.data.TextLineDataset(files).batch(1).unbatch().interleave(twice, 3, 2),
        ),
        "of_interleave": (
            [ours, ["interleave_twice", 1, 1], ["skip", 1], lines],
            names.interleave(twice, 1, 1).skip(1).interleave(lines_of, 3, 2),
        ),
        "of_interleave_with_reader": (
            [ours, lines, ["shuffle", 4, 2], ["interleave_twice", 1, 1]],
            names.interleave(lines_of, 3, 2).shuffle(4, 2).interleave(twice, 1, 1),
        ),
        "lines_of_interleave": (
            [ours, ["interleave_twice", 1, 1], ["skip", 1], ["lines_of"]],
            tf.data.TextLineDataset(names.interleave(twice, 1, 1).skip(1)),
        ),
        "deep": (
            [ours, ["skip", 1], ["interleave_twice", 1, 1], ["lines_of"], ["interleave_twice", 3, 2]],
            tf.data.TextLineDataset(names.skip(1).interleave(twice, 1, 1)).interleave(twice, 3, 2),
        ),
    }


@pytest.mark.parametrize("policy", [-1, 0, 1, 2, 3])
@pytest.mark.parametrize("workers,index", [(2, 0), (2, 1), (3, 2)])
@pytest.mark.parametrize("kind", interleaves(["x"]))
def test_auto_shard_of_interleaves(files, kind, policy, workers, index):
    ours, theirs = interleaves(files)[kind]
    assert run([*ours, ["auto_shard", workers, index, policy]]) == texts(auto_sharded(theirs, workers, index, policy))


@pytest.mark.parametrize("policy", [0, 2])
def test_auto_shard_without_readers(files, policy):
    names = tf.data.Dataset.from_tensor_slices(files)
    ours = run([["names", *files], ["interleave_twice", 2, 1], ["auto_shard", 3, 1, policy]])
    assert ours == texts(auto_sharded(names.interleave(twice, 2, 1), 3, 1, policy))


@pytest.mark.parametrize("workers,index", [(1, 0), (2, 1), (3, 0)])
def test_auto_shard_by_hint(workers, index):
    hint = tf.data.experimental.SHARD_HINT
    theirs = tf.data.Dataset.range(23).shard(hint, hint).map(lambda x: 2 * x).batch(3)
    ours = run([["range", 0, 23], ["shard_hint"], ["double"], ["batch", 3], ["auto_shard", workers, index, 3]])
    assert ours == elements(auto_sharded(theirs, workers, index, 3))


@pytest.mark.parametrize("policy,stages,make", [
    (0, ["interleave_lines", 1, 1], lambda names: names.interleave(lines_of, 1, 1)),
    (1, ["interleave_lines", 1, 1], lambda names: names.interleave(lines_of, 1, 1)),
    (1, ["lines_of"], tf.data.TextLineDataset),
    (2, ["skip", 0], lambda names: names.skip(0)),
    (3, ["shard_hint"], lambda names: names.shard(tf.data.experimental.SHARD_HINT, tf.data.experimental.SHARD_HINT)),
])  # fmt: skip
def test_fewer_elements_than_workers_are_an_error(files, policy, stages, make):
    """Our error is that of a worker without elements. TensorFlow's is that of a worker with some."""
    with pytest.raises(AssertionError, match="got 5, so that worker 6 has none"):
        run([["names", *files], stages, ["auto_shard", 7, 6, policy]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="not enough for the required 7 shards"):
        texts(auto_sharded(make(tf.data.Dataset.from_tensor_slices(files)), 7, 0, policy))


@pytest.mark.parametrize("batch,workers,replicas", [(7, 2, 2), (8, 2, 2), (4, 1, 3), (3, 3, 2), (1, 1, 2)])
@pytest.mark.parametrize("rows", [23, 24])
def test_rebatch(batch, workers, replicas, rows):
    for worker in range(workers):
        sizes = distribute.batch_sizes_for_worker(batch, workers, replicas, worker)
        theirs = tf.data.Dataset.range(rows).batch(batch).rebatch([int(size) for size in sizes])
        ours = run([["range", 0, rows], ["batch", batch], ["rebatch", batch, workers, replicas, worker]])
        assert ours == elements(theirs)


@pytest.mark.parametrize("batch,replicas", [(4, 3), (4, 2), (5, 1), (3, 5)])
@pytest.mark.parametrize("rows", [21, 22, 23, 24])
def test_legacy_rebatch(batch, replicas, rows):
    theirs = distribute._LegacyRebatchDataset(tf.data.Dataset.range(rows).batch(batch), replicas)  # pylint: disable=protected-access
    assert run([["range", 0, rows], ["batch", batch], ["legacy_rebatch", replicas]]) == elements(theirs)


def distributed(dataset, workers, replicas, worker, policy):
    """Returns what a strategy of TensorFlow reads on a worker: the steps of its DistributedDataset."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy(policy)
    dataset = dataset.with_options(options)
    batch = distribute.compute_batch_size(dataset)
    if int(batch) == -1:
        dataset = distribute._LegacyRebatchDataset(dataset, workers * replicas)  # pylint: disable=protected-access
    else:
        dataset = dataset.rebatch(distribute.batch_sizes_for_worker(batch, workers, replicas, worker))
    dataset = dataset.prefetch(replicas)
    return distribute._AutoShardDataset(dataset, workers, worker, workers * replicas)  # pylint: disable=protected-access


@pytest.mark.parametrize("policy", [-1, 0, 2])
@pytest.mark.parametrize("batch,workers,replicas", [(7, 2, 2), (8, 2, 2), (4, 3, 1), (9, 2, 1), (2, 3, 1)])
@pytest.mark.parametrize("rows", [23, 24])
def test_workers_of_a_strategy(policy, batch, workers, replicas, rows):
    """Returns the stages of distribute::PartOfProcess. tests/cluster/strategy_input_test.cc checks them with real workers."""
    for worker in range(workers):
        theirs = tf.data.Dataset.range(rows).batch(batch)
        ours = [["range", 0, rows], ["batch", batch]]
        if policy == -1:
            ours += [["rebatch", batch, workers, replicas, worker]]
        else:
            ours += [["legacy_rebatch", workers * replicas], ["auto_shard", workers, worker, policy]]
        assert run(ours) == elements(distributed(theirs, workers, replicas, worker, policy))


def test_we_map_by_a_function_of_tensorflow(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def sums(x):
        first, second = tf.split(tf.concat([x, x * 3], axis=0), 2)
        return second - first + 1, tf.reduce_sum(x)

    concrete = sums.get_concrete_function()
    graph_def = tf.compat.v1.GraphDef()
    graph_def.library.function.append(concrete.function_def)
    file = tmp_path / "graph.pb"
    file.write_bytes(graph_def.SerializeToString())
    name = concrete.function_def.signature.name
    theirs = tf.data.Dataset.range(7).batch(2).map(sums)
    assert run([["range", 0, 7], ["batch", 2], ["graph", str(file), name]]) == elements(theirs)


def test_tensorflow_calls_our_function(tmp_path):
    file = tmp_path / "graph.pb"
    our_programs.output("interop_data", "write-function", file)
    graph_def = tf.compat.v1.GraphDef.FromString(file.read_bytes())
    for name, dtype in (("x", tf.float32), ("n", tf.int64)):
        node = graph_def.node.add(name=name, op="Placeholder")
        node.attr["dtype"].type = dtype.as_datatype_enum
    call = graph_def.node.add(name="call", op="PartitionedCall", input=["x", "n"])
    call.attr["f"].func.name = "affine"
    for attr, dtypes in (("Tin", (tf.float32, tf.int64)), ("Tout", (tf.float32, tf.float32, tf.int64))):
        call.attr[attr].list.type.extend(dtype.as_datatype_enum for dtype in dtypes)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.import_graph_def(graph_def, name="")
        fetched = session.run(["call:0", "call:1", "call:2"], {"x:0": [1.0, 2.5], "n:0": 7})
    assert [part.tolist() for part in fetched] == [[3.0, 6.0], [1.0, 2.5], 7]
