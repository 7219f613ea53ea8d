"""The rows of a training step of the guide network: images per second and memory, with PyTorch and TensorFlow."""

import json
import os

from rows import programs
from rows.table import Contestant, Line

# The interpreter with Debian's package (apt-get install python3-torch). COHORT_TORCH_PYTHON names another one.
TORCH_PYTHON = os.environ.get("COHORT_TORCH_PYTHON", "/usr/bin/python3")
# An interpreter with a current wheel of PyTorch. If it is set, the rows show it, too.
TORCH_WHEEL_PYTHON = os.environ.get("COHORT_TORCH_WHEEL_PYTHON")
LEAST = {(256, 1): (2, 1.15), (256, 2): (2, 1.25)}  # (batch, threads): of the best default, of the best tuned one


def ours(batch, threads, bfloat16):
    text = programs.run([programs.BIN / "guide_network_bench", "--benchmark_format=json",
                         f"--benchmark_filter=Step/{batch}/{threads}/{int(bfloat16)}/"], limit=120)
    found = json.loads(text)["benchmarks"][0]
    return {key: found[key] for key in ("images_per_s", "peak_mib", "step_ms", "primitives_ms")}


def theirs(python, script, batch, threads, bfloat16, settings):
    """Returns the most images per second of several settings, and the least memory of any of them."""
    found = []
    for setting in settings:
        text = programs.run([python, programs.PEERS / script, "--batch", batch, "--threads", threads, *setting,
                             *(["--bfloat16"] if bfloat16 else [])], limit=300)
        found += programs.objects(text)
    return {"images_per_s": max(o["images_per_s"] for o in found), "peak_mib": min(o["peak_mib"] for o in found)}


def prepare(interpreter, quick, batch, threads, bfloat16=False):
    def peer(python, script, *settings):
        return lambda: theirs(python, script, batch, threads, bfloat16, settings)

    torch, tensorflow = "torch_guide_network.py", "tf_guide_network.py"
    mine = Contestant("Cohort", lambda: ours(batch, threads, bfloat16))
    torch_default = Contestant("PyTorch, default malloc, the better layout",
                               peer(TORCH_PYTHON, torch, (), ("--channels_last",)), rounds=1 if quick else 2)
    torch_tuned = Contestant("PyTorch, channels_last, malloc tuned",
                             peer(TORCH_PYTHON, torch, ("--channels_last", "--malloc_tuned")))
    tf_default = Contestant("TensorFlow, default", peer(interpreter, tensorflow, ()))
    tf_best = Contestant("TensorFlow, malloc tuned", peer(interpreter, tensorflow, ("--malloc_tuned",)))
    others = [tf_default, tf_best]
    if TORCH_WHEEL_PYTHON:
        others += [Contestant("PyTorch's wheel, default malloc, the better layout",
                              peer(TORCH_WHEEL_PYTHON, torch, (), ("--channels_last",))),
                   Contestant("PyTorch's wheel, channels_last, malloc tuned",
                              peer(TORCH_WHEEL_PYTHON, torch, ("--channels_last", "--malloc_tuned")))]
    kind = "bfloat16" if bfloat16 else "float32"
    name = f"the guide network, {kind}, batch {batch}, {threads} thread{'s' * (threads > 1)}"
    primitives = mine.also("the sum of its oneDNN primitives")
    default, tuned = (0, 1.25) if bfloat16 else LEAST.get((batch, threads), (0, 0))
    lines = []
    for other, least in ((torch_default, default), (torch_tuned, tuned), *((other, 1) for other in others)):
        lines.append(Line(name, "images/s", mine, "images_per_s", other, larger_is_better=True, least_ratio=least))
    lines.append(Line("the same, a step", "ms", mine, "step_ms", primitives, "primitives_ms", least_ratio=0.9))
    sides = [mine, torch_default, torch_tuned, *others]
    if bfloat16:
        float32 = Contestant("Cohort, float32", lambda: ours(batch, threads, False))
        lines.append(Line("the same", "images/s", mine, "images_per_s", float32, larger_is_better=True, least_ratio=1.6))
        sides.append(float32)
    for other in (torch_default, torch_tuned, *others):
        lines.append(Line("the same, memory of a step", "MiB", mine, "peak_mib", other, least_ratio=1 / 0.7))
    return sides, lines
