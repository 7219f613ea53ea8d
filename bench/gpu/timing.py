"""Times steps on a GPU and prints one JSON object on each line of stdout. Every peer script of this folder uses it."""

import json
import statistics
import time

SAMPLES = 5


def emit(**fields):
    print(json.dumps(fields), flush=True)


def fail(setting, error):
    """Says that a setting could not be measured. The other settings go on."""
    emit(**setting, error=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300])


def clock_ms(run, wait, steps):
    """Returns SAMPLES times of a step in ms. `run` starts a step, and `wait` waits for the device."""
    times = []
    for _ in range(SAMPLES):
        begin = time.perf_counter()
        for _ in range(steps):
            run()
        wait()
        times.append((time.perf_counter() - begin) / steps * 1e3)
    return times


def summary(times, batch=None):
    """Returns the median, the least and the largest time as fields, and images a second if there is a batch."""
    median = statistics.median(times)
    fields = {"step_ms": round(median, 4), "least_ms": round(min(times), 4), "most_ms": round(max(times), 4)}
    if batch is not None:
        fields["images_per_s"] = round(batch / median * 1e3)
    return fields


def numbers(text):
    """Parses "64,256" for argparse."""
    return [int(word) for word in text.split(",")]


def words(text):
    return text.split(",")
