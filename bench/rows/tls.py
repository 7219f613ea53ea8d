"""The rows that show what TLS costs: the same programs with and without it, by turns."""

from rows import bulk, null_step
from rows.table import Contestant, Line


def prepare(interpreter, quick):
    def bulk_alone(*launch_flags):
        return bulk.ours(quick, "--alone", launch_flags=launch_flags)

    encrypted = Contestant("Cohort with TLS, gRPC alone", lambda: bulk_alone("--tls"))
    plain = Contestant("Cohort without TLS, gRPC alone", bulk_alone)
    steps = Contestant("Cohort with TLS", lambda: null_step.ours(8, quick, "--tls"))
    plain_steps = Contestant("Cohort without TLS", lambda: null_step.ours(8, quick))
    lines = [Line(f"{name}, 1 ps + 1 worker, TLS", "GB/s", encrypted, kind, plain, larger_is_better=True)
             for kind, name in (("pull", "100 MiB of parameters read"), ("push", "100 MiB of gradients applied"))]
    lines.append(Line("null step, 2 ps + 8 workers, TLS", "ms", steps, "ms", plain_steps))
    return [encrypted, plain, steps, plain_steps], lines
