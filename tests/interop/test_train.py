"""Moving averages, FtrlOptimizer and schedules: TensorFlow 1 computes the same."""

import numpy as np
import pytest
import tensorflow as tf

import our_programs

v1 = tf.compat.v1
STEPS = 50


def vectors(count=STEPS):
    return np.random.default_rng(7).normal(0, 1, (count, 4)).astype(np.float32)


def ask(request):
    return our_programs.ask("interop_train", [request], lambda array: array.tolist())[0]


@pytest.mark.parametrize("zero_debias", [False, True])
@pytest.mark.parametrize("num_updates", [False, True])
@pytest.mark.parametrize("of_variable", [False, True])
def test_moving_averages(of_variable, num_updates, zero_debias):
    values, initial = vectors(), np.arange(4, dtype=np.float32)
    ours = ask({
        "kind": "averages", "decay": 0.9, "num_updates": num_updates, "zero_debias": zero_debias,
        "of_variable": of_variable, "values": values, "initial": initial,
    })  # fmt: skip
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [4], "fed")
        number = v1.placeholder(tf.int64, [], "number")
        w = v1.get_variable("w", initializer=initial, use_resource=True)
        step = v1.train.get_or_create_global_step() if num_updates else None
        ema = tf.train.ExponentialMovingAverage(0.9, num_updates=step, zero_debias=zero_debias)
        sets = [w.assign(fed).op] + ([step.assign(number).op] if num_updates else [])
        average_of = w if of_variable else fed
        update = ema.apply([average_of])
        average = ema.average(average_of)
        session.run(v1.global_variables_initializer())
        for i, value in enumerate(values):
            session.run(sets, {fed: value, number: i})
            session.run(update, {fed: value})
            np.testing.assert_allclose(ours["averages"][i], session.run(average), rtol=1e-5, atol=1e-6)
        assert set(ours["variables"]) == {variable.op.name for variable in v1.global_variables()}
        theirs = {f"{name}={variable.op.name}" for name, variable in ema.variables_to_restore().items()}
        assert set(ours["restored"]) == theirs


FTRL = [
    {"learning_rate": 0.1},
    {"learning_rate": 0.1, "l1_regularization_strength": 0.05, "l2_regularization_strength": 0.1, "beta": 0.3},
    {"learning_rate": 0.1, "l2_shrinkage_regularization_strength": 0.1, "learning_rate_power": -0.7},
    {"learning_rate": 0.1, "initial_accumulator_value": 0.5},
]


@pytest.mark.parametrize("options", FTRL, ids="-".join)
@pytest.mark.parametrize("rows", [None, [2, 0]], ids=["dense", "sparse"])
def test_ftrl(options, rows):
    gradients, initial = vectors(), np.arange(4, dtype=np.float32)
    request = {"kind": "ftrl", "options": options, "initial": initial, "gradients": gradients}
    ours = ask(request | ({"rows": rows} if rows else {}))
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=initial, use_resource=True)
        fed = v1.placeholder(tf.float32, [4])
        gradient = tf.IndexedSlices(tf.gather(fed, rows), tf.constant(rows), tf.constant([4])) if rows else fed
        apply = v1.train.FtrlOptimizer(**options).apply_gradients([(gradient, w)])
        session.run(v1.global_variables_initializer())
        for value in gradients:
            session.run(apply, {fed: value})
        theirs = {variable.op.name: session.run(variable) for variable in v1.global_variables()}
    assert set(ours) == set(theirs)
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(("first", "t_mul", "m_mul", "alpha"), [(6, 2.0, 0.8, 0.05), (11, 1.0, 1.0, 0.0), (9, 1.5, 0.9, 0.1)])
def test_cosine_decay_restarts(first, t_mul, m_mul, alpha):
    ours = ask({"kind": "restarts", "first_decay_steps": first, "t_mul": t_mul, "m_mul": m_mul, "alpha": alpha})
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.placeholder(tf.int64, [])
        rate = v1.train.cosine_decay_restarts(0.1, step, first, t_mul=t_mul, m_mul=m_mul, alpha=alpha)
        theirs = [session.run(rate, {step: i}) for i in range(STEPS)]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-7)
