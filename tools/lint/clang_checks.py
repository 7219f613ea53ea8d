"""Runs the checks that need a compiler: clang's thread-safety analysis and clang-tidy.

The commands come from build/clang/compile_commands.json. They were made for another compiler, so flags that only that
compiler knows are dropped. The thread-safety analysis checks the sources that use annotated locks, or all sources with
--thread-safety. clang-tidy checks the sources that changed since --base, or all sources with --tidy-all.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import tree as trees

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLANG, CLANG_TIDY = "clang++-14", "clang-tidy-14"
LOCKS = re.compile(r"\b(MutexLock|WriterLock|ReaderLock|GUARDED_BY|CondVar|REQUIRES|ACQUIRE|EXCLUDES|Mutex)\b")
# Flags that only the other compiler knows, or that name an output.
DROPPED = re.compile(r"^(-c|-fno-gnu-unique|-fconcepts.*|-Wno-maybe-uninitialized|-f(no-)?lto.*|-MD|-MMD)$")
DROPPED_WITH_VALUE = {"-o", "-MT", "-MF", "-MQ"}
FLAGS = ["-Wno-unknown-warning-option", "-Wno-unused-command-line-argument", "-Wno-unknown-pragmas"]
# clang-tidy takes seconds for each file. If a change touches more files than this, run --tidy-all.
MOST_TIDIED = 30


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build", "clang"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--base", help="check the files that changed since this commit")
    parser.add_argument("--tidy-all", action="store_true")
    parser.add_argument("--thread-safety", action="store_true", help="run only this analysis, on every source")
    return parser.parse_args()


def load_commands(build_dir, tracked):
    """Returns {tracked source: the clang arguments that parse it}, each source once."""
    commands = {}
    with open(os.path.join(build_dir, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT)
            if path in tracked and path not in commands:
                commands[path] = clang_arguments(shlex.split(entry["command"]), entry["file"])
    return commands


def clang_arguments(command, source):
    kept, skip = [], True  # the first word is the compiler, or ccache before it
    words = iter(command)
    for word in words:
        if skip:
            skip = os.path.basename(word) == "ccache"
        elif word in DROPPED_WITH_VALUE:
            next(words)
        elif word != source and not DROPPED.match(word):
            kept.append(word)
    return kept + FLAGS


def git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def default_base():
    """Returns the commit at which this branch left origin/main, HEAD~1 on main itself, or None if there is one commit."""
    head = git("rev-parse", "HEAD")
    for branch in ("origin/main", "main"):
        base = git("merge-base", "HEAD", branch)
        if base and base != head:
            return base
    return git("rev-parse", "--verify", "--quiet", "HEAD~1")


def changed_sources(base, commands):
    """Returns the sources that changed since `base`, or whose own header did. Without a base returns all."""
    if base is None:
        return sorted(commands)
    changed = set((git("diff", "--name-only", "--diff-filter=d", base, "--") or "").splitlines())
    changed |= set((git("ls-files", "--others", "--exclude-standard") or "").splitlines())
    stems = {os.path.splitext(path)[0] for path in changed if path.endswith((".h", ".cc", ".cu"))}
    return [source for source in sorted(commands) if os.path.splitext(source)[0] in stems]


def uses_locks(tree, source):
    stem = os.path.splitext(source)[0].removesuffix("_test")
    files = [source] + [path for path in (stem + ".h", stem + "_internal.h") if tree.exists(path)]
    return any(LOCKS.search(tree.text(path)) for path in files)


def thread_safety(source, arguments):
    return [CLANG, "-fsyntax-only", *arguments, "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety", source]


def tidy(source, arguments):
    # Matches our headers by their folder. Headers that protobuf generates are in the build folder.
    ours = f"--header-filter=^{re.escape(ROOT)}/(cohort|tools|tests)/"
    return [CLANG_TIDY, "--quiet", ours, source, "--", *arguments, "-Wthread-safety"]


def run(name, make_command, sources, commands, jobs):
    """Runs one tool on the sources and prints its output. Returns the number of sources with problems."""
    start = time.monotonic()

    def one(source):
        command = make_command(os.path.join(ROOT, source), commands[source])
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return source, done

    bad = 0
    with ThreadPoolExecutor(jobs) as pool:
        for source, done in pool.map(one, sources):
            if done.returncode != 0:
                bad += 1
                text = (done.stdout if name == "clang_tidy" and done.stdout.strip() else done.stderr).strip()
                print(f"  {source}:\n{text.replace(ROOT + os.sep, '')}")
    seconds = time.monotonic() - start
    print(f"lint: {name:16} {bad or 'no':>4} problems  {seconds:5.1f} s  ({len(sources)} files)", flush=True)
    return bad


def main():
    arguments = parse_arguments()
    tree = trees.checkout(ROOT)
    commands = load_commands(arguments.build_dir, set(tree.files))
    locking = [source for source in sorted(commands) if arguments.thread_safety or uses_locks(tree, source)]
    bad = run("thread_safety", thread_safety, locking, commands, arguments.jobs)
    if not arguments.thread_safety:
        if arguments.tidy_all:
            sources = sorted(commands)
        else:
            sources = changed_sources(arguments.base or default_base(), commands)
            if len(sources) > MOST_TIDIED:
                print(f"lint: {len(sources)} sources changed; clang-tidy reads the first {MOST_TIDIED}, "
                      "./dev lint --tidy-all reads them all")
                sources = sorted(sources, key=lambda source: source.endswith("_test.cc"))[:MOST_TIDIED]
        bad += run("clang_tidy", tidy, sources, commands, arguments.jobs)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
