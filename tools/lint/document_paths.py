"""Checks that documents name only paths that exist: paths in backticks, ./commands in code blocks, and links."""

import fnmatch
import posixpath
import re

SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"^[\w.*?+/-]+$")
SUFFIXES = (".h", ".cc", ".cu", ".md", ".py", ".sh", ".cmake", ".txt", ".json", ".proto", ".supp")
# Paths that a build makes, or that mean "some path".
NOT_CHECKED = ("build/", "path/to/")


def check(tree):
    problems = []
    for document in tree.with_suffix(".md"):
        in_block = False
        for number, line in tree.lines(document):
            if line.lstrip().startswith("```"):
                in_block = not in_block
                continue
            words = line.split() if in_block else [word for span in SPAN.findall(line) for word in span.split()]
            for word in words:
                path = word.rstrip(".,;:)").split(":")[0]
                if in_block and not path.startswith("./"):
                    continue
                if _is_path(tree, path) and not _found(tree, document, path):
                    problems.append(f"{document}:{number}: there is no '{path}'")
            if not in_block:
                problems += [f"{document}:{number}: link to '{target}', which does not exist"
                             for target in LINK.findall(line) if not _link_is_good(tree, document, target)]
    return problems


def _is_path(tree, word):
    if not PATH.match(word) or "/" not in word or word.startswith(("/", "../", "-")):
        return False
    word = word.removeprefix("./")
    if word.startswith(NOT_CHECKED):
        return False
    # `a/b` may be a fraction or a media type. A path has the ending of one, or begins with an existing folder or file.
    first = word.split("/")[0]
    return (word.endswith(("/",) + SUFFIXES) or tree.exists(first) or tree.exists("cohort/" + first)
            or word == first)


def _found(tree, document, path):
    """Returns whether the path exists, relative to the root, to cohort/ (for a module's name), or to the document's folder."""
    for base in ("", "cohort", posixpath.dirname(document)):
        candidate = posixpath.normpath(posixpath.join(base, path))
        if tree.exists(candidate):
            return True
        if "*" in candidate and (fnmatch.filter(tree.files, candidate) or fnmatch.filter(tree.folders, candidate)):
            return True
    return False


def _link_is_good(tree, document, target):
    if re.match(r"^[a-z]+:", target) or target.startswith("#"):
        return True
    return tree.exists(posixpath.join(posixpath.dirname(document), target.split("#")[0]))
