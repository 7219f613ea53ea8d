"""Writes the tables of a run."""

import statistics

import faults
import plan


def percentile(values, share):
    """Returns the value that so large a share of the values does not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


def _times(values):
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    return f"{statistics.median(known):.2f} s, {percentile(known, 0.99):.2f} s"


def _rows(rows):
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def _kind_row(name, results):
    stopped = [result.replaced for result in results]
    return (name, len(results), sum(not result.problems for result in results), _times([r.named for r in results]),
            _times(stopped), _times([r.recovered for r in results]), sum(r.losses.killed for r in results),
            sum(r.losses.together for r in results), sum(r.losses.healthy for r in results),
            sum(r.losses.again for r in results), sum(r.hang for r in results), sum(r.orphans for r in results))


def by_kind(results):
    header = ("fault", "injected", "survived", "named", "started again", "trains again", "lost: killed", "lost: together",
              "lost: healthy", "repeated", "hangs", "orphans")
    rows = [header, ("---",) * len(header)]
    for kind, meaning in plan.KINDS.items():
        of_kind = [result for result in results if result.fault.kind == kind]
        if of_kind:
            rows.append(_kind_row(f"`{kind}`: {meaning}", of_kind))
    rows.append(_kind_row("all", results))
    return _rows(rows)


def by_role(results):
    rows = [("job", *plan.TASKS), ("---",) * (1 + len(plan.TASKS))]
    for job in plan.JOBS:
        cells = []
        for role in plan.TASKS:
            of_role = [result for result in results if (result.fault.job, result.fault.role) == (job, role)]
            cells.append(f"{sum(not r.problems for r in of_role)} of {len(of_role)}" if of_role else "-")
        rows.append((job, *cells))
    return _rows(rows)


def frozen(results):
    """Says how soon stopped tasks were named and replaced."""
    of_limit = {True: [], False: []}
    for result in results:
        if result.fault.kind == "stop" and result.replaced is not None:
            of_limit[result.fault.default_limit].append(result)
    lines = []
    for default, stopped in of_limit.items():
        if stopped:
            what = "the default --unhealthy_after of 30 s" if default else "a shorter --unhealthy_after"
            named = [r.named for r in stopped if r.named is not None]
            lines.append(f"Stopped for ever, {what}: {len(stopped)} tasks; {sum(n <= 5 for n in named)} named within 5 s, "
                         f"the latest after {max(named, default=0):.1f} s; replaced after at most "
                         f"{max(r.replaced for r in stopped):.1f} s.")
    return "\n".join(lines)


def hung(results):
    """Says who has ended the tasks that hung."""
    of_kind = [result for result in results if result.fault.kind == "hang"]
    by_run = sum(faults.KILLED_BY_RUN in result.note for result in of_kind)
    if not of_kind:
        return ""
    return f"User code that never returns: {len(of_kind)} tasks; {by_run} killed by the run, the others by the launcher."


def page(results, how):
    return "\n\n".join(part for part in (
        how, by_kind(results), "Survived, by job and role:\n\n" + by_role(results), frozen(results),
        hung(results)) if part) + "\n"
