"""Present exceptions from a rule: each stands in a table, and one that is not needed any more is a problem too."""


def without_excepted(found, excepted, table):
    """`found`: [(key, problem)]; `excepted`: a set of keys that may stay; `table`: where it stands. Problems."""
    problems = [problem for key, problem in found if key not in excepted]
    keys = {key for key, _ in found}
    problems += [f"{table}: exception {key} is not needed any more" for key in sorted(excepted - keys)]
    return problems
