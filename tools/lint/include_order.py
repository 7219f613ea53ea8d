"""Checks the includes between modules: a module includes only itself and the modules before it in ORDER."""

import re

ORDER = ["core", "proto", "graph", "ops", "device", "backends", "runtime", "cluster", "collective", "data",
         "checkpoint", "summary", "train", "distribute", "keras", "estimator"]

# Reviewed exceptions, (including file, included path): the reason. Both are prefixes of paths.
EXCEPTIONS = {
}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]cohort/([^">]+)[">]')
RANK = {module: rank for rank, module in enumerate(ORDER)}


def is_test(path):
    return path.endswith("_test.cc") or "/testing/" in path


def is_internal(path):
    """Headers that are not installed and that no public header includes."""
    return path.endswith("_internal.h") or "/testing/" in path


def is_excepted(path, included, exceptions):
    return any(path == file and included.startswith(prefix) for file, prefix in exceptions)


def check(tree, exceptions=None):
    exceptions = EXCEPTIONS if exceptions is None else exceptions
    problems, used = [], set()
    for path in tree.with_suffix(".h", ".cc", ".cu"):
        parts = path.split("/")
        # Files directly in cohort/ (the umbrella header, the registration list) and outside of it may include everything.
        if parts[0] != "cohort" or len(parts) == 2:
            continue
        if parts[1] not in RANK:
            problems.append(f"{path}: module '{parts[1]}' is not in the order of tools/lint/include_order.py")
            continue
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            if not match:
                continue
            problem = _problem(path, parts[1], match.group(1))
            if not problem:
                continue
            hits = {key for key in exceptions if is_excepted(path, match.group(1), [key])}
            used |= hits
            if not hits:
                problems.append(f"{path}:{number}: {problem}")
    problems += [f"tools/lint/include_order.py: exception {key} is not needed any more"
                 for key in exceptions if key not in used]
    return problems


def _problem(path, module, included):
    if "/" not in included:
        return None if is_test(path) else f"a module does not include the umbrella header cohort/{included}"
    target = included.split("/")[0]
    if target not in RANK:
        return f"includes '{included}', whose module is unknown"
    # A test may use any module to build what it tests; its own module's code may not.
    if is_test(path):
        return None
    if RANK[target] > RANK[module]:
        return f"module '{module}' includes '{included}', but '{target}' stands after it"
    if target == "proto" and module != "proto" and path.endswith(".h") and not is_internal(path):
        return f"a public header includes '{included}': only .cc files and *_internal.h may include proto/"
    return None
