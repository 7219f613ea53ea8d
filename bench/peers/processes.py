"""Child processes of the peer drivers: free loopback ports, JSON events from stdout, and no child left behind."""

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


def free_addresses(count):
    """`count` different 127.0.0.1:port addresses that nothing listened on a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return ["127.0.0.1:%d" % s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def _die_with_parent():
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def emit_event(name, **fields):
    """What a child tells its driver; `time` is in seconds since the epoch."""
    print(json.dumps({"event": name, "time": time.time(), **fields}), flush=True)


def stop_requested():
    """For a child: a threading.Event that is set once the driver has called Child.stop, or has ended."""
    event = threading.Event()

    def watch():
        sys.stdin.read()
        event.set()
    threading.Thread(target=watch, daemon=True).start()
    return event


class Child:
    """A script in this folder run by this interpreter; `events` are the JSON objects it has printed so far."""

    def __init__(self, name, script, args, env=None):
        self.name, self.events, self.stderr_tail = name, [], []
        self._changed = threading.Condition()
        self.started = time.time()
        self._process = subprocess.Popen(
            [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), script), *map(str, args)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONUNBUFFERED": "1", **(env or {})},
            preexec_fn=_die_with_parent, start_new_session=True)
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

    def wait_for(self, event, deadline):
        """The first event of that name; raises when the child ends without it or the deadline passes."""
        while True:
            with self._changed:
                for e in self.events:
                    if e.get("event") == event:
                        return e
                self._changed.wait(0.2)
            exited = self._process.poll() is not None and not self._readers[0].is_alive()
            if exited and not any(e.get("event") == event for e in self.events):
                raise SystemExit(f"{self.name} ended with status {self._process.returncode} before its event "
                                 f"'{event}'; its last words:\n{''.join(self.stderr_tail)}")
            if time.time() > deadline:
                raise SystemExit(f"{self.name}: no event '{event}' within {time.time() - self.started:.0f} s of its "
                                 f"start; its last words:\n{''.join(self.stderr_tail)}")

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
    """A `with` block that ends every child it started, however it is left; SIGTERM and a time limit included."""

    def __init__(self, limit_seconds):
        self._children = []
        self._limit = int(limit_seconds)
        self.deadline = time.time() + limit_seconds

    def __enter__(self):
        def stop(number, _):
            raise SystemExit(f"stopped by {signal.Signals(number).name}"
                             + (f": ran longer than {self._limit} s" if number == signal.SIGALRM else ""))
        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGALRM, stop)
        signal.alarm(self._limit + 5)
        return self

    def start(self, *args, **kwargs):
        child = Child(*args, **kwargs)
        self._children.append(child)
        return child

    def __exit__(self, *_):
        signal.alarm(0)
        for child in self._children:
            child.kill()

    @property
    def pids(self):
        return [c.pid for c in self._children]
