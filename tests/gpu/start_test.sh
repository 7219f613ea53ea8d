#!/usr/bin/env bash
# Checks what the programs of a build need to start: start_test.sh FOLDER. No program and no shared library may need a library of
# CUDA, because all of them also run on machines without one. It follows the names of needed libraries (NEEDED entries) into those
# that the build made itself and into those of the system. It fails if the folder has no program.
set -euo pipefail

OF_CUDA='^lib(cuda|cudart|cublas|cublasLt|cudnn[a-z_]*|nccl|nvrtc[a-z-]*|nvJitLink|nvidia[a-z-]*)\.so'
checked=0 bad=0

while IFS= read -r -d '' file; do
  [[ "$(head -c 4 "$file" | tr -d '\0')" == $'\x7fELF' ]] || continue
  checked=$((checked + 1))
  # ldd follows all entries, and prints "name => path" or "name => not found". A library that is missing must be seen, too.
  while read -r name _; do
    if [[ $name =~ $OF_CUDA ]]; then
      printf '%s needs %s to start; open it with dlopen when it is first used\n' "$file" "$name" >&2
      bad=$((bad + 1))
    fi
  done < <(ldd "$file" || true)
done < <(find "$1" -maxdepth 2 -type f -perm -u+x -print0)

printf '%d programs, %d of which need a library of CUDA to start\n' "$checked" "$bad"
[[ $checked -gt 0 ]] || { printf 'there is no program in %s\n' "$1" >&2 && exit 1; }
[[ $bad -eq 0 ]]
