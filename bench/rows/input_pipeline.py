"""The rows of the time that `Fit` spends outside of the bare training step, and waits for batches."""

import json

from rows import programs
from rows.table import Contestant, Line

# The benchmark, what it trains, and whether 2 % of its step are more than the loop itself.
CASES = (("FitGuideNetwork/64/1", "the guide network, batch 64, 1 thread", True),
         ("FitGuideNetwork/256/2", "the guide network, batch 256, 2 threads", True),
         ("Fit/256/128", "a perceptron of 128 hidden units, batch 256", False))


def measure(quick):
    cases = CASES[:1] if quick else CASES
    pattern = "|".join(case for case, _, _ in cases)
    text = programs.run([programs.BIN / "keras_fit_bench", "--benchmark_format=json",
                         f"--benchmark_filter=^({pattern})/"], limit=300)
    return figures(json.loads(text)["benchmarks"])


def figures(found):
    """Returns {"CASE wait" and "CASE outside": percent of the time}."""
    result = {}
    for benchmark in found:
        if benchmark.get("error_occurred"):
            raise programs.Failed(f"keras_fit_bench: {benchmark['name']}: {benchmark['error_message']}")
        case = benchmark["name"].removesuffix("/iterations:1")
        result[f"{case} wait"] = benchmark["data_wait_percent"]
        result[f"{case} outside"] = benchmark["outside_percent"]
    return result


def prepare(_, quick):
    fit = Contestant("Cohort", lambda: measure(quick), rounds=2)  # each has the median of seven runs
    lines = []
    for case, name, long in CASES[:1] if quick else CASES:
        lines.append(Line(f"`Fit` of {name}: waits for data", "%", fit, f"{case} wait", most=2))
        lines.append(Line("the same: outside of the bare step", "%", fit, f"{case} outside", most=2 if long else 0))
    return [fit], lines
