"""Runs fuzz targets: `./dev fuzz` builds them and calls this.

Each target is a process of libFuzzer. It begins with the committed inputs (tests/fuzz/corpus/TARGET) and with those that
earlier runs have found (build/fuzz/corpus/TARGET). A finding ends the process; its input is kept in build/fuzz/findings.
If the fault is inside a library of the system that parses the bytes itself (libhdf5, libzip), the input is kept in
build/fuzz/foreign, and the target goes on: those faults are listed in docs/security.md.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN, OUTPUT, CORPUS = (os.path.join(ROOT, path) for path in ("build/asan/bin", "build/fuzz", "tests/fuzz/corpus"))
# Target -> the most bytes of an input. Larger inputs are slower and find little more.
TARGETS = {
    "tf_config": 4096, "hello": 4096, "frames": 8192, "messages": 8192, "graph_def": 8192, "function_def": 8192,
    "saved_model": 20480,
    "op_shapes": 512, "kernels": 512, "checkpoint": 8192, "tf_record": 4096, "example": 4096, "idx": 2048, "gzip": 4096,
    "csv": 4096, "dataset": 4096, "event_file": 8192, "keras_archive": 16384, "keras_config": 8192, "weights_h5": 16384,
    "keras_model": 8192, "image_file": 4096,
}
NOT_IN_CI = {"keras_model"}  # needs all of Keras, which CI does not build with sanitizers
FOREIGN = re.compile(r"\((/[^()]*/(libhdf5|libzip)[^()]*\.so[^()+]*)")
# A sanitizer writes "==7==ERROR: AddressSanitizer", and libFuzzer, for time and memory, "==7== ERROR: libFuzzer".
REPORT = re.compile(r"== ?ERROR: ")
FRAME = re.compile(r"^\s*#\d+ 0x[0-9a-f]+ (.*)$")
RUNTIME = re.compile(r"(\.\./sysdeps/|libc\.so|libgcc_s|libstdc\+\+|libpthread|/libz\.so)|__(asan|ubsan|sanitizer|interceptor|lsan)|"
                     r"InterceptorCommon|compiler-rt|fuzzer::|operator new|\bin (malloc|free|realloc|calloc|mem\w+|str\w+)\b")
# Time and memory of one input. The rest of the run is bounded by -max_total_time.
LIMITS = ["-timeout=60", "-rss_limit_mb=2560", "-malloc_limit_mb=1536"]

stopped = threading.Event()
running = set()


@dataclasses.dataclass
class Outcome:
    runs: int = 0
    before: int = 0  # branches that the inputs of the corpus reach
    after: int = 0
    findings: list = dataclasses.field(default_factory=list)
    foreign: list = dataclasses.field(default_factory=list)
    report: str = ""  # of the finding: what is wrong, and where
    error: str = ""
    seconds: float = 0


def is_foreign(log):
    """Whether the fault of a report is inside a library that is not ours: its first frame behind the runtime's own is."""
    begin = REPORT.search(log)
    report = log[begin.start():] if begin else ""
    for line in report.split("\n"):
        frame = FRAME.match(line)
        if not frame or RUNTIME.search(frame.group(1)):
            continue
        return bool(FOREIGN.search(frame.group(1)))
    return False


def summarize(log):
    """Returns the lines of a log that tell what is wrong, and the frames of our own code and of libraries above it."""
    what = [line for line in log.split("\n") if re.search(r"ERROR: |CHECK failed|runtime error: |terminate called|what\(\): ", line)]
    frames = [line for line in log.split("\n") if FRAME.match(line) and not RUNTIME.search(line)]
    return "\n".join(f"    {line.strip()[:300]}" for line in what[:3] + frames[:5])


def numbers(log, pattern):
    return [int(text) for text in re.findall(pattern, log)]


def run_once(target, folders, seconds, arguments):
    """Runs the process once. Returns (exit status, its output)."""
    command = [os.path.join(BIN, f"{target}_fuzzer"), folders["work"], folders["committed"], f"-max_len={TARGETS[target]}",
               f"-max_total_time={max(1, int(seconds))}", f"-artifact_prefix={folders['new']}/", *LIMITS, "-print_final_stats=1",
               "-close_fd_mask=3", "-reload=0", *arguments]
    log = os.path.join(folders["logs"], f"{target}.log")
    with open(log, "w", encoding="utf-8", errors="replace") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        running.add(process)
        try:
            # Reading the corpus is not part of max_total_time.
            status = process.wait(timeout=seconds + 300)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        running.discard(process)
    with open(log, encoding="utf-8", errors="replace") as text:
        output = text.read()
    # On a busy machine the end of the process, with its search for leaks, may take longer than we wait.
    ended = re.search(r"^Done \d+ runs in", output, re.MULTILINE) is not None and status == -signal.SIGKILL
    return 0 if ended else status, output


def keep(folders, to):
    """Moves the new crash files into a folder, and returns their paths."""
    kept = []
    for name in sorted(os.listdir(folders["new"])):
        path = os.path.join(folders[to], f"{folders['target']}-{name}")
        shutil.move(os.path.join(folders["new"], name), path)
        kept.append(path)
    return kept


def run_target(target, seconds, seed):
    folders = {"target": target, "committed": os.path.join(CORPUS, target)}
    for name, path in {"work": f"corpus/{target}", "new": f"new/{target}", "findings": "findings", "foreign": "foreign",
                       "logs": "logs"}.items():
        folders[name] = os.path.join(OUTPUT, path)
        os.makedirs(folders[name], exist_ok=True)
    if not os.path.isdir(folders["committed"]):
        return Outcome(error=f"there is no folder {folders['committed']}")
    shutil.rmtree(folders["new"])
    os.makedirs(folders["new"])
    outcome, begin = Outcome(), time.monotonic()
    while not stopped.is_set():
        left = seconds - (time.monotonic() - begin)
        if left < 1 and outcome.runs + len(outcome.foreign) > 0:
            break
        # After a fault of a library, another seed: the same inputs would only find the same fault.
        arguments = [] if seed is None else [f"-seed={seed + len(outcome.foreign)}"]
        status, log = run_once(target, folders, left, arguments)
        outcome.runs += sum(numbers(log, r"stat::number_of_executed_units: (\d+)")) or max(
            numbers(log, r"^#(\d+)\t") or [0])
        covered = numbers(log, r"\bcov: (\d+)")
        if covered:
            outcome.before = outcome.before or next(iter(numbers(log, r"INITED cov: (\d+)")), covered[0])
            outcome.after = max(outcome.after, covered[-1])
        if status == 0 or stopped.is_set():
            break
        if is_foreign(log):
            outcome.foreign += keep(folders, "foreign")
            continue
        outcome.findings = keep(folders, "findings")
        outcome.report = summarize(log)
        with open(os.path.join(folders["findings"], f"{target}.log"), "w", encoding="utf-8") as report:
            report.write(log)
        if not outcome.findings:
            outcome.error = f"it ended with {status}; its output is in {os.path.join(folders['findings'], target)}.log"
        break
    outcome.seconds = time.monotonic() - begin
    return outcome


def describe(target, outcome):
    found = f"{len(outcome.findings)} findings" if outcome.findings else "no finding"
    if outcome.error:
        found = f"ERROR: {outcome.error}"
    foreign = f", {len(outcome.foreign)} in libraries" if outcome.foreign else ""
    return (f"{target:14} {outcome.seconds:6.0f} s {outcome.runs:10} runs, {outcome.after:6} branches, "
            f"{outcome.after - outcome.before:5} of them new; {found}{foreign}")


def stop(*_):
    stopped.set()
    for process in list(running):
        process.terminate()


USAGE = f"""\
usage: ./dev fuzz [TARGET...] [--minutes=N | --seconds=N] [--jobs=N] [--subset] [--seed=N]
       ./dev fuzz --replay TARGET FILE
Gives readers of files and of messages millions of damaged inputs (libFuzzer, with the asan preset), and prints one line for
each target: how many inputs ran, how many branches of the code they reached, how many of these are new, and the findings. A
finding is a crash, a report of a sanitizer, an exception that is no cohort::Error, an input that takes more than 60 s, or
more than 2.5 GB of memory. Its input is kept in build/fuzz/findings, and the exit status is 1.
Inputs that reach new branches are kept in build/fuzz/corpus, and the next run begins with them. The first inputs are in
tests/fuzz/corpus. Most of them come from the product's own writers: tests/fuzz/make_corpus.cc.
  --minutes=N  run each target for N minutes (1)
  --seconds=N  run each target for N seconds
  --jobs=N     run N targets at a time (1)
  --subset     run only the targets that .ci/run runs
  --seed=N     begin libFuzzer's random numbers with N: the same build then tries the same inputs in the same order
  --replay     run one input, such as a finding, and print what happens
targets: {" ".join(TARGETS)}"""


class Parser(argparse.ArgumentParser):
    def format_help(self):
        return USAGE + "\n"

    def error(self, message):
        self.exit(2, f"dev: fuzz: {message}\n     see ./dev fuzz --help\n")


def parse_arguments():
    parser = Parser()
    parser.add_argument("--list", action="store_true")  # only prints the chosen targets
    parser.add_argument("--subset", action="store_true")
    parser.add_argument("--replay", nargs=2)
    parser.add_argument("--minutes", type=int, default=1)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int)
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    if options.replay:
        options.targets = options.replay[:1]
        if not os.path.isfile(options.replay[1]):
            parser.error(f"there is no file '{options.replay[1]}'")
    options.targets = options.targets or [name for name in TARGETS if not options.subset or name not in NOT_IN_CI]
    for target in options.targets:
        if target not in TARGETS:
            parser.error(f"unknown target '{target}'; there are {', '.join(TARGETS)}")
    return options


def main():
    options = parse_arguments()
    if options.list:
        print("\n".join(options.targets))
        return 0
    if options.replay:
        return subprocess.run([os.path.join(BIN, f"{options.targets[0]}_fuzzer"), *LIMITS, options.replay[1]]).returncode
    os.environ["COHORT_LOG_LEVEL"] = "off"
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    seconds = options.minutes * 60 if options.seconds is None else options.seconds
    failed = False
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        runs = {pool.submit(run_target, target, seconds, options.seed): target for target in options.targets}
        for run in concurrent.futures.as_completed(runs):
            target, outcome = runs[run], run.result()
            print(describe(target, outcome), flush=True)
            failed = failed or bool(outcome.findings or outcome.error)
            if outcome.report:
                print(outcome.report, flush=True)
            for path in outcome.findings:
                path = os.path.relpath(path, ROOT)
                print(f"  {path}\n  see it again: ./dev fuzz --replay {target} {path}", flush=True)
    return 1 if failed or stopped.is_set() else 0


if __name__ == "__main__":
    sys.exit(main())
