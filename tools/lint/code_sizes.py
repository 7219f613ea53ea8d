"""Checks sizes in C++: no function over 60 lines, no class over 25 public methods, no folder over 40 sources of its own.

The bodies of tests may be longer, and tests are not counted. Overloads count once. Constructors, destructors and
operators do not count. The lines of a function are those from its declaration to its closing brace."""

import collections
import posixpath
import re

from cpp_outline import outline
from exceptions import without_excepted

MOST_LINES = 60
MOST_METHODS = 25
MOST_SOURCES = 40

# Classes that need so many methods, and folders in which each source is one more of the same kind.
CLASSES_OF_MANY_METHODS = {"Tensor", "Dataset", "Graph", "Node", "OpDef", "Model", "Strategy"}
BUILDER = re.compile(r"Builder$")
FOLDERS_OF_MANY_SOURCES = re.compile(r"^cohort/ops$|(^|/)kernels$")

# Exceptions that have yet to be divided: (file, function), (file, class) and folders.
LONG_FUNCTIONS = set()
LARGE_CLASSES = set()
FULL_FOLDERS = set()

TEST_MACRO = re.compile(r"^(TYPED_)?TEST(_F|_P|_SUITE\w*)?$")


def is_test(path):
    return path.endswith("_test.cc") or "/testing/" in path or path.startswith("tests/")


def check(tree, long_functions=None, large_classes=None, full_folders=None):
    functions, classes, sources = [], [], collections.Counter()
    for path in tree.with_suffix(".h", ".cc", ".cu"):
        found_functions, found_classes = outline(tree.text(path))
        for function in found_functions:
            if function.lines > MOST_LINES and not TEST_MACRO.match(function.name):
                functions.append(((path, function.name), f"{path}:{function.line}: {function.name} has {function.lines} "
                                                         f"lines; divide it ({MOST_LINES} at most)"))
        if is_test(path):
            continue
        sources[posixpath.dirname(path)] += 1
        for known in found_classes:
            name = known.name.rsplit("::", 1)[-1]
            if len(known.methods) <= MOST_METHODS or name in CLASSES_OF_MANY_METHODS or BUILDER.search(name):
                continue
            classes.append(((path, known.name), f"{path}:{known.line}: {known.name} has {len(known.methods)} public "
                                                f"methods; make it two classes ({MOST_METHODS} at most)"))
    folders = [(folder, f"{folder}: {count} sources; give it subfolders ({MOST_SOURCES} at most)")
               for folder, count in sorted(sources.items())
               if count > MOST_SOURCES and not FOLDERS_OF_MANY_SOURCES.search(folder)]
    here = "tools/lint/code_sizes.py"
    return [*without_excepted(functions, LONG_FUNCTIONS if long_functions is None else long_functions, here),
            *without_excepted(classes, LARGE_CLASSES if large_classes is None else large_classes, here),
            *without_excepted(folders, FULL_FOLDERS if full_folders is None else full_folders, here)]
