"""Runs the programs of this folder. They answer in JSON."""

import json
import os
import pathlib
import subprocess

BUILD = pathlib.Path(os.environ.get("COHORT_BUILD_DIR", pathlib.Path(__file__).resolve().parents[2] / "build/release"))


def output(program, *arguments, text=None):
    """Returns the output of build/<preset>/bin/PROGRAM, with `text` on stdin."""
    done = subprocess.run(
        [BUILD / "bin" / program, *map(str, arguments)],
        input=text, stdin=subprocess.DEVNULL if text is None else None,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(program, requests, as_json=None):
    """Returns its answers, one for each request. `as_json` converts objects that JSON does not know."""
    return json.loads(output(program, text=json.dumps(requests, default=as_json)))
