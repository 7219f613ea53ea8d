"""Event and record files: TensorFlow and TensorBoard read ours and we read theirs."""

import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator, event_file_loader

v1 = tf.compat.v1

GRAPH, SUMMARY = 2, 4  # Event::Kind
SCALAR, HISTOGRAM, TENSOR = 1, 2, 3  # SummaryValue::Kind


def test_tensorboard_shows_ours(formats, tmp_path):
    path = formats("write-events", tmp_path)
    events = list(event_file_loader.EventFileLoader(path).Load())
    assert events[0].file_version == "brain.Event:2"
    assert events[1].session_log.status == v1.SessionLog.START and events[1].step == 1

    accumulator = event_accumulator.EventAccumulator(str(tmp_path))
    accumulator.Reload()
    tags = accumulator.Tags()
    assert tags["graph"]
    nodes = accumulator.Graph().node
    assert [(node.name, node.device) for node in nodes] == [("weights", "/job:ps/task:0")]
    assert "loss" in tags["scalars"] + tags["tensors"]
    assert "weights" in tags["histograms"] + tags["tensors"]


def test_scalars_and_histograms_keep_their_values(formats, tmp_path):
    path = formats("write-events", tmp_path)
    loader = event_file_loader.LegacyEventFileLoader(path)
    scalars, histograms = {}, {}
    for event in loader.Load():
        for value in event.summary.value:
            if value.HasField("simple_value"):
                scalars[event.step] = value.simple_value
            elif value.HasField("histo"):
                histograms[event.step] = value.histo
    assert scalars == {step: np.float32(1 / step) for step in (1, 2, 3)}
    assert {step: histo.num for step, histo in histograms.items()} == {1: 4, 2: 4, 3: 4}
    assert (histograms[3].min, histograms[3].max, histograms[3].sum) == (-1, 3, 2.5)


def test_histograms_are_the_bytes_that_tensorflow_writes(formats):
    cases = [
        [0.0],
        [1.0, 1.1, 1e-12, -1e-12, 0.0, 2.5],
        [1e30, -1e30, 1e-300, 1.7e308],
        list(np.random.default_rng(1).normal(size=50)),
    ]
    with tf.Graph().as_default(), v1.Session() as session:
        for values in cases:
            summary = session.run(v1.summary.histogram("h", tf.constant(values, tf.float64)))
            theirs = v1.Summary.FromString(summary).value[0].histo
            ours = v1.Summary.FromString(bytes.fromhex(formats("histogram", *map(repr, map(float, values)))))
            assert ours.value[0].tag == "h"
            assert ours.value[0].histo == theirs


def test_we_read_a_v1_file_writer(formats, tmp_path):
    with tf.Graph().as_default() as graph, v1.Session() as session:
        summary = session.run(v1.summary.merge([v1.summary.scalar("loss", 0.25), v1.summary.histogram("h", [1.0, 2.0])]))
        with v1.summary.FileWriter(str(tmp_path), graph) as writer:
            writer.add_summary(summary, 7)
        nodes = len(graph.as_graph_def().node)
    (path,) = tmp_path.iterdir()
    events = formats("dump-events", path)
    assert [event["nodes"] for event in events if event["kind"] == GRAPH] == [nodes]
    (event,) = [event for event in events if event["kind"] == SUMMARY]
    assert event["step"] == 7
    assert event["values"] == [
        {"tag": "loss", "kind": SCALAR, "scalar": 0.25},
        {"tag": "h", "kind": HISTOGRAM, "num": 2},
    ]


def test_we_read_a_v2_writer(formats, tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        for step in range(3):
            tf.summary.scalar("loss", 0.5 * step, step=step)
        tf.summary.histogram("h", [1.0, 2.0], step=3)
    writer.close()
    (path,) = tmp_path.iterdir()
    values = [(event["step"], value) for event in formats("dump-events", path) for value in event["values"]]
    assert values[:3] == [(step, {"tag": "loss", "kind": SCALAR, "scalar": 0.5 * step}) for step in range(3)]
    assert values[3][1]["tag"] == "h" and values[3][1]["kind"] == TENSOR
    assert values[3][1]["tensor"].startswith("float64[30,3]")


def test_records(formats, tmp_path):
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    formats("write-records", ours, "one", "", "three" * 1000)
    assert list(tf.data.TFRecordDataset(ours).as_numpy_iterator()) == [b"one", b"", b"three" * 1000]
    with tf.io.TFRecordWriter(theirs) as writer:
        for record in (b"one", b"", b"\0\xff"):
            writer.write(record)
    assert [bytes.fromhex(text) for text in formats("dump-records", theirs)] == [b"one", b"", b"\0\xff"]
