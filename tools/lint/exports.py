"""Public headers mark what the shared library exports: every class that they define and every function that they declare
outside of a class carries COHORT_EXPORT. No other file uses the macro. `python3 tools/lint/exports.py` adds what is
missing; clang-format has to run afterwards."""

import os
import re
import sys

from public_headers import UMBRELLA, reachable

HEADER = "cohort/core/export.h"
MACRO = "COHORT_EXPORT"
INCLUDE_LINE = f'#include "{HEADER}"'
# First words of what exports nothing: it is defined where it is seen, or it is no symbol.
LEFT_OUT = {"namespace", "using", "typedef", "inline", "constexpr", "static", "static_assert", "enum", "concept", "union"}
FRIEND = re.compile(r"^\s+friend (?!class |struct |template|constexpr )")
# What stands before a class's name: [[nodiscard]] and the macros of thread-safety annotations.
CLASS = re.compile(r'^((?:class|struct) (?:\[\[.*?\]\] |COHORT_\w+(?:\(".*?"\))? )*)')


def unmarked(text):
    """[(number of a line from 1, the line with the macro)] of a header."""
    lines = text.split("\n")
    found, template, skipped_to = [], None, 0
    for i, line in enumerate(lines):
        if i < skipped_to or (i > 0 and lines[i - 1].endswith("\\")):
            continue
        if not re.match(r"[A-Za-z_\[:]", line):
            continue
        if line.startswith("template"):
            template = None if line.rstrip().endswith(";") else line
            continue
        statement, skipped_to = _statement(lines, i)
        mark = _with_macro(line, statement, template)
        template = None
        if mark:
            found.append((i + 1, mark))
    return found


def unmarked_friends(text):
    """[(number of a line from 1, line)] of friend functions that no marked declaration repeats. An attribute on the friend
    declaration itself has no effect."""
    lines = text.split("\n")
    found = []
    for i, line in enumerate(lines):
        if not FRIEND.match(line):
            continue
        statement = re.sub(r"\s+", " ", _statement(lines, i)[0]).strip()
        if statement.endswith(";") and not statement.endswith("= default;"):
            if f"{MACRO} {statement.removeprefix('friend ')}" not in re.sub(r"\s+", " ", text):
                found.append((i + 1, line))
    return found


def _statement(lines, i):
    """The text from line i to the `;` or `{` that ends the declaration, and the line behind it."""
    text, depth = "", 0
    for j in range(i, len(lines)):
        line = re.sub(r"//.*", "", re.sub(r'"(?:[^"\\]|\\.)*"', '""', lines[j]))
        for character in line:
            text += character
            depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(character, 0)
            if depth == 0 and character in ";{":
                return text, j + 1
        text += " "
    return text, len(lines)


def _with_macro(line, statement, template):
    """`line` with the macro, or None if the declaration that it begins needs none."""
    words = re.findall(r"\w+", statement)
    if not words or words[0] in LEFT_OUT or MACRO in words or re.fullmatch(r"[A-Z][A-Z0-9_]+", words[0]):
        return None
    if words[0] in ("class", "struct"):
        # A specialization is a trait of a type: constants, and no symbols.
        defines = statement.endswith("{") and not (template or "").startswith("template <>")
        return CLASS.sub(rf"\1{MACRO} ", line) if defines else None
    if template or not statement.endswith(";") or ("(" not in statement and words[0] != "extern"):
        return None
    if "operator" not in words and re.search(r"=(?!=)", statement.split("(")[0]):
        return None  # a constant of its own in each source
    attribute = re.match(r"(\[\[.*?\]\] )?(.*)$", line, re.DOTALL)
    return f"{attribute.group(1) or ''}{MACRO} {attribute.group(2)}"


def marked(text):
    """The header with every macro and, if one is there, the include of the macro."""
    lines = text.split("\n")
    for number, line in unmarked(text):
        lines[number - 1] = line
    if any(MACRO in line for line in lines) and INCLUDE_LINE not in lines:
        own = [i for i, line in enumerate(lines) if line.startswith('#include "cohort/')]
        others = [i for i, line in enumerate(lines) if line.startswith("#include") or line == "#pragma once"]
        if own:
            lines.insert(own[0], INCLUDE_LINE)
        else:
            lines[others[-1] + 1:others[-1] + 1] = ["", INCLUDE_LINE]
    return "\n".join(lines)


def check(tree):
    problems = []
    if UMBRELLA not in tree.files:
        return problems  # public_headers says so
    public = reachable(tree, UMBRELLA)
    for header in sorted(public):
        if header == HEADER:
            continue
        text = tree.text(header)
        problems += [f"{header}:{number}: what a public header declares carries {MACRO} (python3 tools/lint/exports.py adds "
                     f"it): '{line.strip()}'" for number, line in unmarked(text)]
        if MACRO in text and INCLUDE_LINE not in text:
            problems.append(f"{header}: uses {MACRO} and does not include {HEADER}")
        problems += [f"{header}:{number}: a friend that is defined elsewhere needs a declaration with {MACRO} behind its class: "
                     f"'{line.strip()}'" for number, line in unmarked_friends(text)]
    problems += [f"{path}: uses {MACRO}, but {UMBRELLA} does not reach it" for path in tree.with_suffix(".h", ".cc")
                 if path not in public and path != HEADER and re.search(rf"\b{MACRO}\b", tree.text(path))]
    return problems


def main():
    import tree as trees
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    tree = trees.checkout(root)
    for header in sorted(reachable(tree, UMBRELLA)):
        text = tree.text(header)
        changed = text if header == HEADER else marked(text)
        if changed != text:
            with open(os.path.join(root, header), "w", encoding="utf-8", newline="") as file:
                file.write(changed)
            print(header)
    return 0


if __name__ == "__main__":
    sys.exit(main())
