#!/usr/bin/env bash
# Fails if a program or a shared library of a build needs a library of CUDA's to start, directly or through another library:
# needed_libraries_test.sh BUILD_FOLDER.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/libraries_of_cuda.sh"
BUILD="$1"

mapfile -t programs < <(find "$BUILD/bin" -type f -executable | sort)
mapfile -t libraries < <(find "$BUILD" -type f -name 'lib*.so*' | sort)
if [[ ${#programs[@]} -eq 0 ]]; then
  printf 'expected programs in %s; got none: build them first\n' "$BUILD/bin" >&2
  exit 1
fi

status=0
for file in "${programs[@]}" "${libraries[@]}"; do
  # The loader's list has each library once, with those that others need, and also those that it does not find.
  if ! needed="$(ldd "$file")" || [[ $needed != *libc.so* && $needed != *'statically linked'* ]]; then
    printf 'expected the libraries that %s needs; got none from ldd: %s\n' "$file" "$needed" >&2
    status=1
  fi
  while read -r name _; do
    if [[ ${name##*/} =~ $OF_CUDA ]]; then
      printf '%s needs %s to start; expected it to be opened at its first use (dynamic_library.h)\n' "$file" "$name" >&2
      status=1
    fi
  done <<<"$needed"
done
printf 'looked at %d programs and %d shared libraries\n' "${#programs[@]}" "${#libraries[@]}"
exit $status
