"""exported_symbols.py PREFIX: checks that the installed libcohort.so shows the public interface and nothing else. Of what it
defines, every function and variable of Cohort has a name that an installed header has too, internals of Cohort are not there,
and neither is anything of the libraries that Cohort is built on."""

import glob
import os
import re
import subprocess
import sys

# Of each kind of public thing one: a class, its type for `catch`, a function, an operator, a class of a template.
SHOWN = ["cohort::Session::Run(", "typeinfo for cohort::InvalidArgumentError", "cohort::ops::MatMul(",
         "cohort::operator==(cohort::Shape const&", "cohort::keras::Model::Fit(", "cohort::Tensor::FromBlob(", "cohort::FromDLPack(",
         "typeinfo for cohort::CodedError<(cohort::Code)5>"]
# Classes and functions of sources and of headers that are not installed.
HIDDEN = ["cohort::PlanCompiler", "cohort::ArenaPlanner", "cohort::CpuVariable", "cohort::GrpcTransport", "cohort::cpu::",
          "cohort::CachingHostAllocator", "cohort::keras::Trainer::"]
WORD = re.compile(r"~?[A-Za-z_]\w*")


def symbols(library):
    """[(kind, demangled name)] of what the library defines for others."""
    listed = subprocess.run(["nm", "-D", "--defined-only", "--demangle", library], check=True, capture_output=True,
                            text=True).stdout
    return [tuple(line.split(" ", 2)[1:]) for line in listed.splitlines()]


def path_of(name):
    """"cohort::Session::Run" of "cohort::Session::Run(...) const"; arguments of templates are left out."""
    name = re.sub(r"^(?:vtable for|typeinfo for|typeinfo name for|guard variable for|VTT for) ", "", name)
    name = name.replace("(anonymous namespace)", "anonymous")
    depth, kept = 0, ""
    for character in re.sub(r"operator(?:\(\)|\[\]|[<>=!+\-*/|&^~%]+)", "operator", name):
        if character == "(" and depth == 0:
            break
        depth -= character == ">"
        if depth == 0 and character != ">":
            kept += character
        depth += character == "<"
    # A template function is listed with the type that it returns.
    return kept.replace("<", "").split("[abi:")[0].split(" ")[-1]


def main(prefix):
    libraries = glob.glob(os.path.join(prefix, "lib*", "**", "libcohort.so"), recursive=True)
    if len(libraries) != 1:
        return [f"expected one libcohort.so below {prefix}; got {libraries}"]
    words = set()
    for header in glob.glob(os.path.join(prefix, "include", "cohort", "**", "*.h"), recursive=True):
        with open(header, encoding="utf-8") as file:
            words |= set(WORD.findall(re.sub(r"//.*", "", file.read())))
    found = symbols(libraries[0])
    names = [name for _, name in found]
    problems = [f"'{name}' is public and not shown" for name in SHOWN if not any(name in shown for shown in names)]
    problems += [f"'{name}' is internal and shown" for name in names if any(hidden in path_of(name) for hidden in HIDDEN)]
    for kind, name in found:
        path = path_of(name)
        # Weak ones are templates and inline functions, which every program that uses them may define.
        if kind in "WVu" and not path.startswith("cohort::"):
            continue
        unknown = [word for word in WORD.findall(path) if word not in words | {"operator"} and word.strip("~") not in words]
        if not path.startswith("cohort::") or unknown:
            problems.append(f"'{name}' ({kind}) is shown, and no installed header has {unknown or 'it'}")
    print(f"{len(found)} symbols, {len(problems)} problems")
    return problems


if __name__ == "__main__":
    found_problems = main(sys.argv[1])
    print("\n".join(found_problems[:50]))
    sys.exit(1 if found_problems else 0)
