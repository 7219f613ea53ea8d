"""Checks that scripts parse: shell scripts with `bash -n` or `sh -n`, Python files with the compiler."""

import subprocess


def check(tree):
    problems = []
    for path in tree.files:
        first_line = tree.text(path).split("\n", 1)[0]
        if path.endswith(".py"):
            try:
                compile(tree.text(path), path, "exec", dont_inherit=True)
            except (SyntaxError, ValueError) as error:
                problems.append(f"{path}:{getattr(error, 'lineno', 1)}: {error}")
        elif path.endswith(".sh") or (first_line.startswith("#!") and first_line.endswith(("bash", "sh"))):
            shell = "sh" if first_line.endswith("/sh") else "bash"
            parsed = subprocess.run([shell, "-n"], input=tree.text(path), capture_output=True, text=True)
            if parsed.returncode != 0:
                problems.append(f"{path}: {parsed.stderr.strip()}")
    return problems
