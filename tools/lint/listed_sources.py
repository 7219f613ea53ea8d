"""Checks that each *_test.cc, and each .cc and .cu of a module, is named in a CMakeLists.txt of its folder or a folder above."""

import posixpath
import re

WORD = re.compile(r"[^\s()\"]+")


def named_sources(tree):
    """Returns every word of every CMakeLists.txt, as a path from the root."""
    named = set()
    for path in tree.files:
        if posixpath.basename(path) != "CMakeLists.txt":
            continue
        folder = posixpath.dirname(path)
        for _, line in tree.lines(path):
            for word in WORD.findall(line.split("#")[0]):
                named.add(posixpath.normpath(posixpath.join(folder, word)))
    return named


def check(tree):
    named = named_sources(tree)
    return [f"{path}: no CMakeLists.txt names it, so it is never built"
            for path in tree.with_suffix(".cc", ".cu")
            if (path.endswith("_test.cc") or path.startswith("cohort/")) and path not in named]
