"""A cluster with two parameter servers and two workers, and what a step of worker 0 sends. The names are those of classes."""

from drawing import BLUE, GREEN, GREY, INK, MONO, ORANGE, Picture


def task(drawn, x, y, name, color, parts, chief=False):
    drawn.box(x, y, 330, 44 + 26 * len(parts), stroke=color, fill="#f6f8fa")
    drawn.text(x + 14, y + 25, name, size=14, color=color, font=MONO, bold=True)
    if chief:
        drawn.text(x + 316, y + 25, "the chief", size=12, color=color, anchor="end")
    for i, part in enumerate(parts):
        drawn.text(x + 14, y + 52 + 26 * i, part, size=12.5)


def picture():
    drawn = Picture(960, 560, "A cluster of two parameter servers and two workers, and the messages of a step of worker 0")
    drawn.text(480, 36, "One step of worker 0: between-graph, asynchronous", size=15, anchor="middle", bold=True)
    for i, (x, name) in enumerate([(60, "/job:ps/task:0"), (570, "/job:ps/task:1")]):
        task(drawn, x, 60, name, ORANGE, ["Server: a partition of each worker's graph",
                                          f"CPU:0: {'the variable w' if i == 0 else 'the variable b'} and its updates"])
    for x, name, chief in [(60, "/job:worker/task:0", True), (570, "/job:worker/task:1", False)]:
        last = "Supervisor: checkpoints, event files" if chief else "Supervisor: waits for initial values"
        task(drawn, x, 330, name, BLUE, ["Session: a graph of its own", "Master: prepares once, starts each step",
                                         "CPU:0: forward and backward pass", last], chief)
    steps = [(110, "1", True, INK), (170, "2", False, GREEN), (230, "3", True, GREEN), (290, "4", False, INK)]
    for x, number, up, color in steps:
        drawn.arrow([(x, 328), (x, 158)] if up else [(x, 158), (x, 328)], color)
        drawn.text(x + 7, 240, number, size=15, color=color, bold=True)
    # The other server takes part in the same step.
    drawn.arrow([(392, 352), (480, 352), (480, 100), (566, 100)])
    drawn.text(470, 240, "1, 3", size=15, anchor="end", bold=True)
    drawn.arrow([(568, 126), (498, 126), (498, 378), (394, 378)])
    drawn.text(508, 240, "2, 4", size=15, bold=True)
    drawn.arrow([(600, 328), (600, 158)], GREY, dashed=True)
    drawn.text(612, 234, "Worker 1 takes its own steps", size=13, color=GREY)
    drawn.text(612, 253, "and waits for nobody.", size=13, color=GREY)
    legend = ["1  the Master starts the step on each task that has a partition", "2  values of the variables, through the Transport",
              "3  gradients; each server applies its set of updates as one", "4  the partition is done; Session::Run returns"]
    for i, line in enumerate(legend):
        drawn.text(60 + 450 * (i // 2), 510 + 22 * (i % 2), line, size=13, color=GREEN if "variables" in line or "gradients" in line else INK)
    return drawn
