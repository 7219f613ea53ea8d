"""The processes of a job, found in /proc by a mark in their environment."""

import os
import pathlib
import re
import signal
import time

MARK = "CHAOS_JOB"
_TASK = re.compile(rb'"task":\{"type":"(\w+)","index":(\d+)\}')


def _environment(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def environment_of(pid):
    """Returns the environment with which the process was started."""
    words = _environment(pid).decode(errors="replace").split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


def state_of(pid):
    """Returns the state of the process ("T": stopped, "Z": ended and not waited for), or "" if there is none."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def marked(mark):
    """Returns {pid: task name, or "" for a process that is no task} of all living processes with this mark."""
    wanted = f"\0{MARK}={mark}\0".encode()
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        environment = b"\0" + _environment(entry)
        if wanted not in environment or state_of(entry) in ("", "Z", "X"):
            continue
        task = _TASK.search(environment)
        found[int(entry)] = f"{task[1].decode()}/{task[2].decode()}" if task else ""
    return found


def wait_until(condition, seconds, pause=0.05):
    """Waits until condition() is true, at most so long. Returns its last value. For what only /proc shows."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() >= end:
            return value
        time.sleep(pause)


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def kill_marked(mark):
    """Kills all processes with this mark. Returns when they have ended."""

    def none_left():
        left = marked(mark)
        for pid in left:
            send(pid, signal.SIGKILL)
        return not left

    wait_until(none_left, 30)
