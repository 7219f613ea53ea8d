"""Learning curves out of the event files that a training wrote, as TensorBoard reads them."""

import math

from drawing import BLUE, GREY, ORANGE, Picture

CHART = (430, 250)
GAP = 70


def read(logdir, run, tag):
    """[(epoch from 1, value)] of a scalar. Raises KeyError with what there is if the run has not logged it."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    events = EventAccumulator(f"{logdir}/{run}", size_guidance={"scalars": 0})
    events.Reload()
    tags = events.Tags()["scalars"]
    if tag not in tags:
        raise KeyError(f"the run '{run}' of {logdir} has no scalar '{tag}', but {tags}")
    return [(event.step + 1, event.value) for event in events.Scalars(tag)]


def chart(drawn, left, title, curves):
    """One chart: `curves` is [(name, color, points)]."""
    width, height = CHART
    top = 60
    values = [value for _, _, points in curves for _, value in points]
    low, high = math.floor(min(values) * 5) / 5, math.ceil(max(values) * 5) / 5
    last = max(epoch for _, _, points in curves for epoch, _ in points)

    def place(epoch, value):
        return (left + width * (epoch - 1) / max(last - 1, 1), top + height * (high - value) / (high - low))

    drawn.text(left, top - 16, title, size=15, bold=True)
    for i in range(round((high - low) * 5) + 1):
        value = low + i / 5
        y = place(1, value)[1]
        drawn.line([(left, y), (left + width, y)], "#d0d7de", 1)
        drawn.text(left - 8, y + 4, f"{value:.1f}", size=11, color=GREY, anchor="end")
    for epoch in range(1, last + 1):
        drawn.text(place(epoch, low)[0], top + height + 18, str(epoch), size=11, color=GREY, anchor="middle")
    drawn.text(left + width / 2, top + height + 38, "epoch", size=12, color=GREY, anchor="middle")
    for i, (name, color, points) in enumerate(curves):
        drawn.line([place(epoch, value) for epoch, value in points], color, 2.5)
        drawn.text(left + width - 4, top - 16 - 16 * i, name, size=12, color=color, anchor="end", bold=True)


def picture(logdir, about):
    drawn = Picture(2 * CHART[0] + 3 * GAP - 20, CHART[1] + 130, about)
    for i, (title, tag) in enumerate([("loss", "epoch_loss"), ("accuracy", "epoch_accuracy")]):
        chart(drawn, GAP + i * (CHART[0] + GAP), title, [("training", BLUE, read(logdir, "train", tag)),
                                                         ("validation", ORANGE, read(logdir, "validation", tag))])
    drawn.text(GAP, CHART[1] + 122, about, size=12, color=GREY)
    return drawn
