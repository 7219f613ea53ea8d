"""A small tokenizer of C++, which is enough to find declarations, bodies and literals. It leaves out comments and
preprocessor lines. include_order.py reads the #include lines."""

import re
from typing import NamedTuple


class Token(NamedTuple):
    kind: str  # "word", "number", "string", "char", "mark"
    text: str  # of a string: the text between the quotes
    line: int


PATTERN = re.compile(r"""
    (?P<space>\s+)
  | (?P<comment>//[^\n]*(?:\\\n[^\n]*)*|/\*.*?\*/)
  | (?P<raw>(?:u8|[uUL])?R"(?P<tag>[^()\\\s]*)\((?P<rawtext>.*?)\)(?P=tag)")
  | (?P<string>(?:u8|[uUL])?"(?P<text>(?:[^"\\\n]|\\.)*)")
  | (?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'(?=[0-9a-fA-F])|[\w.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<mark>::|->|.)
""", re.VERBOSE | re.DOTALL)

DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)


def tokens(text):
    """Returns the tokens of a source. Text that is not C++ becomes marks of one character."""
    text = DIRECTIVE.sub(lambda match: "\n" * match.group(0).count("\n"), text)
    found, line = [], 1
    for match in PATTERN.finditer(text):
        kind = match.lastgroup if match.lastgroup not in ("tag", "rawtext", "text") else "string"
        if kind in ("string", "raw"):
            raw = match.group("rawtext")
            found.append(Token("string", raw if raw is not None else match.group("text"), line))
        elif kind not in ("space", "comment"):
            found.append(Token(kind, match.group(0), line))
        line += match.group(0).count("\n")
    return found
