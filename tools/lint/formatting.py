"""Checks that clang-format 14 would not change any .h, .cc or .cu file."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor


def check_checkout(root, tree, jobs):
    files = tree.with_suffix(".h", ".cc", ".cu")
    batches = [files[i:i + 16] for i in range(0, len(files), 16)]
    with ThreadPoolExecutor(jobs) as pool:
        return [problem for found in pool.map(lambda batch: _check(root, batch), batches) for problem in found]


def _check(root, files):
    command = ["clang-format-14", "--style=file", "--dry-run", "-Werror", "--ferror-limit=1", *files]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode == 0:
        return []
    lines = [line for line in done.stderr.splitlines() if ": error: " in line]
    return [f"{os.path.relpath(line.split(': ')[0], '.')}: not formatted (./dev format)" for line in lines] or [
        done.stderr.strip()]
