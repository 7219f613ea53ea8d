"""Child processes of the peer drivers: finds free loopback ports, reads JSON events, and ends all children."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

# glibc then keeps freed memory instead of returning it to the kernel, so large tensors land on warm pages.
MALLOC_TUNED = {
    "MALLOC_MMAP_THRESHOLD_": "17179869184",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "67108864",
}


def keep_freed_memory():
    """Starts this program again with MALLOC_TUNED, unless its environment has it already."""
    if any(os.environ.get(key) != value for key, value in MALLOC_TUNED.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **MALLOC_TUNED})


class Failed(Exception):
    """Thrown if a child has ended, or has not done something in time."""


class ReservedAddresses:
    """Reserves loopback addresses until the `with` block ends. The system chooses the ports.

    A task of TensorFlow binds its port seconds after it was started. Until then a socket that is bound but does not listen
    keeps the port, so that the system gives it to no process that asks for a free one. The task can still bind it, because
    both sockets have SO_REUSEADDR, which gRPC's servers set.
    """

    def __init__(self, count):
        self._sockets = [socket.socket() for _ in range(count)]

    def __enter__(self):
        for s in self._sockets:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", 0))
        return ["127.0.0.1:%d" % s.getsockname()[1] for s in self._sockets]

    def __exit__(self, *_):
        for s in self._sockets:
            s.close()


def first_success(attempt, times=3):
    """Returns what attempt() returns. If it throws Failed, says so on stderr and tries again. At last ends the program.

    Each attempt starts a new cluster. The figures of a failed attempt are dropped.
    """
    for number in range(1, times + 1):
        try:
            return attempt()
        except Failed as error:
            print(f"attempt {number} of {times} failed: {error}", file=sys.stderr, flush=True)
            last = error
    raise SystemExit(f"{os.path.basename(sys.argv[0])}: {times} attempts failed, the last one because {last}")


def die_with_parent(number=signal.SIGKILL):
    """Call in a child between fork and exec. The child then gets this signal when the thread that started it ends."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


def emit_event(name, **fields):
    """Sends an event from a child to its driver. `time` is in seconds since the epoch."""
    print(json.dumps({"event": name, "time": time.time(), **fields}), flush=True)


def stop_requested():
    """Returns, in a child, a threading.Event that is set when the driver has called Child.stop, or has ended."""
    event = threading.Event()

    def watch():
        sys.stdin.read()
        event.set()
    threading.Thread(target=watch, daemon=True).start()
    return event


class Child:
    """A script of this folder that this interpreter runs. `events` are the JSON objects that it has printed so far."""

    def __init__(self, name, script, args, env=None):
        self.name, self.events, self.stderr_tail = name, [], []
        self._changed = threading.Condition()
        self.started = time.time()
        self._process = subprocess.Popen(
            [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), script), *map(str, args)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONUNBUFFERED": "1", **(env or {})},
            preexec_fn=die_with_parent, start_new_session=True)
        self._readers = [threading.Thread(target=f, daemon=True) for f in (self._read_events, self._read_stderr)]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self):
        return self._process.pid

    def _read_events(self):
        for line in self._process.stdout:
            if line.startswith("{"):
                with self._changed:
                    self.events.append(json.loads(line))
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _read_stderr(self):
        for line in self._process.stderr:
            self.stderr_tail = self.stderr_tail[-30:] + [line]

    def find(self, event):
        with self._changed:
            return next((e for e in self.events if e.get("event") == event), None)

    def exited(self):
        """Returns the exit status when all output was read, and None before."""
        return None if self._readers[0].is_alive() else self._process.poll()

    def last_words(self):
        """Describes the state of this child for the text of an error."""
        status = self.exited()
        state = "runs" if status is None else f"ended with status {status}"
        said = [e.get("event") for e in self.events]
        return f"{self.name} {state}, events {said}; stderr ends:\n{''.join(self.stderr_tail)}"

    def wait_a_moment(self):
        with self._changed:
            self._changed.wait(0.2)

    def stop(self):
        """Asks a child that watches `stop_requested` to finish and report."""
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass

    def kill(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()


class Children:
    """A `with` block that ends every child that it has started, however it is left, also after SIGTERM or a time limit."""

    def __init__(self, limit_seconds):
        self._children = []
        self._limit = int(limit_seconds)
        self.deadline = time.time() + limit_seconds

    def __enter__(self):
        def stop(number, _):
            if number == signal.SIGALRM:
                raise Failed(f"it ran longer than {self._limit} s")
            raise SystemExit(f"stopped by {signal.Signals(number).name}")
        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGALRM, stop)
        signal.alarm(self._limit + 5)
        return self

    def start(self, *args, **kwargs):
        child = Child(*args, **kwargs)
        self._children.append(child)
        return child

    def wait_for(self, child, event):
        """Waits for the child's first event of that name, and returns it.

        Throws Failed, with the last output of all children, if that child ends without it, if any other child has ended
        with an error (a worker would wait for ever for a parameter server that could not start), or if time is over.
        """
        while True:
            found = child.find(event)
            if found:
                return found
            child.wait_a_moment()
            broken = [c for c in self._children if c.exited() or (c is child and c.exited() is not None)]
            if broken and not child.find(event):
                self._fail(f"{broken[0].name} ended while {child.name} was to come to its event '{event}'")
            if time.time() > self.deadline:
                self._fail(f"{child.name} came to no event '{event}' within {self._limit} s")

    def _fail(self, why):
        raise Failed(why + "\n" + "\n".join(c.last_words() for c in self._children))

    def __exit__(self, *_):
        signal.alarm(0)
        for child in self._children:
            child.kill()

    @property
    def pids(self):
        return [c.pid for c in self._children]
