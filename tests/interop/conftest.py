"""Fixtures of the tests that compare with TensorFlow, Keras and others (./dev test interop)."""

import json
import os

import pytest

import our_programs

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
# On processors without AVX-512, TensorFlow leaves oneDNN off, and its own kernels lack gradients of dilated convolutions.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skips a test if our program says that it needs a processor with AVX-512, and this one has none."""
    try:
        return (yield)
    except Exception as error:
        if "expected a processor with AVX-512" not in str(error) or "avx512f" in open("/proc/cpuinfo").read():
            raise
        pytest.skip("this processor has no AVX-512, which images in bfloat16 need")


@pytest.fixture(scope="session")
def formats():
    """Calls interop_formats. Returns the JSON that it prints, if any."""

    def call(*arguments):
        printed = our_programs.output("interop_formats", *arguments)
        return json.loads(printed) if printed else None

    return call
