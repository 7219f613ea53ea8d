"""Lets the sides of a measurement take turns, and watches whether anything else ran meanwhile."""

import os
import resource
import signal
import sys
import time

from peers import measure as measure_of_peers
from rows import programs


def end_on_signals(name):
    """So that what was started is ended too."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda caught, _: sys.exit(f"{name}: stopped by {signal.Signals(caught).name}"))


class ForeignLoad:
    """How many cores processes other than this one and what it ran used on average since this was made."""

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
    """Lets the sides take turns. One that fails sits out the rest."""
    for i in range(rounds):
        for side in contestants if i % 2 == 0 else reversed(contestants):
            if side.failures or i >= (side.rounds or rounds):
                continue
            progress(f"{name}, round {i + 1} of {rounds}: {side.name}")
            try:
                side.add(side.measure())
            # What a program printed may not be what was expected: one side fails then, not the whole table.
            except (programs.Failed, programs.Unavailable, ValueError, KeyError) as error:
                side.failures.append(f"{name}, {side.name}: {error!r}" if isinstance(error, (ValueError, KeyError))
                                     else f"{name}, {side.name}: {error}")
                progress(f"failed: {side.failures[-1]}")
