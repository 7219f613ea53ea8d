"""A process that tries to take the port of a task, as another user if this process may become one."""

import os
import select
import socket
import subprocess
import sys
import time

NOBODY = 65534
START_LIMIT = 60.0  # for the process to begin


class Thief:
    """Use it in a `with` statement, which starts the process and ends it. It then waits for the call of try_for."""

    def __init__(self, port):
        self._port = port
        self.another_user = os.geteuid() == 0
        self.user = "nobody" if self.another_user else "the same user"

    def __enter__(self):
        command = [sys.executable, "-B", __file__, str(self._port)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._answer(START_LIMIT)
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()

    def try_for(self, seconds):
        """Tries to listen, again and again. Returns True if that works. The process then holds the port until its end."""
        self._process.stdin.write(f"{seconds}\n".encode())
        self._process.stdin.flush()
        return self._answer(seconds + START_LIMIT) == "taken"

    def _answer(self, seconds):
        readable, _, _ = select.select([self._process.stdout], [], [], seconds)
        answer = self._process.stdout.readline().decode().strip() if readable else ""
        if not answer:
            raise RuntimeError("the process that tries to take the port does not answer")
        return answer


def _listen(port, seconds):
    """Returns a socket that listens, or None."""
    end = time.monotonic() + seconds
    while True:
        for host in ("127.0.0.1", "0.0.0.0"):
            thief = socket.socket()
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            try:
                thief.bind((host, port))
                thief.listen(100)
                return thief
            except OSError:
                thief.close()
        if time.monotonic() >= end:
            return None
        time.sleep(0.001)


if __name__ == "__main__":
    if os.geteuid() == 0:  # only now: another user may not be allowed to start this interpreter
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    print("ready", flush=True)
    taken = _listen(int(sys.argv[1]), float(sys.stdin.readline()))
    print("taken" if taken else "refused", flush=True)
    sys.stdin.read()
