#!/usr/bin/env bash
# Makes the archive of `./dev gpu-pack`: pack.sh FOLDER ARCHIVE PROGRAM... takes the programs out of the folder.
set -euo pipefail

MOST_BYTES=$((24 << 20))
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
BIN="$1" ARCHIVE="$2"
shift 2
# The other machine has these: they belong to glibc.
OF_GLIBC='^(ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libutil)\.so'
. "$ROOT/tests/gpu/libraries_of_cuda.sh"

fail() {
  printf 'pack.sh: %s\n' "$1" >&2
  exit 1
}

# Prints "name path" of each library that the file needs to start.
libraries_of() { ldd "$1" | awk '$2 == "=>" { print $1, $3 } $2 ~ /^\(/ { print $1, $1 }'; }

staged="$(mktemp -d)"
trap 'rm -rf "$staged"' EXIT
pack="$staged/cohort-gpu"
mkdir -p "$pack/bin" "$pack/lib" "$pack/bench"

for program in "$@"; do
  [[ -x $BIN/$program ]] || fail "there is no $BIN/$program"
  while read -r name path; do
    if [[ $name =~ $OF_CUDA ]]; then fail "$program needs $name to start, and must not"; fi
    if [[ $path == not ]]; then fail "$program needs $name, which is not here"; fi
    [[ ${name##*/} =~ $OF_GLIBC || $name == linux-vdso* || -e $pack/lib/$name ]] || cp -L "$path" "$pack/lib/$name"
  done < <(libraries_of "$BIN/$program")
  strip -o "$pack/bin/$program.program" "$BIN/$program"
  # A program finds the libraries of the archive wherever it was unpacked.
  printf '#!/bin/sh\nhere="$(cd "$(dirname "$0")" && pwd)"\nLD_LIBRARY_PATH="$here/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$here/%s.program" "$@"\n' \
    "$program" >"$pack/bin/$program"
  chmod +x "$pack/bin/$program"
done
find "$pack/lib" -type f -exec strip --strip-unneeded {} +

cp "$ROOT/tests/gpu/run.sh" "$pack/test.sh"
cp "$ROOT"/bench/gpu/*.py "$ROOT/bench/gpu/run.sh" "$ROOT/bench/gpu/README.md" "$pack/bench/"
cp "$ROOT/LICENSE" "$pack/"

for program in "$@"; do  # as on the other machine, with the libraries of the archive alone
  if LD_LIBRARY_PATH="$pack/lib" ldd "$pack/bin/$program.program" | grep 'not found' >&2; then
    fail "$program does not find these libraries"
  fi
done

mkdir -p "$(dirname "$ARCHIVE")"
# The programs share most of their code: a dictionary as large as all of them stores it once. The
# filter of xz for x86 makes the archive 2% smaller.
tar -C "$staged" --sort=name --owner=0 --group=0 --mtime=@0 -cf - cohort-gpu | xz -T1 --x86 --lzma2=preset=6,dict=192MiB >"$ARCHIVE"
size="$(stat -c %s "$ARCHIVE")"
printf '%s: %d.%d MiB, %d programs, %d libraries\n' "$ARCHIVE" $((size >> 20)) $(((size % (1 << 20)) * 10 >> 20)) $# \
  "$(find "$pack/lib" -type f | wc -l)"
[[ $size -le $MOST_BYTES ]] || fail "the archive has $size bytes; at most $MOST_BYTES are allowed"
