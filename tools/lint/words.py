"""Checks that tracked text has no notes to self, paths of one machine, names of package indexes or stray bytes."""

import re

# (pattern, what is wrong). The patterns are written so that this file does not match them.
FORBIDDEN = [
    (re.compile(r"\b(TO[D]O|FIX[M]E|X[X]X)\b"), "a note to self: do it, or open an issue"),
    (re.compile(r"(?<![\w.\-])/(root|home|work|Users)/"), "an absolute path of one machine"),
    (re.compile(r"--(extra-)?index-url|\bpyp[i]\.org|\bfiles\.python[h]osted\b"), "the name of a package index"),
    (re.compile(r"^(<{7}|>{7}|={7})( |$)"), "a merge conflict"),
    (re.compile(r"[ \t]+$"), "white space at the end of the line"),
    (re.compile(r"\r"), "a carriage return"),
]
# Texts that we did not write.
NOT_CHECKED = ("LICENSE",)


def check(tree):
    problems = []
    for path in tree.files:
        if path in NOT_CHECKED or "/golden/" in path or "/testdata/" in path or "/corpus/" in path:
            continue
        text = tree.text(path)
        for number, line in tree.lines(path):
            for pattern, wrong in FORBIDDEN:
                if match := pattern.search(line):
                    problems.append(f"{path}:{number}: {wrong}: {match.group(0)!r}")
        if text and not text.endswith("\n"):
            problems.append(f"{path}: no newline at the end")
    return problems
