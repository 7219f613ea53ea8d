"""Describes the machine and the run for the reader of a table."""

import datetime
import os
import platform
import subprocess

from rows import programs


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=programs.ROOT).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def commit():
    return output_of("git", "describe", "--always", "--dirty") or "?"


def _first_value(path, key):
    with open(path) as f:
        return next((line.split(":", 1)[1].strip() for line in f if line.startswith(key)), "?")


def machine():
    memory = int(_first_value("/proc/meminfo", "MemTotal").split()[0]) / 2**20
    return (f"{os.cpu_count()} cores of {_first_value('/proc/cpuinfo', 'model name')}, {memory:.0f} GiB, kernel "
            f"{platform.release().split('-')[0]}; {output_of('c++', '--version').splitlines()[0]}; gRPC "
            f"{output_of('pkg-config', '--modversion', 'grpc++')}")


def tensorflow(python):
    found = output_of(python, "-c", "import importlib.metadata as m; print(*[d.version for d in m.distributions() "
                                    "if d.name.replace('_', '-') in ('tensorflow', 'tensorflow-cpu')])") or "?"
    return f"tensorflow {found} on Python {output_of(python, '-V').removeprefix('Python ')}"


def other_peers(torch_python, wheel_python=None):
    """Returns the versions of the peers of the rows that compare with PyTorch and with Gloo."""
    def torch(python):
        return output_of(python, "-c", "import torch; print(torch.__version__)") or "not installed"
    gloo = output_of("dpkg-query", "-W", "-f", "${Version}", "libgloo-dev") or "not installed"
    wheel = f", its wheel {torch(wheel_python)}" if wheel_python else ""
    return f"PyTorch {torch(torch_python)}{wheel}; Gloo {gloo}"


def loopback():
    with open("/proc/sys/net/ipv4/tcp_congestion_control") as f:
        return f"loopback TCP ({f.read().strip()})"


def run(args, of_commit, load, seconds):
    """`args`: with quick and rounds."""
    of_date = output_of("git", "show", "-s", "--format=%cs", of_commit.removesuffix("-dirty")) or "?"
    return (f"`./dev bench peers`, commit {of_commit} of {of_date}, run on {datetime.date.today()}. {'A quick look, not a measurement: ' if args.quick else ''}{args.rounds} "
            f"round{'s' * (args.rounds > 1)}, {seconds / 60:.1f} minutes; other processes used {load:.2f} cores on "
            f"average. Median (least to greatest, n = starts of the processes).")
