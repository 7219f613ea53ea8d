"""Checks that public headers include no header of the libraries that Cohort uses. Public are the headers that
cohort/cohort.h includes, directly or not. These are installed."""

import posixpath
import re

UMBRELLA = "cohort/cohort.h"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
FOREIGN = re.compile(
    r"(google/protobuf/|grpc|dlpack/|dnnl|oneapi/dnnl/|spdlog/|fmt/|nlohmann/|leveldb/|CLI/|absl/|openssl/|zlib\.h$"
    r"|snappy|hdf5\.h|zip\.h$|omp\.h$|gtest/|gmock/|benchmark/|.*\.pb\.h$)")
# Layers below a session: a program sees these headers of theirs and no other. Each is plain data, plain functions, or
# an interface that programs implement.
PUBLIC_OF_LAYER = {
    "cohort/device/": {"client_id.h", "closure_id.h", "device_attributes.h", "logical_devices.h", "update_observer.h"},
    "cohort/backends/": set(),
    "cohort/runtime/": {"debugging.h", "session.h", "step_stats.h", "timeline.h"},
    "cohort/collective/": set(),
}


def reachable(tree, start):
    """Returns {header: the chain of headers that leads to it}. Follows "cohort/..." includes that exist."""
    chains, queue = {start: [start]}, [start]
    while queue:
        header = queue.pop()
        for _, line in tree.lines(header):
            match = INCLUDE.match(line)
            if match and match.group(2) in tree.files and match.group(2) not in chains:
                chains[match.group(2)] = chains[header] + [match.group(2)]
                queue.append(match.group(2))
    return chains


def check(tree):
    problems = []
    if UMBRELLA not in tree.files:
        return [f"there is no {UMBRELLA}, the list of what is public"]
    chains = reachable(tree, UMBRELLA)
    for header, chain in sorted(chains.items()):
        for layer, public in PUBLIC_OF_LAYER.items():
            if header.startswith(layer) and header[len(layer):] not in public:
                problems.append(f"{header}: is in reach of {UMBRELLA} ({' > '.join(chain)}), but {layer} gives programs only "
                                f"{', '.join(sorted(public)) or 'nothing'} (tools/lint/public_headers.py)")
        for number, line in tree.lines(header):
            match = INCLUDE.match(line)
            if not match:
                continue
            name = match.group(2)
            way = f" (reached through {' > '.join(chain)})" if len(chain) > 1 else ""
            if FOREIGN.match(name):
                problems.append(f"{header}:{number}: a public header includes <{name}>{way}")
            elif name.endswith("_internal.h") or "/testing/" in name:
                problems.append(f"{header}:{number}: a public header includes the internal '{name}'{way}")
            elif match.group(1) == '"' and not name.startswith("cohort/"):
                problems.append(f"{header}:{number}: write the path from the root, cohort/..., not '{name}'")
            elif name.startswith("cohort/") and not tree.exists(posixpath.normpath(name)):
                problems.append(f"{header}:{number}: includes '{name}', which does not exist")
    problems += [f"{path}: has no '#pragma once'" for path in tree.with_suffix(".h")
                 if "#pragma once" not in tree.text(path)]
    return problems
