"""docs/formats.md names the version of the messages between tasks that the code has."""

import re

CODE = "cohort/cluster/steps/protocol.h"
DOCUMENT = "docs/formats.md"
DEFINED = re.compile(r"\bkProtocolVersion = (\d+);")
NAMED = re.compile(r"\bprotocol version \((\d+)\)")


def check(tree):
    missing = [path for path in (CODE, DOCUMENT) if path not in tree.files]
    if missing:
        return [f"{path}: not found (tools/lint/format_versions.py)" for path in missing]
    defined = DEFINED.findall(tree.text(CODE))
    if len(defined) != 1:
        return [f"{CODE}: expected one definition of kProtocolVersion; got {len(defined)} (tools/lint/format_versions.py)"]
    named = NAMED.findall(tree.text(DOCUMENT))
    if named == defined:
        return []
    got = ", ".join(named) or "none"
    return [f"{DOCUMENT}: expected 'protocol version ({defined[0]})' once, as in {CODE}; got {got}"]
