"""Checks that no source file is longer than LIMIT lines."""

LIMIT = 600


def check(tree):
    problems = []
    for path in tree.with_suffix(".h", ".cc", ".cu", ".py", ".sh", ".cmake"):
        lines = tree.text(path).count("\n")
        if lines > LIMIT:
            problems.append(f"{path}: {lines} lines; split it ({LIMIT} at most)")
    return problems
