"""TensorFlow 2.15, the last one with Keras 2 and Estimator: the peer of the rows of the guides' programs."""

import os

from rows import programs

NAME = "TensorFlow 2.15.1"


def python():
    """Returns an interpreter that has it. COHORT_TF215_PYTHON names one; otherwise venv.sh makes it."""
    return os.environ.get("COHORT_TF215_PYTHON") or programs.last_line(
        programs.run([programs.PEERS / "venv.sh", "tf215"], limit=900))


def only_result(script, *arguments, limit=180):
    """Returns the one JSON object that a script of bench/peers prints."""
    text = programs.run([python(), programs.PEERS / script, *arguments], limit)
    return programs.only(programs.objects(text), script)
