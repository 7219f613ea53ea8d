"""The output of a command as a picture of a terminal."""

import re

from drawing import MONO, Picture

COLUMNS, SIZE, LEADING, MARGIN = 122, 12, 16.5, 18
CHARACTER = SIZE * 0.602  # of DejaVu Sans Mono
# The first that fits colours a line.
COLOURS = [(r"^\$ ", "#7ee787"), (r"^(===|---)", "#79c0ff"), (r"^ +\.\.\. ", "#8b949e"), (r"test accuracy", "#7ee787"),
           (r"^\[ps/", "#d2a8ff"), (r"^\[worker/0", "#e6edf3"), (r"^\[worker/1", "#ffdfb6")]


LAYERS = re.compile(r"\[worker/\d+\] (_{9}|={9}|.* \(None, |Layer \(type\)|Model: |.*[Pp]arams: )")
LOG = re.compile(r"\[\w+/\d+\] \d{4}-\d\d-\d\d ")


def shown(text, root):
    """The lines of `text` for a reader of another machine: the checkout is ~/cohort. The table of layers is left out, and so
    is the log of all trainings but the first; a line says so."""
    lines, left_out, trainings = [], {}, 0
    for line in text.replace(root, "~/cohort").split("\n") + [""]:
        line = line.split("\r")[-1].rstrip()
        trainings += line.startswith("===")
        what = "the layers of the model" if LAYERS.match(line + " ") else "log" if LOG.match(line) and trainings > 1 else None
        if what:
            left_out[what] = left_out.get(what, 0) + 1
            continue
        lines += [f"    ... {count} lines: {what}" for what, count in left_out.items()]
        left_out = {}
        lines.append(line if len(line) <= COLUMNS else line[:COLUMNS - 3] + "...")
    while lines and not lines[-1]:
        lines.pop()
    return lines


def picture(command, text, root):
    lines = [f"$ {command}"] + shown(text, root)
    width, height = int(COLUMNS * CHARACTER + 2 * MARGIN), int(len(lines) * LEADING + 2 * MARGIN + 20)
    drawn = Picture(width, height, f"The output of {command}", ground="#0d1117")
    for i, color in enumerate(["#ff5f56", "#ffbd2e", "#27c93f"]):
        drawn.shapes.append(f'<circle cx="{MARGIN + 4 + 18 * i}" cy="17" r="5.5" fill="{color}"/>')
    for i, line in enumerate(lines):
        color = next((color for pattern, color in COLOURS if re.search(pattern, line)), "#e6edf3")
        if line:
            drawn.text(MARGIN, round(MARGIN + 28 + i * LEADING, 1), line, size=SIZE, color=color, font=MONO)
    return drawn
