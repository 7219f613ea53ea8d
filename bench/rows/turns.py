"""Lets the sides of a measurement take turns, and measures what other processes used meanwhile."""

import os
import resource
import signal
import sys
import time

from peers import measure as measure_of_peers
from rows import programs


def end_on_signals(name):
    """Ends the program in a way that also ends its children."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda caught, _: sys.exit(f"{name}: stopped by {signal.Signals(caught).name}"))


class ForeignLoad:
    """Returns how many cores other processes (not this one and its children) used on average since the object was made."""

    def __init__(self):
        self._start = self._now()

    @staticmethod
    def _now():
        own = sum(usage.ru_utime + usage.ru_stime for usage in
                  (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))
        return time.monotonic(), measure_of_peers.busy_ticks() / os.sysconf("SC_CLK_TCK"), own

    def cores(self):
        seconds, busy, own = (after - before for before, after in zip(self._start, self._now()))
        return max(0.0, (busy - own) / max(seconds, 1e-3))


def progress(text):
    print(f"== {text}", file=sys.stderr, flush=True)


def measure(name, contestants, rounds):
    """Lets the sides take turns. A side that fails takes no further turns."""
    for i in range(rounds):
        for side in contestants if i % 2 == 0 else reversed(contestants):
            if side.failures or i >= (side.rounds or rounds):
                continue
            progress(f"{name}, round {i + 1} of {rounds}: {side.name}")
            try:
                side.add(side.measure())
            # If a program prints something unexpected, this side fails, and not the whole table.
            except (programs.Failed, programs.Unavailable, ValueError, KeyError) as error:
                side.failures.append(f"{name}, {side.name}: {error!r}" if isinstance(error, (ValueError, KeyError))
                                     else f"{name}, {side.name}: {error}")
                progress(f"failed: {side.failures[-1]}")
