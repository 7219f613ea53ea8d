"""Injects one fault into a job, and watches what follows: when the fault is named, when training goes on, how it ends."""

import dataclasses
import pathlib
import re
import signal
import time

import accounts
import checkpoints
import processes
import thieves

START_LIMIT = 120.0  # for a job to train
RECOVERY_LIMIT = 120.0  # for a job to train again; if it takes longer, it hangs
END_LIMIT = 120.0  # for a launch to end after SIGTERM
PAUSE = 8.0  # longer than the silence limit, 4.5 s
DISK_FULL = 2.0  # much less than what max_save_failures, 5 by default, lets pass
KILLED_BY_RUN = "killed by the run"
HANG_PATIENCE = 25.0  # an operator waits so long for a line that names a task that hangs


@dataclasses.dataclass
class Result:
    fault: object
    problems: list = dataclasses.field(default_factory=list)  # what must not be; none: the job has survived
    named: float = None  # seconds until somebody else has named the task
    replaced: float = None  # seconds until the launcher said that it starts the task again
    recovered: float = None  # seconds until all trained again
    losses: accounts.Losses = dataclasses.field(default_factory=accounts.Losses)
    hang: bool = False
    orphans: int = 0
    note: str = ""
    log: str = ""


class Failed(Exception):
    """What the fault has broken. The job is not watched any more."""

    def __init__(self, problem, hang=False):
        super().__init__(problem)
        self.hang = hang


def inject(job, reference):
    """Runs the job with its fault from beginning to end. Returns the Result."""
    result = Result(job.fault)
    try:
        job.start()
        _Injection(job, result).run()
        _end(job, result, reference)
    except Failed as failure:
        result.problems.append(str(failure))
        result.hang = failure.hang
    except (OSError, RuntimeError, ValueError) as error:
        result.problems.append(f"the fault could not be injected: {error!r}")
    finally:
        job.close()
    result.losses = job.losses()
    if result.losses.healthy:
        result.problems.append(f"{result.losses.healthy} steps of a healthy parameter server are lost")
    result.log = job.log()
    return result


class _Injection:
    def __init__(self, job, result):
        self.job = job
        self.fault = job.fault
        self.result = result
        self.task = job.fault.task()
        self.at = None  # when the fault began

    def run(self):
        if self.fault.kind == "late":
            return self._late()
        if self.fault.early:
            self.result.note = "early"
            wanted = self.task if self.task != "launcher" else self.job.tasks()[-1]
            processes.wait_until(lambda: self.job.pid(wanted), START_LIMIT, pause=0.005)
            time.sleep(self.fault.moment)
            return getattr(self, "_" + self.fault.kind)()
        if not self.job.wait_for(lambda: self.job.train_after(0.0) or self.job.ended(), START_LIMIT) or self.job.ended():
            raise Failed("the job did not begin to train", hang=not self.job.ended())
        time.sleep(self.fault.moment)
        getattr(self, "_" + self.fault.kind)()

    # ---- the kinds ----

    def _kill(self):
        if self.task == "launcher":
            return self._kill_launcher()
        self._begin()
        self._signal_task(signal.SIGKILL)
        self._await_replacement()

    def _kill_launcher(self):
        draw = self.fault.random()
        pids = self.job.launchers()
        which = draw.choice((0, -1))
        self._note("the outer process" if which == 0 else "the inner process")
        self._begin()
        processes.send(pids[which], signal.SIGKILL)
        self._launch_again()

    def _launch_again(self):
        if self.job.wait(30) is None:
            raise Failed("the launcher did not end after kill -9 of one of its processes", hang=True)
        self._count_orphans()
        again = time.monotonic()
        self.job.start()
        self._await_training(again)

    def _stop(self):
        self._begin()
        self._signal_task(signal.SIGSTOP)
        self._await_replacement()

    def _pause(self):
        self._begin()
        pids = self.job.launchers() if self.task == "launcher" else [self._signal_task(signal.SIGSTOP)]
        for pid in pids:
            processes.send(pid, signal.SIGSTOP)
        time.sleep(PAUSE)
        for pid in pids:
            processes.send(pid, signal.SIGCONT)
        self._await_training(time.monotonic())

    def _late(self):
        self._begin()
        self._await_training(self.at)

    def _cut_one_way(self):
        out = self.fault.random().random() < 0.5
        self._note("what it sends" if out else "what is sent to it")
        self._cut(out, not out)

    def _cut_both_ways(self):
        self._cut(True, True)

    def _cut(self, out, into):
        self._begin()
        self.job.network().cut(self.task, out, into)
        time.sleep(PAUSE)
        self.job.network().heal()
        self._await_training(time.monotonic())

    def _disk(self):
        """Failed saves count once a second, and five of them end the training. So it survives seconds without space."""
        self._begin()
        ballast = pathlib.Path(self.job.disk()) / "ballast"
        for _ in range(2):
            full = time.monotonic()
            checkpoints.fill(ballast)
            if not self.job.mirrored() and not self.job.wait_for(lambda: self.job.train_after(full), RECOVERY_LIMIT):
                raise Failed("no steps while the disk is full", hang=True)
            time.sleep(DISK_FULL)
            ballast.unlink()
            free = time.monotonic()
            self._await_training(free)
            before = checkpoints.newest(self.job)
            if not processes.wait_until(lambda: checkpoints.newest(self.job) != before or self.job.ended(), 30):
                raise Failed("no checkpoint after the disk had space again")

    def _port(self):
        port = int(_address_of(self.job, self.task).rpartition(":")[2])
        with thieves.Thief(port) as thief:
            self._begin()
            self._signal_task(signal.SIGKILL)
            # The killed process holds the port for some moments; then the launcher's reservation alone has it.
            if not thief.try_for(0.5):
                self._note(f"{thief.user} was refused")
            else:
                self._note(f"taken for 3 s by {thief.user}")
                time.sleep(3)
                if thief.another_user:
                    self.result.problems.append(f"another user has taken the port of {self.task}")
        self._await_replacement()

    def _hang(self):
        """A task that hangs in a step is named, and the launcher replaces it. So is one that hangs between two steps of a
        mirrored training, because the others wait for it. Nobody waits for another task that hangs between two steps,
        where its code may do what it likes. So the run plays the operator, who kills that one."""
        self._begin()
        self.job.hang_file.write_text(self.task)
        if not self.job.wait_for(lambda: self.job.find("^hangs$", self.at), RECOVERY_LIMIT):
            raise Failed(f"{self.task} did not hang")
        line = self.job.wait_for(lambda: self._named_by() or self.job.ended(), HANG_PATIENCE)
        if line and line is not True:
            self.result.named = line.time - self.at
        if not self.job.mirrored() and self.job.find(self._started_again(), self.at) is None:
            self._note(KILLED_BY_RUN)
            self._signal_task(signal.SIGKILL)
        self._await_replacement()

    def _torn(self):
        """The chief stands still while its newest checkpoint is damaged, so that it makes no other one before the kill."""
        chief = self.job.pid("worker/0")

        def stopped_between_saves():
            processes.send(chief, signal.SIGSTOP)
            processes.wait_until(lambda: processes.state_of(chief) == "T", 10)
            if checkpoints.newest(self.job):
                return True
            processes.send(chief, signal.SIGCONT)  # it was just giving the newest backup its name
            return False

        if not processes.wait_until(stopped_between_saves, 30):
            raise Failed("the chief made no checkpoint")
        self._note(checkpoints.damage(self.job, self.fault.random()))
        self._begin()
        if self.task == "launcher":
            processes.send(self.job.launchers()[0], signal.SIGKILL)
            self._launch_again()
        else:
            self._signal_task(signal.SIGKILL)
            if self.task != "worker/0":
                processes.send(chief, signal.SIGCONT)
            self._await_replacement()

    # ---- their parts ----

    def _note(self, text):
        self.result.note += (", " if self.result.note else "") + text

    def _begin(self):
        self.at = time.monotonic()

    def _signal_task(self, number):
        pid = self.job.pid(self.task)
        if pid is None:
            raise Failed(f"there was no process of {self.task}: it has ended by itself")
        processes.send(pid, number)
        return pid

    def _await_replacement(self):
        """Waits until the launcher starts the task again, and until all train."""
        again = self._started_again()
        line = self.job.wait_for(lambda: self.job.find(again, self.at) or self.job.ended(), RECOVERY_LIMIT)
        if line is True:
            raise Failed("the launch has ended")
        if not line:
            raise Failed(f"{self.task} was not started again", hang=True)
        self.result.replaced = line.time - self.at
        self._await_training(line.time)

    def _started_again(self):
        return re.escape(self.task) + r" \(pid \d+\) .*starting it again"

    def _await_training(self, start):
        recovered = self.job.wait_for(lambda: self.job.train_after(start) or self.job.ended(), RECOVERY_LIMIT)
        if recovered is True:  # it may have come to its end
            recovered = self.job.train_after(start)
            if not recovered:
                raise Failed("the launch has ended")
        if not recovered:
            raise Failed("no training after the fault", hang=True)
        self._look_for_name()
        self.result.recovered = recovered - self.at

    def _named_by(self):
        """Returns the first line of another task, or of the launcher, that names the task."""
        if self.fault.kind == "disk":
            return self.job.find(r"could not be written|No space left", self.at)
        if self.fault.kind == "torn":
            return self.job.find(r"passing over|passed over", self.at)
        if self.task == "launcher":
            return None
        job, index = self.task.split("/")
        return self.job.find(rf"\b{self.task} \(pid|/job:{job}/(replica:0/)?task:{index}\b", self.at, without=(self.task,))

    def _look_for_name(self):
        line = self._named_by()
        if line is not None and self.result.named is None and self.fault.kind != "hang":
            self.result.named = line.time - self.at

    def _count_orphans(self):
        self.result.orphans += len(self.job.orphans())
        if self.result.orphans:
            self.result.problems.append(f"{self.result.orphans} processes were left")


def _end(job, result, reference):
    """Ends the launch in good order, and looks at what it leaves."""
    before = time.monotonic()
    if not job.mirrored():
        job.terminate()
    code = job.wait(END_LIMIT if not job.mirrored() else RECOVERY_LIMIT)
    if code is None:
        raise Failed("the launch did not end", hang=True)
    left = job.orphans()
    result.orphans += len(left)
    if left:
        result.problems.append(f"{len(left)} processes were left")
    if code != 0:
        raise Failed(f"the launch ended with {code}")
    if job.mirrored():
        for task in job.trainers():
            line = job.find("^end ", without=set(job.tasks()) - {task})
            if line is None or line.text != reference:
                raise Failed(f"{task} ended with other weights: {line.text if line else 'nothing'}; expected {reference}")
        return
    if job.find(r"^end \d+$", before) is None:
        raise Failed("the chief did not end its loop in good order")
    _check_last_checkpoint(job)


def _check_last_checkpoint(job):
    """SIGTERM lets the chief save: nothing of an in-graph training comes after its last step."""
    if job.fault.job != "in_graph" or job.fault.kind == "disk" or job.fault.mixed:
        return
    saved = int(checkpoints.newest(job).rpartition("-")[2])
    last = job.acks("worker/0")[-1][1]
    if saved != last:
        raise Failed(f"the last checkpoint is of step {saved}; the last step was {last}")


def _address_of(job, task):
    environment = processes.environment_of(job.pid(task))
    match = re.search(r'"cluster":(\{.*?\})', environment["TF_CONFIG"])
    name, index = task.split("/")
    return re.findall(r'"([^"]+)"', re.search(rf'"{name}":\[(.*?)\]', match[1])[1])[int(index)]
