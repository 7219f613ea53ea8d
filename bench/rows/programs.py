"""Runs the programs of one measurement: each with a time limit, none left behind, and JSON lines as the result."""

import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("COHORT_BUILD_DIR", ROOT / "build/release")).resolve() / "bin"
PEERS = ROOT / "bench/peers"


class Failed(Exception):
    """A program ended with an error, printed something unexpected, or ran longer than its limit."""


def _die_with_parent():
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _end(process):
    """Ends a program and what it started: the launcher and the peers' drivers clean up when asked to end."""
    for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, number)
            process.wait(patience)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def run(command, limit):
    """What a command prints to stdout. Throws Failed with its last words, or after `limit` seconds."""
    words = [str(word) for word in command]
    name = " ".join(pathlib.Path(w).name if w.startswith("/") else w for w in words)
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, start_new_session=True, preexec_fn=_die_with_parent)
    except OSError as error:
        raise Failed(f"{name}: {error.strerror}: {error.filename}; build first: ./dev build") from error
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{name}: ran longer than {limit} s") from error
    finally:
        _end(process)
        process.stdout.close()
        process.stderr.close()
    if process.returncode != 0:
        raise Failed(f"{name}: ended with {process.returncode}:\n{_tail(out)}{_tail(err)}")
    return out


def _tail(text, lines=30):
    return "".join(line + "\n" for line in text.splitlines()[-lines:])


def objects(text):
    """The JSON objects that stand on lines of their own, whatever the launcher puts before them."""
    return [json.loads(found.group()) for found in re.finditer(r"\{.*\}", text)]


def only(found, what, **fields):
    """The one object with these fields."""
    fitting = [o for o in found if all(o.get(key) == value for key, value in fields.items())]
    if len(fitting) != 1:
        raise Failed(f"{what}: {len(fitting)} results with {fields} among {found}")
    return fitting[0]


def launch(ps, workers, *program, limit):
    """Runs a program of ours as a cluster; what all its tasks print."""
    return run([BIN / "cohort", "launch", f"--ps={ps}", f"--workers={workers}", "--", *program], limit)


def last_line(text):
    return text.strip().splitlines()[-1]
