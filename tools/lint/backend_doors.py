"""Checks that only cohort/backends/ knows device types. Elsewhere no literal names a device type, also not inside a longer
name such as "/device:CPU:0". The constant kHostDeviceType is the only exception. Elsewhere nothing includes OpenMP's header,
a header of oneDNN, or a file of cohort/backends/. The only exception is cohort/registration.cc."""

import re

from code_sizes import is_test
from cpp_tokens import tokens
from exceptions import without_excepted

TYPE = re.compile(r"(?<![A-Za-z0-9])(CPU|GPU|TEST)(?![A-Za-z0-9])|"
                  r"(?i:/(cpu|gpu|test):|(?<![a-z0-9])(cpu|gpu|test):[0-9*])")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](omp\.h|(?:[^">]*/)?dnnl[^">/]*\.h(?:pp)?|cohort/backends/[^">]*)[">]')
REGISTRATION = "cohort/registration.cc"
CONSTANT = "kHostDeviceType"

# Exceptions that have yet to go: (file, literal) and (file, included file).
LITERALS = set()
INCLUDES = set()


def is_product(path):
    return path.startswith(("cohort/", "tools/cohort/")) and not path.startswith("cohort/backends/") and \
        not is_test(path)


def _literals(text):
    """Yields (line, literal, whether it is the constant's) for each literal that names a device type."""
    found = tokens(text)
    for i, token in enumerate(found):
        if token.kind != "string" or not TYPE.search(token.text):
            continue
        # `constexpr char kHostDeviceType[] = "..."`
        yield token.line, token.text, CONSTANT in [earlier.text for earlier in found[max(0, i - 4):i]]


def check(tree, literals=None, includes=None):
    named, included, constants = [], [], []
    for path in tree.with_suffix(".h", ".cc", ".cu"):
        if not is_product(path):
            continue
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            if match and path != REGISTRATION:
                included.append(((path, match.group(1)), f"{path}:{number}: includes '{match.group(1)}', which only "
                                                         "cohort/backends/ may"))
        if not TYPE.search(tree.text(path)):
            continue
        for line, literal, is_constant in _literals(tree.text(path)):
            if is_constant:
                constants.append(f"{path}:{line}")
            else:
                named.append(((path, literal), f"{path}:{line}: the literal \"{literal}\" names a device type; ask the "
                                               f"backend, or use {CONSTANT}"))
    here = "tools/lint/backend_doors.py"
    return [*(f"{place}: {CONSTANT} is defined in {constants[0]} already" for place in constants[1:]),
            *without_excepted(named, LITERALS if literals is None else literals, here),
            *without_excepted(included, INCLUDES if includes is None else includes, here)]
