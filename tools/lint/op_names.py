"""Every function of cohort/ops/*.h that adds a node lets its caller name the node: its last parameter is a NodeName."""

import re

# Headers that programs do not see, and that no header of an op is.
INTERNAL = {"broadcast_gradient.h", "control_flow_gradient.h", "data_flow.h", "dims.h", "function_gradient.h",
            "initializers.h", "int_list.h", "operand.h", "reduction_gradient.h", "register.h", "shape_rules.h",
            "strided_slice_spec.h", "window.h"}
# Functions whose result has a name of its own, with the reason.
OTHERWISE_NAMED = {
    "While": "WhileOptions has the name",
    "GetVariable": "a variable has its name as the second parameter",
    "GetOrCreateGlobalStep": "the global step has a fixed name",
}
RESULT = (r"(?:Output|Node\*|Variable|std::vector<Output>|BatchNorm|UniqueResult|UniqueCountsResult|PoppedTensor"
          r"|ClippedGradients)")
FUNCTION = re.compile(r"^(?:COHORT_EXPORT )?(?:inline )?(?:requires .*?)?" + RESULT
                      + r" (\w+)\(((?:[^;{}]|\{\})*?)\)(?:;| \{)", re.M)


def check(tree):
    problems = []
    for path in tree.with_suffix(".h"):
        folder, _, name = path.rpartition("/")
        if folder != "cohort/ops" or name in INTERNAL:
            continue
        text = tree.text(path)
        for match in FUNCTION.finditer(text):
            function, parameters = match.groups()
            if function.startswith("operator") or function in OTHERWISE_NAMED:
                continue
            last = parameters.split(",")[-1]
            if "const NodeName& name" not in last:
                line = text.count("\n", 0, match.start()) + 1
                problems.append(f"{path}:{line}: {function} adds a node, so that its last parameter has to be "
                                f"'const NodeName& name = \"\"' (tools/lint/op_names.py)")
    return problems
