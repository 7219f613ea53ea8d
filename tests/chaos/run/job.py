"""One job under `cohort launch`: its processes, its folder, and what it prints."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid

import accounts
import network
import processes

_PREFIX = re.compile(r"^\[(\w+/\d+)\] (.*)$")
SPREAD = 5  # so many steps after the fault show that a worker trains again
WORKERS = ("worker/0", "worker/1")
SERVERS = ("ps/0", "ps/1")
RESTARTS = 1000
HANG_LIMIT = 6  # seconds without progress after which a mirrored training fails because a task hangs


class Line:
    """A line of the output: when it came, the task that has printed it ("launcher"), and its text."""

    def __init__(self, text):
        self.time = time.monotonic()
        match = _PREFIX.match(text)
        self.task, self.text = (match[1], match[2]) if match else ("launcher", text)


class Job:
    """Runs a job of the kind that a fault names. The thread that starts it has to end it (close)."""

    def __init__(self, fault, programs, folder, unhealthy_after):
        self.fault = fault
        self.folder = folder
        self.mark = uuid.uuid4().hex
        self.backups = folder / "disk"
        self.hang_file = folder / "hang"
        self._programs = programs
        self._unhealthy_after = unhealthy_after
        self._network = None
        self._process = None
        self._readers = []
        self._changed = threading.Condition()
        self.lines = []
        self._new_life = 0  # the number of lines before the latest launch
        self._acks = {}  # {task: [(time, [number, ...]), ...]}
        os.makedirs(self.backups)

    # ---- what the job is ----

    def mirrored(self):
        return self.fault.job == "mirrored"

    def tasks(self):
        return WORKERS if self.mirrored() else (*SERVERS, *WORKERS)

    def trainers(self):
        """Returns the tasks that print their steps."""
        return WORKERS[:1] if self.fault.job == "in_graph" else WORKERS

    def _state(self):
        state = {}
        if self.fault.kind == "late":
            state["late"] = [self.fault.task(), self.late_seconds()]
        if self.fault.kind.startswith("cut_"):
            self._network = network.Network(self.tasks())
            state["hosts"] = self._network.hosts()
        return state

    def late_seconds(self):
        return 2 + 4 * self.fault.moment

    def network(self):
        return self._network

    def _program(self):
        if self.mirrored():
            return [self._programs / "fit_task", "tensors", self.backups, "2"]
        arguments = [f"--dir={self.backups}", "--save_secs=0.5", "--pause_ms=20", f"--hang_file={self.hang_file}"]
        if self.fault.job == "in_graph":
            arguments.append("--in_graph=1")
        if self.fault.mixed:
            arguments.append("--mixed=1")
        return [self._programs / "chaos_job", *arguments]

    def _command(self):
        command = [self._programs / "cohort", "launch", "--workers=2", f"--restart={RESTARTS}"]
        if not self.mirrored():
            command.append("--ps=2")
        if self._unhealthy_after is not None:
            command.append(f"--unhealthy_after={self._unhealthy_after}")
        command.append("--")
        state = self._state()
        if state:
            path = self.folder / "state.json"
            path.write_text(json.dumps(state))
            command += [sys.executable, "-B", "-I", os.path.join(os.path.dirname(__file__), "task.py"), path]
        command += self._program()
        if self.fault.kind == "disk":
            mount = 'mount -t tmpfs -o size=2m none "$0" && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", mount, self.backups, *command]
        return ["setpriv", "--pdeathsig", "KILL", *map(str, command)]

    # ---- its life ----

    def start(self):
        if self._network is not None:
            self._network.close()
        environment = dict(os.environ, COHORT_TOKEN=self.mark, FIT_PAUSE_MS="50", FIT_EPOCHS="40",
                           FIT_HANG_FILE=str(self.hang_file))
        environment[processes.MARK] = self.mark
        if self.mirrored() and self.fault.kind == "hang":
            environment["COHORT_PROGRESS_LIMIT"] = str(HANG_LIMIT)
        for name in ("TF_CONFIG", "COHORT_TOKEN_FILE", "COHORT_RUN_ID"):
            environment.pop(name, None)
        with self._changed:
            self._new_life = len(self.lines)
        self._process = subprocess.Popen(self._command(), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True, errors="replace")
        for stream in (self._process.stdout, self._process.stderr):
            reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
            reader.start()
            self._readers.append(reader)

    def _read(self, stream):
        with stream:
            for text in stream:
                line = Line(text.rstrip("\n"))
                with self._changed:
                    self.lines.append(line)
                    if line.text.startswith("acked "):
                        numbers = [int(word) for word in line.text.split()[1:]]
                        self._acks.setdefault(line.task, []).append((line.time, numbers))
                    self._changed.notify_all()

    def wait_for(self, condition, seconds):
        """Waits until condition() is true; it is asked after each line. Returns its last value."""
        end = time.monotonic() + seconds
        with self._changed:
            while True:
                value = condition()
                left = end - time.monotonic()
                if value or left <= 0:
                    return value
                self._changed.wait(min(left, 0.5))

    def find(self, pattern, after=0.0, without=(), life=False):
        """Returns the first line that has the pattern, is not older than `after`, and is not of a task in `without`."""
        regex = re.compile(pattern)
        with self._changed:
            for line in self.lines[self._new_life if life else 0:]:
                if line.time >= after and line.task not in without and regex.search(line.text):
                    return line
        return None

    def acks(self, task, after=0.0):
        with self._changed:
            return [numbers for at, numbers in self._acks.get(task, ()) if at >= after]

    def train_after(self, start, tasks=None):
        """Returns the time at which each of the tasks has made enough steps after `start`, or None."""
        times = []
        with self._changed:
            for task in tasks or self.trainers():
                steps = [at for at, _ in self._acks.get(task, ()) if at >= start]
                if len(steps) < SPREAD:
                    return None
                times.append(steps[SPREAD - 1])
        return max(times)

    def pid(self, task):
        """Returns the process of the task, or None."""
        return next((pid for pid, name in processes.marked(self.mark).items() if name == task), None)

    def launchers(self):
        """Returns the launcher's two processes, the outer one first."""
        return sorted((pid for pid, name in processes.marked(self.mark).items() if not name),
                      key=lambda pid: pid != self._process.pid)

    def disk(self):
        """Returns the path of the backups as this process sees it."""
        return f"/proc/{self._process.pid}/root{self.backups}" if self.fault.kind == "disk" else str(self.backups)

    def terminate(self):
        processes.send(self._process.pid, signal.SIGTERM)

    def wait(self, seconds):
        """Returns the exit code of the launcher, or None if it has not ended in time. Then all its output has been read."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        for reader in self._readers:
            reader.join(10)
        return code

    def ended(self):
        return self._process.poll() is not None

    def orphans(self):
        """Returns the processes that are left some seconds after the end of the launcher."""
        processes.wait_until(lambda: not processes.marked(self.mark), 5)
        return processes.marked(self.mark)

    def close(self):
        processes.kill_marked(self.mark)
        if self._process is not None:
            self._process.wait()
            for reader in self._readers:
                reader.join(10)
        if self._network is not None:
            self._network.close()

    # ---- what it has lost ----

    def restarted_servers(self):
        """Returns the numbers of the parameter servers of which there was more than one process."""
        with self._changed:
            starts = [line.task for line in self.lines if line.text.startswith("serving pid")]
        return {number for number, task in enumerate(SERVERS) if starts.count(task) > 1}

    def losses(self):
        if self.mirrored():
            return accounts.count_mirrored([[numbers[0] for numbers in self.acks(task)] for task in WORKERS])
        acks = [[numbers[1:] for numbers in self.acks(task)] for task in self.trainers()]
        return accounts.count_parameter_servers(acks, self.restarted_servers(), self.fault.mixed)

    def log(self):
        with self._changed:
            begin = self.lines[0].time if self.lines else 0
            return "".join(f"{line.time - begin:8.3f} [{line.task}] {line.text}\n" for line in self.lines)
