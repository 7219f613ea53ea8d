"""Handles exceptions from a rule. Each is in a table. An exception that is not needed any more is a problem, too."""


def without_excepted(found, excepted, table):
    """Returns problems. `found` is [(key, problem)], `excepted` the set of allowed keys, `table` the name of that set."""
    problems = [problem for key, problem in found if key not in excepted]
    keys = {key for key, _ in found}
    problems += [f"{table}: exception {key} is not needed any more" for key in sorted(excepted - keys)]
    return problems
