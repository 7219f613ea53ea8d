"""What a fault does to the checkpoints of a job, and to the disk that they are on."""

import os
import pathlib
import re


def newest(job):
    """Returns the name of the newest checkpoint. The name of a backup stays the same, so its time is added."""
    folder = pathlib.Path(job.disk())
    try:
        if job.mirrored():
            return f"latest.weights.h5 {os.stat(folder / 'latest.weights.h5').st_mtime_ns}"
        match = re.search(r'^model_checkpoint_path: "(.*)"', (folder / "checkpoint").read_text(), re.M)
        return match[1] if match else ""
    except OSError:
        return ""


def damage(job, draw):
    """Cuts the newest checkpoint, or flips a bit of it. Returns what was done."""
    folder = pathlib.Path(job.disk())
    name = newest(job)
    files = [folder / "latest.weights.h5"] if job.mirrored() else sorted(folder.glob(os.path.basename(name) + ".*[0-9x]"))
    if not name or not files:
        raise FileNotFoundError(f"there is no checkpoint in {folder}")
    path = draw.choice(files)
    content = bytearray(path.read_bytes())
    if draw.random() < 0.5:
        path.write_bytes(content[:len(content) // 2])
        return f"half of {path.suffix} is missing"
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return f"one bit of {path.suffix}"


def fill(path):
    with open(path, "wb", buffering=0) as file:
        for size in (65536, 1024, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
