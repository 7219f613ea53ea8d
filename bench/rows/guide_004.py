"""The row of guide-004's tables: a step of one device and of two machines, with 256 and with 512 images in a batch. Each
machine is a network of its own with the guide's address, and has one core. As the guide's containers, they are on one
host, and nothing limits the link between them."""

import re

from rows import programs, slow_link
from rows.table import Contestant, Line

ADDRESSES = ("172.17.0.2", "172.17.0.3")
STEPS = {256: 214, 512: 107}  # of the guide's epoch


def step_ms(text):
    """Returns the milliseconds of a step in the last epoch."""
    found = re.findall(r"epoch \d+: ([0-9.]+) ms a step", text)
    if not found:
        raise programs.Failed(f"guide_004_fashion_mnist: expected the time of a step; got\n{text[-2000:]}")
    return float(found[-1])


def command(program, core, batch, quick):
    size = ["--epochs=2", "--steps_per_epoch=1"] if quick else ["--epochs=3", "--steps_per_epoch=5"]
    return ["env", "COHORT_ALLOW_INSECURE=1", "COHORT_TOKEN=the-token-of-the-benchmarks", "OMP_NUM_THREADS=1", "taskset",
            "-c", core, programs.BIN / "guide_004_fashion_mnist", f"--program={program}", f"--batch_size={batch}", *size,
            "--threads=1", "--max_images=4096", "--step_times"]


def one(batch, quick):
    return {f"{batch}": step_ms(programs.run(command("baseline", 0, batch, quick), limit=120))}


def two(batch, quick):
    with slow_link.SlowLink(rate=None, addresses=ADDRESSES) as link:
        texts = programs.run_together([link.command(host, command(f"two_machine_worker0{host + 1}", host, batch, quick))
                                       for host in range(2)], limit=180)
    return {f"{batch}": step_ms(texts[0])}  # the chief prints


def prepare(_, quick):
    with slow_link.SlowLink(rate=None, addresses=ADDRESSES):
        pass  # throws Unavailable
    device = Contestant("one device, 1 core", lambda: {**one(256, quick), **one(512, quick)})
    machines = Contestant("two machines, 1 core each", lambda: {**two(256, quick), **two(512, quick)})
    return [machines, device], [
        Line(f"guide-004 on two machines, batch {batch}: a step (an epoch of the guide has {steps})", "ms", machines,
             f"{batch}", device) for batch, steps in STEPS.items()]
