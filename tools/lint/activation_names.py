"""A new activation is added in a few files, because all others ask the registry. Outside of these files (HOMES) no
literal of the product names an activation's op, and no test names more than a few of them: a longer list would have to
grow with each activation. A test that needs all of them uses ActivationOps of cohort/graph/testing/activation_ops.h.

The activations are those that OPS registers together with a gradient op of their own."""

from code_sizes import is_test
from cpp_tokens import tokens
from exceptions import without_excepted

OPS = "cohort/ops/activation.cc"
HOMES = {
    OPS,
    "cohort/ops/activation.h",
    "cohort/backends/cpu/kernels/activation.cc",
    "cohort/backends/cpu/kernels/nn_test.cc",
    "cohort/backends/cuda/kernels/activation.cc",
    "cohort/keras/files/onnx_elementwise_rules.cc",
    "cohort/keras/layers/activations.cc",
    "tests/ops/nn_cases.cc",
}
MOST_IN_A_TEST = 2

# (file, literal): product code that means this one activation and no other.
NAMED = {
    # The one activation that oneDNN can apply to a convolution without hiding NaN.
    ("cohort/backends/cpu/kernels/convolution_call.cc", "Selu"),
    # Binary cross-entropy takes the logits in front of a sigmoid, as Keras does.
    ("cohort/keras/losses/crossentropy.cc", "Sigmoid"),
}
# Tests that list words which happen to be activations.
LISTS = {"cohort/core/text/nearest_names_test.cc"}


def _literals(tree, path):
    return [token for token in tokens(tree.text(path)) if token.kind == "string"]


def activations(tree):
    names = {token.text for token in _literals(tree, OPS)}
    return {name for name in names if name + "Grad" in names}


def check(tree, named=None, lists=None):
    if OPS not in tree.with_suffix(".cc"):
        return []
    known = activations(tree)
    watched = known | {name + "Grad" for name in known}
    found, listed = [], []
    for path in tree.with_suffix(".h", ".cc"):
        if path in HOMES or path.startswith("bench/"):
            continue
        if not any(f'"{name}"' in tree.text(path) for name in watched):
            continue
        literals = [token for token in _literals(tree, path) if token.text in watched]
        if not is_test(path):
            found += [((path, token.text), f"{path}:{token.line}: the literal \"{token.text}\" names an activation; ask "
                                           "OpDef for its trait") for token in literals]
        elif len({token.text for token in literals} & known) > MOST_IN_A_TEST:
            listed.append((path, f"{path}:{literals[0].line}: lists activations by name; use ActivationOps of "
                                 "cohort/graph/testing/activation_ops.h"))
    here = "tools/lint/activation_names.py"
    return [*without_excepted(found, NAMED if named is None else named, here),
            *without_excepted(listed, LISTS if lists is None else lists, here)]
