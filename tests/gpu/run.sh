#!/usr/bin/env bash
# Runs the test suites of GPUs on the cards of this machine: run.sh [FOLDER WITH THE PROGRAMS] [--no_sanitizer] [--suite=NAME ...].
# --suite runs this suite only, and can be given more than once; `--suite=memcheck` and `--suite=racecheck` are the runs under
# compute-sanitizer. With --list it runs nothing: it prints how many tests of each suite it would run, and fails if a suite has
# none, or a test whose name says GPU and that would not run. COHORT_GPU_SUITE_SECONDS: a suite that takes longer is ended (default: 900). COHORT_GPU_LOG names a file that gets the
# whole output of all suites while they run; otherwise only the end of the output of a suite that fails is printed.
# `./dev test gpu` calls it, and `./dev gpu-pack` puts it into its archive. It exits with 1 if a suite fails, and with 3 if there
# is no card, after saying so. COHORT_CARD_SIGNS names other files than the driver's as signs of a card, for run_test.py.
set -uo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
BIN="$HERE/bin"
SANITIZER=yes LIST=no CHOSEN=()
for argument in "$@"; do
  case $argument in
    --no_sanitizer) SANITIZER=no ;;
    --list) LIST=yes ;;
    --suite=*) CHOSEN+=("${argument#--suite=}") ;;
    -*) printf 'run.sh: unknown argument %s\n' "$argument" >&2 && exit 2 ;;
    *) BIN="$argument" ;;
  esac
done

# The comparison of all op cases and of the backend's kernels with those of the CPU, the backend's own suites, the suites that run
# their tests once for each kind of device, and programs. A test that needs the fake driver is skipped, and says why. The faults
# come last, because they end the use of a card.
SUITES=(cuda_op_cases_test cuda_kernels_test cuda_test cuda_recording_test cuda_session_test runtime_test distribute_test keras_test
  collective_test server_test backends_test gpu_worker_test gpu_programs_test cuda_faults_test)
# The part of each suite that is about GPUs. Those of the backend, and those of gpu_*, are all about them.
GPU_TESTS="$(grep -v '^#' "$HERE/gpu_tests.txt" | paste -s -d :)"
filter_of() { [[ $1 == cuda_* || $1 == gpu_* ]] && printf '*' || printf '%s' "$GPU_TESTS"; }

names_of() { # names_of SUITE FILTER: prints the sorted full names of the tests
  "$BIN/$1" --gtest_list_tests "--gtest_filter=$2" 2>/dev/null | awk '/^  / { print suite $1; next } { suite = $1 }' | sort
}

if [[ $LIST == yes ]]; then
  empty=() listed=0 forgotten=""
  for suite in "${SUITES[@]}"; do
    [[ -x $BIN/$suite ]] || continue
    listed=$((listed + 1))
    # Names of tests are indented, those of their suites are not.
    tests="$("$BIN/$suite" --gtest_list_tests "--gtest_filter=$(filter_of "$suite")" 2>/dev/null | grep -c '^  ')"
    printf '%-40s %5d tests\n' "$suite" "$tests"
    [[ $tests -gt 0 ]] || empty+=("$suite")
    forgotten+=" $(comm -23 <(names_of "$suite" '*GPU*:*Gpu*') <(names_of "$suite" "$(filter_of "$suite")") | xargs)"
  done
  [[ $listed -gt 0 ]] || { printf 'No suite was found in %s.\n' "$BIN" >&2 && exit 1; }
  forgotten="$(xargs <<<"$forgotten")"
  [[ -z $forgotten ]] || { printf 'the filter leaves out these tests, whose names say GPU: %s\n' "$forgotten" >&2 && exit 1; }
  [[ ${#empty[@]} -eq 0 ]] || { printf 'no test of GPUs is in: %s\n' "${empty[*]}" >&2 && exit 1; }
  exit 0
fi

read -ra SIGNS <<<"${COHORT_CARD_SIGNS:-/proc/driver/nvidia/version /dev/nvidiactl /dev/dxg}"
has_card() {
  local sign
  for sign in "${SIGNS[@]}"; do [[ ! -e $sign ]] || return 0; done
  return 1
}
if ! has_card; then
  printf 'There is no GPU here: /proc/driver/nvidia/version does not exist. Nothing was run on a card.\n' >&2
  printf 'The same suites run on a fake driver with ./dev test.\n' >&2
  exit 3
fi
command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=index,name,driver_version,memory.total --format=csv,noheader

export COHORT_TEST_CARD=1
failed=() run=0
KNOWN=("${SUITES[@]}" memcheck racecheck)
for name in "${CHOSEN[@]}"; do
  [[ " ${KNOWN[*]} " == *" $name "* ]] || { printf 'run.sh: there is no suite %s; the suites are: %s\n' "$name" "${KNOWN[*]}" >&2 && exit 2; }
done
is_chosen() { [[ ${#CHOSEN[@]} -eq 0 || " ${CHOSEN[*]} " == *" $1 "* ]]; }

run() { # run NAME COMMAND...: prints the name, then one line, and the output if the command fails
  local name="$1" log start=$SECONDS verdict=ok
  shift
  log="$(mktemp)"
  printf '%-40s ' "$name" # first: if this script is ended, too, one sees where
  if timeout -k 10 "${COHORT_GPU_SUITE_SECONDS:-900}" "$@" 2>&1 </dev/null | tee -a "${COHORT_GPU_LOG:-/dev/null}" >"$log"; then
    # A suite without a test of a GPU would be no success.
    grep -qE '^\[==========\] [1-9][0-9]* tests? from' "$log" || verdict='FAILED (no test ran)'
    ! grep -qE '^\[  PASSED  \] 0 tests' "$log" || verdict='FAILED (all tests were skipped)'
  else
    verdict="FAILED ($?)"
  fi
  printf '%5d s  %s  %s\n' "$((SECONDS - start))" "$verdict" "$(grep -E '^\[  (PASSED|SKIPPED)' "$log" | head -n 2 | xargs)"
  if [[ $verdict != ok ]]; then failed+=("$name") && tail -n 60 "$log"; fi
  rm -f "$log"
  run=$((run + 1))
}

for suite in "${SUITES[@]}"; do
  is_chosen "$suite" || continue
  if [[ -x $BIN/$suite ]]; then
    run "$suite" "$BIN/$suite" "--gtest_filter=$(filter_of "$suite")"
  else
    printf '%-40s         left out: there is no %s/%s\n' "$suite" "$BIN" "$suite"
  fi
done

# Keras's suites once more, with everything on a GPU that asks for no device; without those that train no model and those that
# name their devices.
if [[ -x $BIN/keras_test ]] && is_chosen keras_test; then
  run 'keras_test on a GPU' env COHORT_SUITE_DEVICE=GPU "$BIN/keras_test" \
    '--gtest_filter=-*Replicas*:OnnxExport*:Serialization*:DamagedModel*'
fi

if [[ $SANITIZER == yes ]] && { is_chosen memcheck || is_chosen racecheck; }; then
  checker="$(command -v compute-sanitizer || true)"
  [[ -n $checker || ! -x ${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer ]] ||
    checker="${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer"
  if [[ -z $checker ]]; then
    printf 'compute-sanitizer is not installed (it comes with the CUDA toolkit): memcheck and racecheck were not run.\n'
  elif [[ -x $BIN/cuda_op_cases_test ]]; then
    for tool in memcheck racecheck; do
      is_chosen "$tool" || continue
      for suite in cuda_op_cases_test cuda_kernels_test; do
        # Errors of the API are the programs' business: an event that is not reached yet is one.
        [[ ! -x $BIN/$suite ]] || run "compute-sanitizer $tool $suite" "$checker" --tool "$tool" --report-api-errors no \
          --error-exitcode 9 "$BIN/$suite"
      done
    done
  fi
fi

[[ $run -gt 0 ]] || { printf 'No suite was found in %s.\n' "$BIN" >&2 && exit 1; }
if [[ ${#failed[@]} -gt 0 ]]; then
  printf 'failed: %s\n' "${failed[*]}"
  exit 1
fi
