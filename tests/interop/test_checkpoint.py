"""Checkpoints: TensorFlow reads ours and we read TensorFlow's."""

import numpy as np
import pytest
import tensorflow as tf

v1 = tf.compat.v1
PARTITIONED = np.arange(30, dtype=np.float32).reshape(10, 3)


def expected_tensors():
    return {
        "bfloat16": np.arange(6).reshape(2, 3).astype(tf.bfloat16.as_numpy_dtype),
        "bool": np.array([True, False, True]),
        "dense/bias": np.arange(4, dtype=np.float32),
        "dense/kernel": np.arange(12, dtype=np.float32).reshape(3, 4),
        "empty": np.zeros((0, 3), np.float32),
        "float64": np.arange(4, dtype=np.float64).reshape(2, 2),
        "global_step": np.int64(1234567890123),
        "int32": np.arange(5, dtype=np.int32),
        "large": np.arange(700000, dtype=np.float32).reshape(700, 1000),
        "strings": np.array([[b"a", b""], [b"x" * 300, b"\0\xff"]], object),
        "strings/none": np.array([], object),
        "strings/one": np.array(b"hi", object),
        "uint8": np.arange(256).astype(np.uint8),
    }


def dumped(formats, prefix):
    """Returns the tensors that we read, as numpy arrays, and the entries of the index."""
    entries = formats("dump-checkpoint", prefix)
    arrays = {}
    for name, entry in entries.items():
        if entry["dtype"] == "string":
            values = np.array([bytes.fromhex(text) for text in entry["data"]], object)
        else:
            dtype = tf.as_dtype(entry["dtype"]).as_numpy_dtype
            values = np.frombuffer(bytes.fromhex(entry["data"]), dtype)
        arrays[name] = values.reshape(entry["shape"])
    return arrays, entries


def assert_same(actual, expected):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    if expected.dtype == object:
        assert actual.tolist() == expected.tolist()
    else:
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("command", ["write-checkpoint", "write-sharded"])
def test_tensorflow_reads_ours(formats, tmp_path, command):
    prefix = str(tmp_path / "model.ckpt-7")
    formats(command, prefix)
    reader = tf.train.load_checkpoint(prefix)
    expected = expected_tensors() | {"partitioned": PARTITIONED}
    assert set(reader.get_variable_to_shape_map()) == set(expected)
    for name, value in expected.items():
        assert_same(reader.get_tensor(name), value)


def test_tensorflow_finds_ours(formats, tmp_path):
    prefix = str(tmp_path / "model.ckpt-7")
    formats("write-checkpoint", prefix)
    assert tf.train.latest_checkpoint(str(tmp_path)) == prefix


def restored(prefix, name, shape, partitioner):
    with tf.Graph().as_default(), v1.Session() as session:
        variable = v1.get_variable(name, shape, partitioner=partitioner, use_resource=True)
        v1.train.Saver().restore(session, prefix)
        return session.run(tf.convert_to_tensor(variable))


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_saver_restores_our_partitions_under_another_partitioning(formats, tmp_path, shards):
    prefix = str(tmp_path / "model.ckpt-7")
    formats("write-checkpoint", prefix)
    partitioner = v1.fixed_size_partitioner(shards) if shards > 1 else None
    assert_same(restored(prefix, "partitioned", [10, 3], partitioner), PARTITIONED)


def test_index_and_data_are_the_bytes_that_tensorflow_writes(formats, tmp_path):
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    formats("write-plain", ours)
    tensors = expected_tensors()
    names = sorted(tensors)
    with tf.Graph().as_default(), v1.Session() as session:
        values = [tf.constant(tensors[name]) for name in names]
        session.run(tf.raw_ops.SaveV2(prefix=theirs, tensor_names=names, shape_and_slices=[""] * len(names), tensors=values))
    for suffix in (".data-00000-of-00001", ".index"):
        with open(ours + suffix, "rb") as a, open(theirs + suffix, "rb") as b:
            assert a.read() == b.read(), suffix


def rows_of_partitioned(shape, dtype=None, partition_info=None):
    first = partition_info.var_offset[0]
    return tf.constant(PARTITIONED[first : first + shape[0]], dtype)


def test_we_read_a_saver(formats, tmp_path):
    tensors = {name: value for name, value in expected_tensors().items() if not name.startswith("strings/")}
    with tf.Graph().as_default(), v1.Session() as session:
        for name, value in tensors.items():
            v1.get_variable(name, initializer=tf.constant(value), use_resource=value.dtype != object)
        v1.get_variable("partitioned", [10, 3], initializer=rows_of_partitioned, partitioner=v1.fixed_size_partitioner(3))
        session.run(v1.global_variables_initializer())
        prefix = v1.train.Saver().save(session, str(tmp_path / "model.ckpt"), global_step=200)
    assert formats("latest", tmp_path) == prefix
    arrays, entries = dumped(formats, prefix)
    assert set(arrays) == set(tensors) | {"partitioned"}
    assert entries["partitioned"]["parts"] == 3
    assert_same(arrays["partitioned"], PARTITIONED)
    for name, value in tensors.items():
        assert_same(arrays[name], value)


def test_we_read_a_sharded_saver(formats, tmp_path):
    with tf.Graph().as_default(), v1.Session(config=v1.ConfigProto(device_count={"CPU": 2})) as session:
        for task in range(2):
            with tf.device(f"/cpu:{task}"):
                v1.get_variable(f"v{task}", initializer=tf.constant([1.0 + task, 5.0]))
        session.run(v1.global_variables_initializer())
        prefix = v1.train.Saver(sharded=True).save(session, str(tmp_path / "model.ckpt"))
    arrays, entries = dumped(formats, prefix)
    assert entries["v0"]["shards"] == 2
    assert_same(arrays["v0"], np.float32([1, 5]))
    assert_same(arrays["v1"], np.float32([2, 5]))


def test_we_read_an_object_checkpoint(formats, tmp_path):
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    checkpoint = tf.train.Checkpoint(weights=tf.Variable(value), half=tf.Variable(tf.constant([1, 2], tf.bfloat16)))
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=2)
    for _ in range(3):
        prefix = manager.save()
    assert formats("latest", tmp_path) == prefix
    arrays, _ = dumped(formats, prefix)
    assert_same(arrays["weights/.ATTRIBUTES/VARIABLE_VALUE"], value)
    assert arrays["half/.ATTRIBUTES/VARIABLE_VALUE"].astype(np.float32).tolist() == [1, 2]
    assert arrays["save_counter/.ATTRIBUTES/VARIABLE_VALUE"] == 3
    assert b"weights" in arrays["_CHECKPOINTABLE_OBJECT_GRAPH"].item()


def test_we_pass_over_a_torn_checkpoint_of_tensorflow(formats, tmp_path):
    checkpoint = tf.train.Checkpoint(weights=tf.Variable(np.arange(6, dtype=np.float32)))
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=3)
    first, second = manager.save(), manager.save()
    data = tmp_path / (second.rsplit("/", 1)[1] + ".data-00000-of-00001")
    data.write_bytes(data.read_bytes()[:-1])
    assert formats("latest", tmp_path) == first
