"""comments.py FILE: prints a header with its comments in Doxygen's form. Our comments are plain `//`: a comment in front of a
declaration, or behind it on its line, describes it, and the first one describes the file. It also describes a class that it
names at its beginning and that has no comment of its own. They are prose, so what Doxygen would take for a command, a tag or
a link is escaped; `code` between backticks becomes code. Line numbers stay."""

import re
import sys

ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\\": "\\\\", "@": "\\@", "#": "\\#", "%": "\\%", '"': "&quot;"}
# A declaration and the comment behind it. What stands in quotes is not a comment.
TRAILING = re.compile(r'^((?:[^"/]|"(?:[^"\\]|\\.)*"|/(?!/))*?)(?<=\S) *// ?(.*)$')
# A class at the beginning of its line: its name.
CLASS = re.compile(r"^(?:class|struct) [^;]*?(\w+)(?: final)?(?: : [^;]*)? \{")
ONLY = re.compile(r"^(\s*)//( ?)(.*)$")


def escaped(text):
    return "".join(ENTITIES.get(character, character) for character in text)


def prose(text):
    """One line of a comment."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner on this line
        return escaped(text)
    return "".join(f"<code>{escaped(part)}</code>" if i % 2 else escaped(part) for i, part in enumerate(parts))


def documented(text, name):
    """The text of the header `name` for Doxygen."""
    lines, out, trailing = text.split("\n"), [], False
    first, about = True, []
    for line in lines:
        only = ONLY.match(line)
        if only and first:
            about.append(prose(only.group(3)))
            out.append(f"/// \\file {name} {prose(only.group(3))}" if not out else f"/// {prose(only.group(3))}")
            continue
        first = first and bool(only)
        if only:
            # The comment behind a declaration goes on in the next line, behind nothing.
            mark = "///<" if trailing and len(only.group(1)) >= trailing else "///"
            out.append(f"{only.group(1)}{mark}{only.group(2)}{prose(only.group(3))}")
            trailing = trailing if mark == "///<" else False
            continue
        named = CLASS.match(line)
        if named and about and not out[-1].startswith(("//", "template")) and about[0].startswith(f"{named.group(1)}:"):
            line = f"/** {' '.join(about)} */ {line}"
        behind = TRAILING.match(line)
        if behind and behind.group(2).startswith("NOLINT"):  # for clang-tidy
            behind, line = None, behind.group(1)
        is_end = behind and re.match(r"\s*[}#]", line)
        trailing = len(behind.group(1)) if behind and not is_end else False
        out.append(f"{behind.group(1)}  ///< {prose(behind.group(2))}" if trailing else line)
    return "\n".join(out)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        # The path from the root, as in an #include.
        sys.stdout.write(documented(file.read(), "cohort/" + sys.argv[1].rpartition("/cohort/")[2]))
