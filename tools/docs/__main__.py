"""`python3 tools/docs FOLDER`: writes a reference of the public headers, those that cohort/cohort.h reaches, to FOLDER/html.
Needs Doxygen. Every warning of Doxygen is an error: exits with 1 and prints them."""

import os
import subprocess
import sys
import unittest

import comments
import comments_test

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools", "lint"))

from public_headers import UMBRELLA, reachable  # noqa: E402
import tree as trees  # noqa: E402

SETTINGS = {
    "PROJECT_NAME": "Cohort",
    "FILTER_PATTERNS": f'"*.h=python3 -B {os.path.join(ROOT, "tools", "docs", "comments.py")}"',
    "FULL_PATH_NAMES": "YES",
    "EXTRACT_ALL": "YES",
    "EXTRACT_LOCAL_CLASSES": "NO",
    "HIDE_FRIEND_COMPOUNDS": "YES",
    "MARKDOWN_SUPPORT": "NO",
    "AUTOLINK_SUPPORT": "YES",
    "JAVADOC_AUTOBRIEF": "YES",
    "BUILTIN_STL_SUPPORT": "YES",
    "SORT_MEMBER_DOCS": "NO",
    "MACRO_EXPANSION": "YES",
    "EXPAND_ONLY_PREDEF": "YES",
    "SEARCH_INCLUDES": "NO",
    "VERBATIM_HEADERS": "YES",
    "SOURCE_BROWSER": "NO",
    "GENERATE_LATEX": "NO",
    "HAVE_DOT": "NO",
    "CLASS_GRAPH": "NO",
    "HTML_TIMESTAMP": "NO",
    "QUIET": "YES",
    "WARNINGS": "YES",
    "WARN_IF_DOC_ERROR": "YES",
    "WARN_AS_ERROR": "FAIL_ON_WARNINGS",
}


def summary(text):
    """The first sentence of a header's opening comment."""
    lines = []
    for line in text.split("\n"):
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").strip())
    joined = " ".join(lines)
    return joined.split(". ")[0].rstrip(".") + "." if joined else ""


def main_page(tree, headers):
    """Doxygen's first page: every public header by module, with what it is for."""
    modules = {}
    for header in headers:
        module = header.split("/")[1] if header.count("/") > 1 else ""
        modules.setdefault(module, []).append(header)
    page = ["/** \\mainpage Cohort", "", "A program includes cohort/cohort.h, or single ones of these headers.", ""]
    for module in sorted(modules):
        page += [f"\\section module_{module or 'top'} {module or 'cohort'}", "<table>"]
        page += [f"<tr><td>\\ref {header} \"{header}\"</td>"
                 f"<td>{comments.prose(summary(tree.text(header)))}</td></tr>" for header in sorted(modules[module])]
        page += ["</table>"]
    return "\n".join(page + ["*/", ""])


def macros(tree, headers):
    """What the macros of our headers expand to for Doxygen: to nothing."""
    names = set()
    for header in headers:
        for _, line in tree.lines(header):
            if line.startswith("#define COHORT_"):
                names.add(line.split()[1].split("(")[0])
    return " ".join(f'"{name}=" "{name}(...)="' for name in sorted(names))


def self_test():
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromModule(comments_test).run(result)
    return [text for _, text in result.failures + result.errors]


def main(folder):
    failed = self_test()
    if failed:
        print("docs: the filter of comments is broken:", *failed, sep="\n")
        return 1
    tree = trees.checkout(ROOT)
    headers = sorted(reachable(tree, UMBRELLA))
    os.makedirs(folder, exist_ok=True)
    page = os.path.join(folder, "main.dox")
    with open(page, "w", encoding="utf-8") as file:
        file.write(main_page(tree, headers))
    inputs = " ".join(f'"{path}"' for path in [page] + [os.path.join(ROOT, header) for header in headers])
    settings = dict(SETTINGS, OUTPUT_DIRECTORY=f'"{folder}"', INPUT=inputs, PREDEFINED=macros(tree, headers))
    settings["STRIP_FROM_PATH"] = settings["STRIP_FROM_INC_PATH"] = f'"{ROOT}"'
    text = "".join(f"{name} = {value}\n" for name, value in settings.items())
    try:
        done = subprocess.run(["doxygen", "-"], input=text, text=True, cwd=ROOT, capture_output=True)
    except FileNotFoundError:
        print("docs: doxygen is not installed; on Debian: apt-get install doxygen")
        return 1
    sys.stdout.write(done.stderr)
    return 1 if done.returncode or "warning:" in done.stderr else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python3 tools/docs FOLDER")
    sys.exit(main(os.path.abspath(sys.argv[1])))
