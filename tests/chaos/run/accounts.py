"""Counts lost steps from what the workers of a job have printed. There are no processes here."""

import dataclasses


@dataclasses.dataclass
class Losses:
    killed: int = 0  # steps that a killed parameter server had, and its checkpoint has not
    together: int = 0  # steps of a healthy parameter server that went back to the same checkpoint, as the default says
    healthy: int = 0  # other steps of a healthy parameter server: there must be none
    again: int = 0  # additions of a step that the worker had not acknowledged, or that a recovery has repeated

    def add(self, other):
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def jumps(counts):
    """Returns (lost, again) of a series of counters. Each step adds 1, so the counter after a step is 1 more than before.
    A counter that is less has lost steps. One that is more has steps that nobody has acknowledged."""
    lost = again = 0
    last = None
    for count in counts:
        if last is not None:
            lost += max(0, last + 1 - count)
            again += max(0, count - last - 1)
        last = count
    return lost, again


def count_parameter_servers(acks, restarted, mixed):
    """`acks`: a list for each worker that trains; each element has the worker's counters on ps/0, ps/1, ... after a step.
    `restarted`: the numbers of the servers that were started again. `mixed`: the others were to keep their values. They
    cannot if the server of the global step, ps/0, was lost: it knows to which training they belong."""
    losses = Losses()
    keep = mixed and 0 not in restarted
    for steps in acks:
        for server, counts in enumerate(zip(*steps)):
            lost, again = jumps(counts)
            losses.again += again
            if server in restarted:
                losses.killed += lost
            elif restarted and not keep:
                losses.together += lost
            else:
                losses.healthy += lost
    return losses


def count_mirrored(acks):
    """`acks`: a list for each worker, with the number of each step. Steps since the backup are made once more."""
    losses = Losses()
    repeated = [jumps(steps)[0] for steps in acks]
    losses.killed = max(repeated, default=0)
    return losses
