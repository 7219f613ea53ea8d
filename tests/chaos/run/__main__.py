"""Injects faults into trainings of real processes under `cohort launch`, and checks that nothing hangs, that no process
is left, and that no step of a healthy parameter server is lost. A seed gives the list of faults: job, kind, role and
moment. The exit status is 1 if a job has not survived its fault. Then its output is in the folder that is printed."""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import faults
import plan
import report
from job import Job

SHORT_LIMIT = 12  # seconds of --unhealthy_after for most faults, so that the run ends


def parse():
    parser = argparse.ArgumentParser(prog="./dev chaos", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=300, metavar="N", help="inject so many faults (300)")
    parser.add_argument("--minutes", type=float, metavar="N", help="begin no further fault after so many minutes")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="the list of faults (1)")
    parser.add_argument("--only", metavar="KIND[,KIND]", help="inject only these kinds: " + ", ".join(plan.KINDS))
    parser.add_argument("--without", metavar="KIND[,KIND]", default="", help="leave these kinds out")
    parser.add_argument("--index", type=int, metavar="I", help="inject only fault I of the seed, as an earlier run has named it")
    parser.add_argument("--list", action="store_true", help="print the list of faults, and inject none")
    parser.add_argument("--short", action="store_true", help="inject the short list of CI instead")
    parser.add_argument("--parallel", type=int, metavar="N", help="run so many jobs at once (2 for each core); they mostly wait")
    parser.add_argument("--keep", action="store_true", help="also keep the output of jobs that have survived")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="also write the tables to FILE")
    parser.add_argument("--programs", type=pathlib.Path, metavar="DIR", help="the folder of the programs (build/release/bin)",
                        default=pathlib.Path(__file__).parents[3] / "build/release/bin")
    args = parser.parse_args()
    for option in ("only", "without"):
        kinds = (getattr(args, option) or "").split(",") if getattr(args, option) else []
        for kind in kinds:
            if kind not in plan.KINDS:
                parser.error(f"--{option}: there is no kind '{kind}'; there are {', '.join(plan.KINDS)}")
        setattr(args, option, kinds)
    args.parallel = args.parallel or 2 * len(os.sched_getaffinity(0))
    return args


def enter_namespaces():
    """Returns why this process may not make namespaces, or "". A user who is not root becomes root of a user namespace of
    its own, in which this program starts again."""
    if subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, check=False).returncode == 0:
        return ""
    again = ["unshare", "--user", "--map-root-user", "--net", "--mount", "true"]
    if os.geteuid() != 0 and subprocess.run(again, capture_output=True, check=False).returncode == 0:
        os.execvp("unshare", ["unshare", "--user", "--map-root-user", sys.executable, "-B", *sys.argv])
    return f"user {os.geteuid()} may not make namespaces"


def reference_of(args, folder):
    """Returns the line that a mirrored training prints at its end if nothing disturbs it."""
    fault = dataclasses.replace(plan.fault_of(args.seed, 0), job="mirrored", kind="kill", role="worker")
    job = Job(fault, args.programs, folder / "reference", None)
    job.start()
    code = job.wait(300)
    line = job.find("^end ")
    job.close()
    if code != 0 or line is None:
        raise SystemExit(f"chaos: the undisturbed mirrored training failed ({code}):\n{job.log()}")
    return line.text


class Run:
    def __init__(self, args, chosen):
        self.args = args
        self.chosen = chosen
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cohort-chaos-"))
        self.begin = time.monotonic()
        self.results = []
        self._print = threading.Lock()

    def execute(self):
        reference = reference_of(self.args, self.folder) if any(f.job == "mirrored" for f in self.chosen) else None
        with concurrent.futures.ThreadPoolExecutor(self.args.parallel) as pool:
            for result in pool.map(lambda fault: self._one(fault, reference), self.chosen):
                if result is not None:
                    self.results.append(result)

    def _one(self, fault, reference):
        if self.args.minutes is not None and time.monotonic() - self.begin > 60 * self.args.minutes:
            return None
        folder = self.folder / f"{fault.index}"
        job = Job(fault, self.args.programs, folder, None if fault.default_limit else SHORT_LIMIT)
        result = faults.inject(job, reference)
        keep = result.problems or self.args.keep
        if keep:
            (folder / "log.txt").write_text(result.log)
        else:
            shutil.rmtree(folder)
        with self._print:
            times = ", ".join(f"{what} after {value:.1f} s" for what, value in
                              (("named", result.named), ("trained again", result.recovered)) if value is not None)
            print(f"{time.monotonic() - self.begin:7.1f} s  fault {fault.index:3} {fault.name:32} "
                  f"{'FAILED: ' + '; '.join(result.problems) if result.problems else 'survived'}  "
                  f"{times}{' (' + result.note + ')' if result.note else ''}", flush=True)
            if keep:
                print(f"           {folder}/log.txt; again: {self._again(fault)}", flush=True)
        return result

    def _again(self, fault):
        what = "--short " if self.args.short else ""
        return f"./dev chaos {what}--seed={self.args.seed} --index={fault.index}"


def main():
    args = parse()
    why_not = enter_namespaces()
    without = set(args.without) | (set(plan.NEED_NAMESPACES) if why_not else set())
    if args.short:
        chosen = [fault for fault in plan.short_plan(args.seed) if fault.kind not in without]
    elif args.index is not None:
        chosen = [plan.fault_of(args.seed, args.index)]
    else:
        chosen = plan.plan(args.seed, args.faults, args.only or None, without)
    if args.short and args.index is not None:
        chosen = [fault for fault in chosen if fault.index == args.index]
    if args.list:
        for fault in chosen:
            print(f"{fault.index:3} {fault.name:32} {plan.KINDS[fault.kind]}")
        return
    run = Run(args, chosen)
    run.execute()
    minutes = (time.monotonic() - run.begin) / 60
    how = (f"Seed {args.seed}, {len(run.results)} faults, {args.parallel} jobs at once on {os.cpu_count()} cores, "
           f"{minutes:.1f} minutes.")
    if without:
        how += f" Left out: {', '.join(sorted(without))}{' (' + why_not + ')' if why_not else ''}."
    text = report.page(run.results, how)
    print("\n" + text)
    if args.markdown:
        args.markdown.write_text(text)
    if any(result.problems for result in run.results) or not run.results:
        raise SystemExit(1)
    if not args.keep:
        shutil.rmtree(run.folder)


if __name__ == "__main__":
    main()
