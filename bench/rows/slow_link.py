"""Makes two networks on this machine, like those of two hosts, and joins them by one link of a given speed."""

import os
import subprocess

from rows import programs

ADDRESSES = ("192.0.2.1", "192.0.2.2")  # of the two hosts; RFC 5737 reserves them for documentation
DEVICE = "link0"  # in both networks


class SlowLink:
    """The link exists during the `with` block. The networks end with it, and with this process.

    Each end sends at most `rate` (a token bucket, which also counts headers); None: as fast as the machine can. Throws
    Unavailable if this user may not make networks.
    """

    def __init__(self, rate="1gbit", addresses=ADDRESSES):
        self._rate, self._addresses = rate, addresses
        self._hosts = []  # processes that do nothing; each keeps a network alive

    def command(self, host, words):
        """Runs `words` on host 0 or 1."""
        into_user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", f"--target={self._hosts[host].pid}", "--net", *into_user, "--", *words]

    def __enter__(self):
        as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        try:
            self._start(["unshare", *as_root, "--net"])
            self._start([*self.command(0, []), "unshare", "--net"])
            self._do(0, f"ip link add {DEVICE} type veth peer name {DEVICE} netns {self._hosts[1].pid}")
            limit = f"; tc qdisc add dev {DEVICE} root tbf rate {self._rate} burst 256kb latency 50ms" if self._rate else ""
            for host, address in enumerate(self._addresses):
                self._do(host, f"ip link set lo up; ip address add {address}/24 dev {DEVICE}; "
                               f"ip link set {DEVICE} up{limit}")
        except (programs.Failed, OSError) as error:
            self.__exit__()
            why = programs.last_line(str(error))
            raise programs.Unavailable(f"this user may not make networks with a slow link: {why}") from error
        return self

    def __exit__(self, *_):
        for host in self._hosts:
            programs.end(host)
            host.stdin.close()
            host.stdout.close()

    def _start(self, words):
        """Starts a process in a network that `words` make. It waits until this process ends. Returns when it is there."""
        host = subprocess.Popen([*words, "sh", "-c", "echo ready; exec cat"], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        self._hosts.append(host)
        if host.stdout.readline() != "ready\n":
            raise programs.Failed(f"{words[-2]} --net: ended with {host.wait(10)}")

    def _do(self, host, text):
        programs.run(self.command(host, ["sh", "-ec", f"PATH=$PATH:/usr/sbin:/sbin; {text}"]), limit=20)
