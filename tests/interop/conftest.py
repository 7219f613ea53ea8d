"""Fixtures of the tests that compare with TensorFlow, Keras and others (./dev test interop)."""

import json
import os

import pytest

import our_programs

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
# On processors without AVX-512, TensorFlow leaves oneDNN off, and its own kernels lack gradients of dilated convolutions.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


@pytest.fixture(scope="session")
def formats():
    """Calls interop_formats. Returns the JSON that it prints, if any."""

    def call(*arguments):
        printed = our_programs.output("interop_formats", *arguments)
        return json.loads(printed) if printed else None

    return call
