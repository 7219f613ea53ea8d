"""Checks against TensorFlow and TensorBoard: ./dev test interop."""

import json
import os
import pathlib
import subprocess

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture(scope="session")
def build_dir():
    root = pathlib.Path(__file__).resolve().parents[2]
    return pathlib.Path(os.environ.get("COHORT_BUILD_DIR", root / "build" / "release"))


@pytest.fixture(scope="session")
def formats(build_dir):
    """Calls interop_formats; gives back the JSON that it prints, if any."""
    program = build_dir / "bin" / "interop_formats"

    def call(*arguments):
        done = subprocess.run(
            [program, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout else None

    return call
