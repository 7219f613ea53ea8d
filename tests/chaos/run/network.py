"""A network for each task of a job: namespaces that a bridge connects, and cuts between them. Nothing of it has a name
outside, and it ends with the processes that hold it."""

import signal
import subprocess

_NOBODY = "02:00:00:00:00:fe"  # an address that no host has: what is sent there is lost


def _holder():
    """Starts a process in a network of its own. It ends with the thread that starts it."""
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo; exec sleep infinity"],
                            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)


def _ip(holder, text):
    for command in text.split("; "):
        done = subprocess.run(["nsenter", "--net", "-t", str(holder.pid), "ip", *command.split()], capture_output=True,
                              text=True)
        if done.returncode != 0:
            raise RuntimeError(f"ip {command}: {done.stderr.strip()}")


class Network:
    """One host for each task. Used by one thread."""

    def __init__(self, tasks):
        self._holders = [_holder() for _ in range(len(tasks) + 1)]
        for holder in self._holders:
            holder.stdout.readline()  # it is in its network now
        switch = self._holders[-1]
        self._hosts = dict(zip(tasks, self._holders))
        self._addresses = {task: f"10.77.0.{number}" for number, task in enumerate(tasks, 1)}
        _ip(switch, "link add name bridge type bridge; link set bridge up")
        for number, (task, host) in enumerate(self._hosts.items()):
            _ip(switch, f"link add name port{number} type veth peer name eth0 netns {host.pid}; "
                        f"link set port{number} master bridge up")
            _ip(host, f"link set lo up; address add {self._addresses[task]}/24 dev eth0; link set eth0 up")

    def hosts(self):
        """Returns {task: [pid of a process in its network, address]}."""
        return {task: [host.pid, self._addresses[task]] for task, host in self._hosts.items()}

    def cut(self, task, out, into):
        """Loses what the task sends (`out`), or what is sent to it (`into`). Nobody is told."""
        for other in self._hosts:
            if other == task:
                continue
            for source, target, wanted in ((task, other, out), (other, task, into)):
                if wanted:
                    _ip(self._hosts[source],
                        f"neigh replace {self._addresses[target]} lladdr {_NOBODY} dev eth0 nud permanent")

    def heal(self):
        for task, host in self._hosts.items():
            for other, address in self._addresses.items():
                if other != task:
                    subprocess.run(["nsenter", "--net", "-t", str(host.pid), "ip", "neigh", "del", address, "dev", "eth0"],
                                   capture_output=True, check=False)

    def close(self):
        for holder in self._holders:
            holder.send_signal(signal.SIGKILL)
            holder.wait()
            holder.stdout.close()
