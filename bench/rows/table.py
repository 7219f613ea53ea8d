"""The results of a measurement, and the table that shows them: medians, spread, ratios, and whether a target is met."""

import dataclasses
import statistics


@dataclasses.dataclass
class Contestant:
    """One side of a row. `measure` starts its processes once and returns {figure: value}; it throws Failed."""

    name: str
    measure: object
    rounds: int = 0  # at most so many rounds; 0: as many as the others
    samples: dict = dataclasses.field(default_factory=dict)
    failures: list = dataclasses.field(default_factory=list)

    def also(self, name):
        """Returns this side with another name, for a line with another of its figures. It shares the samples."""
        return dataclasses.replace(self, name=name)

    def add(self, figures):
        for figure, value in figures.items():
            self.samples.setdefault(figure, []).append(value)

    def median(self, figure):
        values = self.samples.get(figure)
        return statistics.median(values) if values else None

    def shown(self, figure, unit):
        values = self.samples.get(figure)
        if not values:
            return "failed" if self.failures else "not measured"
        spread = f"{number(min(values))} to {number(max(values))}, " if len(values) > 1 else ""
        return f"{number(statistics.median(values))} {unit} ({spread}n={len(values)})"


@dataclasses.dataclass
class Line:
    """One line of the table: one of our figures beside that of a peer, or alone with a limit."""

    what: str
    unit: str
    ours: Contestant
    figure: str
    peer: Contestant = None
    peer_figure: str = ""
    larger_is_better: bool = False
    least_ratio: float = 0  # target: how many times better than the peer; 0: the peer is only shown
    most: float = 0  # target: the most that our figure may be, in `unit`

    def ratio(self):
        """Returns how many times better than the peer we are, or None if one of the two is missing."""
        if self.peer is None:
            return None
        ours, peer = self.ours.median(self.figure), self.peer.median(self.peer_figure or self.figure)
        if ours is None or peer is None:
            return None
        return ours / peer if self.larger_is_better else peer / ours

    def target(self):
        if self.least_ratio:
            return f"at least {self.least_ratio:g} x"
        return f"at most {self.most:g} {self.unit}" if self.most else "-"

    def met(self):
        """Returns whether the target is met, or None if there is no target or no measurement."""
        ratio, ours = self.ratio(), self.ours.median(self.figure)
        if self.least_ratio:
            return None if ratio is None else ratio >= self.least_ratio
        return None if not self.most or ours is None else ours <= self.most

    def cells(self):
        ratio = self.ratio()
        target = self.target()
        verdict = {True: "met", False: "not met", None: "-" if target == "-" else "unknown"}[self.met()]
        peer = "-" if self.peer is None else self.peer.shown(self.peer_figure or self.figure, self.unit)
        return [self.what, self.ours.shown(self.figure, self.unit), "-" if self.peer is None else self.peer.name, peer,
                "-" if ratio is None else f"{ratio:.2g} x" if ratio < 10 else f"{ratio:.0f} x", target, verdict]


HEADER = ["what", "Cohort", "peer", "its figure", "ratio", "target", ""]


def number(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def markdown(rows):
    """Returns the lines of a table."""
    def shown(cells):
        return "| " + " | ".join(cells) + " |"
    return [shown(HEADER), shown(["---", "--:", "---", "--:", "--:", "--:", "---"]), *map(shown, rows)]
