"""The rows of two processes that train the guide network together, on loopback and through a link of 1 Gbit/s. Each has
a core and 128 images in each step. They are compared with twice one process of ours, and with PyTorch's
DistributedDataParallel over Gloo."""

import json
import pathlib
import tempfile

from rows import guide_network, programs, slow_link
from rows.table import Contestant, Line

BATCH = 128  # images of a replica
BITS_PER_S = 1e9
NAME = f"the guide network in `Fit`, 2 processes x 1 core, batch {BATCH} each"


def fit(quick, *flags, steps=16, pin=True):
    """Returns the command that trains. If it is pinned, each process runs on one core."""
    counts = ["--steps=3", "--warmup=1"] if quick else [f"--steps={steps}", "--warmup=3"]
    return [programs.BIN / "guide_network_fit", *(["--pin"] if pin else []), *counts, *flags]


def figures(text, processes, replicas):
    """Returns the images per second of the slower process. Together the processes do the whole batch."""
    found = [o for o in programs.objects(text) if o.get("bench") == "guide_network_fit"]
    if len(found) != processes or any(o["replicas"] != replicas for o in found):
        raise programs.Failed(f"guide_network_fit: expected figures of {processes} processes with {replicas} replicas "
                              f"in all; got\n{text}")
    return min(found, key=lambda o: o["images_per_s"])


def single(quick):
    return figures(programs.run(fit(quick, f"--batch={BATCH}"), limit=120), 1, 1)


def two(quick):
    text = programs.launch(0, 2, *fit(quick, "--strategy=multi_worker", f"--batch={2 * BATCH}"), limit=180)
    return figures(text, 2, 2)


def two_hosts(link, quick):
    """Returns the same figures with the processes on both ends of a link."""
    cluster = {"worker": [f"{address}:2222" for address in slow_link.ADDRESSES]}
    commands = []
    for index in range(2):
        place = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
        commands.append(link.command(index, ["env", f"TF_CONFIG={place}", "OMP_NUM_THREADS=1", *fit(
            quick, "--strategy=multi_worker", f"--batch={2 * BATCH}", "--allow_insecure")]))
    return figures("".join(programs.run_together(commands, limit=180)), 2, 2)


def ddp(quick, setting, link=None):
    """Returns the figures of the slower of two ranks."""
    with tempfile.TemporaryDirectory() as folder:
        commands = []
        for rank in range(2):
            words = [guide_network.TORCH_PYTHON, programs.PEERS / "torch_guide_network.py", "--batch", BATCH, "--world",
                     2, "--rank", rank, "--store", pathlib.Path(folder) / "store", "--pin", *setting,
                     *(("--steps", 3, "--warmup", 1) if quick else ("--steps", 16, "--warmup", 3))]
            commands.append(link.command(rank, ["env", f"GLOO_SOCKET_IFNAME={slow_link.DEVICE}", *words])
                            if link else words)
        found = programs.objects("".join(programs.run_together(commands, limit=300)))
    if len(found) != 2:
        raise programs.Failed(f"torch_guide_network.py: {len(found)} of 2 ranks said how fast they were")
    return {"images_per_s": min(o["images_per_s"] for o in found)}


def payload(link, quick):
    """Returns the bytes per second that plain TCP gets through a link, in the slower direction."""
    seconds = ["--seconds", 0.5 if quick else 2]
    sides = (("--listen", slow_link.ADDRESSES[0]), ("--connect", slow_link.ADDRESSES[0]))
    program = ["python3", "-B", programs.PEERS / "tcp_rate.py"]
    texts = programs.run_together([link.command(host, [*program, *side, *seconds]) for host, side in enumerate(sides)],
                                  limit=60)
    return min(o["bytes_per_s"] for o in programs.objects("".join(texts)))


def limits(one, bytes_per_s):
    """Returns limits of the images per second of two processes: by computing, by the link's speed, and by the rate of TCP.
    In each step each of n members sends and receives 2 (n - 1) / n of the gradients' bytes. Also returns the smaller of the
    first two limits."""
    sent = 2 * (2 - 1) / 2 * one["gradient_bytes"]
    compute, wire = 2 * one["images_per_s"], BITS_PER_S / 8 / sent * 2 * BATCH
    return {"compute": compute, "link": wire, "payload": bytes_per_s / sent * 2 * BATCH, "least": min(compute, wire),
            "sent_mb": sent / 1e6, "payload_mbit": bytes_per_s * 8 / 1e6}


def prepare(_, quick):
    mine = Contestant("Cohort", lambda: two(quick))
    alone = Contestant("twice one process of ours",
                       lambda: {"images_per_s": 2 * single(quick)["images_per_s"]})
    default = Contestant("PyTorch DDP over Gloo, channels_last, default malloc",
                         lambda: ddp(quick, ["--channels_last"]), rounds=1 if quick else 2)
    tuned = Contestant("PyTorch DDP over Gloo, channels_last, malloc tuned",
                       lambda: ddp(quick, ["--channels_last", "--malloc_tuned"]))
    lines = [Line(NAME, "images/s", mine, "images_per_s", other, larger_is_better=True, least_ratio=least)
             for other, least in ((alone, 0.95), (default, 1), (tuned, 1))]
    lines.append(Line("the same, share of the time that waits for data", "%", mine, "data_wait_percent", most=2))
    return [mine, alone, default, tuned], lines


def prepare_slow(_, quick):
    def on_link(measure):
        with slow_link.SlowLink() as link:
            return measure(link)

    def limits_now():
        return limits(single(quick), on_link(lambda link: payload(link, quick)))

    on_link(lambda link: None)  # throws Unavailable
    mine = Contestant("Cohort", lambda: on_link(lambda link: two_hosts(link, quick)))
    limit = Contestant("the smaller limit", limits_now)
    tuned = Contestant("PyTorch DDP over Gloo, channels_last, malloc tuned",
                       lambda: on_link(lambda link: ddp(quick, ["--channels_last", "--malloc_tuned"], link)))

    def line(what, peer, figure="images_per_s", least=0):
        return Line(what, "images/s", mine, "images_per_s", peer, figure, larger_is_better=True, least_ratio=least)

    name = f"{NAME}, through 1 Gbit/s"
    lines = [line(name, limit, "least", 0.9),
             line("the same", limit.also("computing: twice one process of ours"), "compute"),
             line("the same", limit.also("the link: 10^9 bit/s over the bytes sent in a step"), "link"),
             line("the same", limit.also("the link, by what TCP brings through it"), "payload"),
             line("the same", tuned, least=1),
             Line("sent by each process in a step", "MB", limit, "sent_mb"),
             Line("what TCP brings through the link, both ways at once", "Mbit/s", limit, "payload_mbit")]
    return [mine, limit, tuned], lines
