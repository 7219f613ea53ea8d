"""`python3 tools/lint` runs every check that takes seconds. It prints each problem on a line, and exits with 1 if there
are any."""

import os
import sys
import time
import unittest

import activation_names
import backend_doors
import code_sizes
import cuda_dialect
import document_paths
import exports
import format_versions
import formatting
import include_order
import lint_test
import listed_sources
import op_names
import public_headers
import scripts
import sizes
import tree as trees
import words

CHECKS = [include_order, public_headers, exports, listed_sources, document_paths, scripts, words, sizes, code_sizes,
          backend_doors, activation_names, op_names, format_versions,
          cuda_dialect]


def self_test():
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromModule(lint_test).run(result)
    return [f"{test}: {text}" for test, text in result.failures + result.errors]


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    tree = trees.checkout(root)
    steps = [("self_test", self_test)]
    steps += [(check.__name__, lambda check=check: check.check(tree)) for check in CHECKS]
    steps += [("formatting", lambda: formatting.check_checkout(root, tree, os.cpu_count() or 1))]
    total = 0
    for name, step in steps:
        start = time.monotonic()
        problems = step()
        total += len(problems)
        print(f"lint: {name:16} {len(problems) or 'no':>4} problems  {time.monotonic() - start:5.1f} s", flush=True)
        for problem in problems:
            print(f"  {problem}")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
