#!/usr/bin/env bash
# Makes the archive of `./dev gpu-pack`: pack.sh FOLDER ARCHIVE PROGRAM [NAME...] takes the program out of the folder, and adds a
# symbolic link to it for each name. The program has to look for its libraries in ../lib (DT_RPATH). For pack_test.py,
# COHORT_PACK_MOST_BYTES and COHORT_PACK_GLIBC replace the two limits.
set -euo pipefail

MOST_BYTES="${COHORT_PACK_MOST_BYTES:-$((24 << 20))}"
# The other machine has glibc of this version or a later one.
GLIBC="${COHORT_PACK_GLIBC:-2.36}"
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
# It has these libraries: they belong to glibc.
OF_GLIBC='^(ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libutil)\.so'
. "$ROOT/tests/gpu/libraries_of_cuda.sh"

fail() {
  printf 'pack.sh: %s\n' "$1" >&2
  exit 1
}

[[ $# -ge 3 ]] || fail "usage: pack.sh FOLDER ARCHIVE PROGRAM [NAME...]"
BIN="$1" ARCHIVE="$2" PROGRAM="$3"
shift 3
[[ -x $BIN/$PROGRAM ]] || fail "there is no program $BIN/$PROGRAM"

# Prints "name path" of each library that the file needs to start.
libraries_of() { ldd "$1" | awk '$2 == "=>" { print $1, $3 } $2 ~ /^\(/ { print $1, $1 }'; }

of_other_machine() { [[ ${1##*/} =~ $OF_GLIBC || $1 == linux-vdso* ]]; }

staged="$(mktemp -d)"
trap 'rm -rf "$staged"' EXIT
pack="$staged/cohort-gpu"
mkdir -p "$pack/bin" "$pack/lib" "$pack/bench"

while read -r name path; do
  if [[ $name =~ $OF_CUDA ]]; then fail "$PROGRAM needs $name to start, and must not"; fi
  if [[ $path == not ]]; then fail "$PROGRAM needs $name, which is not here"; fi
  of_other_machine "$name" || cp -L "$path" "$pack/lib/$name"
done < <(libraries_of "$BIN/$PROGRAM")
strip -o "$pack/bin/$PROGRAM" "$BIN/$PROGRAM"
find "$pack/lib" -type f -exec chmod u+w {} + -exec strip --strip-unneeded {} +
for name in "$@"; do ln -s "$PROGRAM" "$pack/bin/$name"; done

cp "$ROOT/tests/gpu/run.sh" "$pack/test.sh"
cp "$ROOT/tests/gpu/gpu_tests.txt" "$pack/"
cp "$ROOT"/bench/gpu/*.py "$ROOT/bench/gpu/run.sh" "$ROOT/bench/gpu/README.md" "$pack/bench/"
cp "$ROOT/LICENSE" "$pack/"

# As on the other machine: each library comes from the archive, or belongs to glibc.
while read -r name path; do
  of_other_machine "$name" || [[ $(realpath -m "$path") == "$(realpath "$pack")/lib/"* ]] ||
    fail "$PROGRAM takes $name from $path, and not from the archive; it needs DT_RPATH with \$ORIGIN/../lib"
done < <(env -u LD_LIBRARY_PATH ldd "$pack/bin/$PROGRAM" | awk '$2 == "=>" { print $1, $3 }')

for name in "$@"; do
  [[ $name != *_test ]] || { listed="$("$pack/bin/$name" --gtest_list_tests)" && [[ -n $listed ]]; } ||
    fail "$name, as a link to $PROGRAM, lists no tests"
done

# No file may need a function that glibc has only since a later version.
while read -r file; do
  newest="$(objdump -p "$file" | grep -oE '\bGLIBC_[0-9.]+$' | sort -uV | tail -n 1)" || continue  # it needs none
  [[ $(printf 'GLIBC_%s\n%s\n' "$GLIBC" "$newest" | sort -V | tail -n 1) == "GLIBC_$GLIBC" ]] ||
    fail "${file#"$pack"/} needs $newest; the other machine may have no more than GLIBC_$GLIBC. Build on an older system"
done < <(find "$pack/bin" "$pack/lib" -type f)

mkdir -p "$(dirname "$ARCHIVE")"
# The filter of xz for x86 makes the archive 2% smaller.
tar -C "$staged" --sort=name --owner=0 --group=0 --mtime=@0 -cf - cohort-gpu | xz -T1 --x86 --lzma2=preset=9e,dict=192MiB >"$ARCHIVE"
size="$(stat -c %s "$ARCHIVE")"
printf '%s: %d.%d MiB, %d programs, %d libraries\n' "$ARCHIVE" $((size >> 20)) $(((size % (1 << 20)) * 10 >> 20)) $# \
  "$(find "$pack/lib" -type f | wc -l)"
[[ $size -le $MOST_BYTES ]] ||
  fail "the archive has $size bytes; at most $MOST_BYTES are allowed. Leave a suite out (tests/gpu/programs/packed.txt)"
