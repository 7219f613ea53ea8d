"""The files that the checks read: the tracked files of a git checkout, or a dictionary of texts in tests."""

import os
import posixpath
import subprocess


class Tree:
    """Paths are relative to the root, with slashes. `files` is sorted."""

    def __init__(self, texts):
        self._texts = texts
        self.files = sorted(texts)
        self.folders = {"."}
        for path in self.files:
            while path := posixpath.dirname(path):
                self.folders.add(path)

    def text(self, path):
        return self._texts[path]

    def lines(self, path):
        """Yields (number from 1, line) of a file."""
        return enumerate(self.text(path).split("\n"), 1)

    def with_suffix(self, *suffixes):
        return [path for path in self.files if path.endswith(suffixes)]

    def exists(self, path):
        path = posixpath.normpath(path)
        return path in self._texts or path in self.folders


class _CheckoutTexts(dict):
    """Reads a file when its text is first needed. Returns "" if the file is not UTF-8 text."""

    def __init__(self, root, paths):
        super().__init__((path, None) for path in paths)
        self._root = root

    def __getitem__(self, path):
        text = super().__getitem__(path)
        if text is None:
            try:
                with open(os.path.join(self._root, path), encoding="utf-8", newline="") as file:
                    text = file.read()
            except UnicodeDecodeError:
                text = ""
            self[path] = text
        return text


def tracked_files(root, *patterns):
    """Returns the existing files of the checkout, tracked or not, without ignored ones."""
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    paths = {path for path in listed.split("\0") if path}
    return sorted(path for path in paths if os.path.isfile(os.path.join(root, path)))


def checkout(root):
    return Tree(_CheckoutTexts(root, tracked_files(root)))
