"""Runs the programs of one measurement, each with a time limit. None is left running. Results are JSON lines."""

import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess

from peers import processes

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("COHORT_BUILD_DIR", ROOT / "build/release")).resolve() / "bin"
PEERS = ROOT / "bench/peers"


class Failed(Exception):
    """Thrown if a program ended with an error, printed something unexpected, or ran longer than its limit."""


class Unavailable(Exception):
    """Thrown if this machine lacks something that a row needs. The row is left out. That is not a failure."""


def end(process):
    """Ends a program and its children. The launcher and the peers' drivers end their children when they get SIGTERM."""
    for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, number)
            process.wait(patience)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


class _Running:
    """A command that was started."""

    def __init__(self, command):
        words = [str(word) for word in command]
        self.name = " ".join(pathlib.Path(w).name if w.startswith("/") else w for w in words)
        try:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, text=True, start_new_session=True,
                                            preexec_fn=lambda: processes.die_with_parent(signal.SIGTERM))
        except OSError as error:
            raise Failed(f"{self.name}: {error.strerror}: {error.filename}; build first: ./dev build") from error

    def output(self, limit):
        """Waits for the end of the command, and returns its output. Called by one thread."""
        try:
            out, err = self.process.communicate(timeout=limit)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{self.name}: ran longer than {limit} s") from error
        finally:
            self.end()
            self.process.stdout.close()
            self.process.stderr.close()
        if self.process.returncode != 0:
            raise Failed(f"{self.name}: ended with {self.process.returncode}:\n{_tail(out)}{_tail(err)}")
        return out

    def end(self):
        end(self.process)


def run(command, limit):
    """Returns the output of a command. Throws Failed with its last lines if it fails, or after `limit` seconds."""
    return run_together([command], limit)[0]


def run_together(commands, limit):
    """Returns the output of each of several commands. The first that fails ends the others. Throws as run."""
    running = []
    with concurrent.futures.ThreadPoolExecutor(len(commands)) as readers:
        try:
            for command in commands:
                running.append(_Running(command))
            outputs = [readers.submit(one.output, limit) for one in running]
            for output in concurrent.futures.as_completed(outputs):
                output.result()
            return [output.result() for output in outputs]
        finally:
            for one in running:
                one.end()


def _tail(text, lines=30):
    return "".join(line + "\n" for line in text.splitlines()[-lines:])


def objects(text):
    """Returns the JSON objects of the lines that have one, without the prefixes of the launcher."""
    return [json.loads(found.group()) for found in re.finditer(r"\{.*\}", text)]


def only(found, what, **fields):
    """Returns the only object with these fields."""
    fitting = [o for o in found if all(o.get(key) == value for key, value in fields.items())]
    if len(fitting) != 1:
        raise Failed(f"{what}: {len(fitting)} results with {fields} among {found}")
    return fitting[0]


def launch(ps, workers, *program, limit, flags=()):
    """Runs one of our programs as a cluster. `flags` are the launcher's. Returns the output of all its tasks."""
    return run([BIN / "cohort", "launch", f"--ps={ps}", f"--workers={workers}", *flags, "--", *program], limit)


def last_line(text):
    return text.strip().splitlines()[-1]
