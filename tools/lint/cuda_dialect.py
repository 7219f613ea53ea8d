"""Checks that kernels for cards keep to the dialect of cohort/backends/cuda/dialect/launch.h, so that every C++ compiler
compiles them for the host. The check reads the files *.cu, the headers *.cu.h, and the headers of the backend that these include,
directly or not. Only launch.h may use words of CUDA C++. docs/how-to/add-a-cuda-kernel.md describes the dialect."""

import re

from cpp_tokens import tokens

DIALECT = "cohort/backends/cuda/dialect/launch.h"
FOLDER = "cohort/backends/cuda/"
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]')
# Headers of the toolkit, of its libraries and of CUDA's C++ libraries.
HEADER_OF_NVIDIA = re.compile(r"^(cu[a-z0-9_]*\.h|cu(da|b|dnn)[A-Za-z0-9_]*\.(h|hpp|cuh)|cublas.*|curand.*|cufft.*|cusparse.*|"
                              r"device_(launch_parameters|functions)\.h|vector_(types|functions)\.h|sm_.*|mma\.h|nccl\.h|"
                              r"nv(rtc|toolsext|tx3).*|(cub|thrust|cuda|nv|nvtx3|cooperative_groups|cutlass|cute)/.*|"
                              r"cooperative_groups\.h|.*\.cuh)$")
QUESTION = re.compile(r"^\s*#.*\b(__CUDA(CC|_ARCH)\w*)")
INSTEAD = [
    (re.compile(r"^(__asm__|asm|__asm)$"), "inline PTX", "write C++; a card's own instructions do not exist on the host"),
    (re.compile(r"^__(shfl|ballot|any|all|activemask|match|reduce)(_[a-z_]+)?$"), "a warp's instruction",
     "call ShuffleXor, or a reduction of dialect/reduce.h"),
    (re.compile(r"^__sync(threads|warp)[a-z_]*$|^__threadfence[a-z_]*$"), "a barrier of CUDA C++", "call Thread::Sync or Fence"),
    (re.compile(r"^atomic(Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)[a-z_]*$"), "an atomic function of CUDA C++",
     "call AtomicAdd, AtomicSet or AtomicCompareAndSet, which exist for integers only"),
    (re.compile(r"^(threadIdx|blockIdx|blockDim|gridDim|warpSize)$"), "a variable of CUDA C++", "ask the Thread"),
    (re.compile(r"^__(shared|device|global|host|constant|forceinline|launch_bounds|grid_constant|managed)__$"),
     "a keyword of CUDA C++", "use COHORT_KERNEL, COHORT_SHARED or DynamicShared"),
    (re.compile(r"^__(ldg|ldcs|ldca|ldcg|stcs|stwt|nanosleep|trap|brkpt|clock|fdividef|expf|logf|powf|sinf|cosf|"
                r"f[a-z]+_r[nzud]|d[a-z]+_r[nzud]|saturatef|popc|clz|ffs|brev|byte_perm|mul24|umulhi|mulhi)$"),
     "a function of CUDA C++", "use <cmath>, or a loop"),
    (re.compile(r"^__nv_bfloat16.*$|^nv_bfloat16$|^__half.*$|^half2$|^(float|double|int|uint)[234]$"), "a type of CUDA C++",
     "use Pack and the types of dialect/"),
    (re.compile(r"^(cub|thrust|cooperative_groups)$"), "a library for cards only", "write a kernel, or put it behind an interface "
     "with a version for the host"),
]


def _kernel_files(tree):
    """Returns the files that are compiled for cards, in the order of their names."""
    waiting, found = tree.with_suffix(".cu", ".cu.h"), set()
    while waiting:
        path = waiting.pop()
        if path in found or path == DIALECT:
            continue
        found.add(path)
        for _, line in tree.lines(path):
            match = INCLUDE.match(line)
            if match and match.group(1).startswith(FOLDER) and tree.exists(match.group(1)):
                waiting.append(match.group(1))
    return sorted(found)


def check(tree):
    problems = []
    for path in _kernel_files(tree):
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            if match and HEADER_OF_NVIDIA.match(match.group(1)):
                problems.append(f"{path}:{number}: includes '{match.group(1)}'; a kernel includes no header of NVIDIA's, and only "
                                f"{DIALECT} knows CUDA C++")
            elif question := QUESTION.match(line):
                problems.append(f"{path}:{number}: '{question.group(1)}' asks which compiler it is; write code that is the same for "
                                "the card and for the host")
            elif "<<<" in line.split("//")[0]:
                problems.append(f"{path}:{number}: '<<<' launches a kernel; call Launch of {DIALECT}")
        for token in tokens(tree.text(path)):
            if token.kind == "string":
                continue
            for pattern, what, instead in INSTEAD:
                if pattern.match(token.text):
                    problems.append(f"{path}:{token.line}: '{token.text}' is {what}; {instead}")
    return problems
