"""Functions that add several nodes: their values and gradients are those of TensorFlow's functions."""

import re

import pytest
import tensorflow as tf

from test_ops import array, assert_close, cases

# The equations of the cases whose name has "einsum", as in tests/ops/composite_cases.cc.
EQUATIONS = {
    "BatchMatMulV2_einsum_matrices": "ij,jk->ik",
    "BatchMatMulV2_einsum_transposed": "ji,kj->ki",
    "BatchMatMulV2_einsum_implicit": "b i j, b j k",
    "BatchMatMulV2_einsum_batch_in_the_middle": "ibj,jbk->bik",
    "BatchMatMulV2_einsum_attention": "bthd,bshd->bhts",
    "BatchMatMulV2_einsum_several_sums": "abcd,cbe->ade",
    "BatchMatMulV2_einsum_dots": "...ij,...jk->...ik",
    "BatchMatMulV2_einsum_dots_implicit": "...ij,jk",
    "BatchMatMulV2_einsum_three": "ij,jk,kl->il",
    "BatchMatMulV2_einsum_to_scalar": "ij,ij->",
    "Mul_einsum_outer": "i,j->ij",
    "Mul_einsum_elements": "ij,ji->ij",
    "Mul_einsum_scalar": ",ij->ji",
    "Mul_einsum_dots": "...,...->...",
    "Sum_einsum_all": "ij->",
    "Sum_einsum_trace": "ii",
    "Sum_einsum_unshared": "ij,kl->jl",
    "Transpose_einsum": "bij->jbi",
    "Transpose_einsum_alphabetical": "ba",
    "GatherV2_einsum_diagonal": "bii->bi",
    "GatherV2_einsum_diagonal_product": "iij,ij->i",
    "GatherV2_einsum_triple": "iii->i",
}


def sampled_loss(loss, **arguments):
    def compute(weights, biases, labels, inputs, *drawn):
        drawn = (drawn[0], *(tf.cast(count, inputs.dtype) for count in drawn[1:]))
        return loss(weights, biases, labels, inputs, num_sampled=4, num_classes=9, sampled_values=drawn, **arguments)

    return compute


LOSSES = {
    "SoftmaxCrossEntropyWithLogits_sampled": sampled_loss(tf.nn.sampled_softmax_loss),
    "SoftmaxCrossEntropyWithLogits_sampled_two_true": sampled_loss(tf.nn.sampled_softmax_loss, num_true=2),
    "SoftmaxCrossEntropyWithLogits_sampled_with_hits": sampled_loss(tf.nn.sampled_softmax_loss, remove_accidental_hits=False),
    "Softplus_nce": sampled_loss(tf.nn.nce_loss),
    "Softplus_nce_two_true": sampled_loss(tf.nn.nce_loss, num_true=2),
    "Softplus_nce_without_hits": sampled_loss(tf.nn.nce_loss, remove_accidental_hits=True),
}


REARRANGED = {
    "GatherV2_roll": lambda x: tf.roll(x, 2, 0),
    "GatherV2_roll_two_axes": lambda x: tf.roll(x, [-1, 6], [0, -1]),
    "GatherV2_roll_empty": lambda x: tf.roll(x, 1, 0),
    "SelectV2_band_part": lambda x: tf.linalg.band_part(x, 1, 2),
    "SelectV2_band_part_lower": lambda x: tf.linalg.band_part(x, -1, 0),
    "SelectV2_band_part_upper": lambda x: tf.linalg.band_part(x, 0, -1),
}


def compare(name, compute):
    case = cases()[name]
    inputs = [tf.constant(array(feed["value"])) for feed in case["feeds"]]
    floating = [x for x in inputs if x.dtype == tf.float64]
    with tf.GradientTape() as tape:
        for x in floating:
            tape.watch(x)
        result = compute(*inputs)
    [weight] = case["weights"]
    gradients = tape.gradient(result, floating, tf.constant(array(weight["value"])))
    assert_close(name, result, array(case["outputs"][0]["value"]))
    for theirs, ours in zip(gradients, case["gradients"], strict=True):
        assert_close(f"{name}: gradient of {ours['of']}", tf.convert_to_tensor(theirs), array(ours["value"]))


@pytest.mark.parametrize("name", sorted(EQUATIONS))
def test_einsum(name):
    compare(name, lambda *operands: tf.einsum(EQUATIONS[name], *operands))


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_sampled_loss(name):
    compare(name, LOSSES[name])


@pytest.mark.parametrize("name", sorted(REARRANGED))
def test_rearranged(name):
    compare(name, REARRANGED[name])


def test_each_case_is_compared():
    ours = {name for name in cases() if re.search("_einsum|_nce|Logits_sampled|_roll|_band_part", name)}
    assert ours == {*EQUATIONS, *LOSSES, *REARRANGED}
