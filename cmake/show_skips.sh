#!/usr/bin/env bash
# Runs a program of GoogleTest: show_skips.sh PROGRAM [ARGUMENTS]. Exits with 77, which ctest reports as skipped, if a case was
# skipped and none has failed. (With ctest's SKIP_REGULAR_EXPRESSION a program that fails is reported as skipped, too.)
set -uo pipefail
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
"$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
[[ $status -eq 0 ]] || exit "$status"
! grep -qF '[  SKIPPED ]' "$log" || exit 77
