#!/usr/bin/env bash
# This script is `./dev demo`. It runs two trainings on a local cluster of 2 parameter servers and 2 workers, which are
# four processes. Then it runs a training on two workers that stay equal by all-reduce.
# Requires: the programs are built. COHORT_BUILD_DIR names the build folder (default: build/release).
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
BIN="${COHORT_BUILD_DIR:-$ROOT/build/release}/bin"
LOGS="$ROOT/build/demo"
CLUSTER=(--ps=2 --workers=2)
LINEAR_STEPS=20000
MNIST_STEPS=3000
MIRRORED_IMAGES=6000

usage_error() {
  printf 'demo: %s\n      see ./dev demo --help\n' "$1" >&2
  exit 2
}

parse_arguments() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      --fresh) rm -rf "$LOGS" ;;
      --steps | --steps=*)
        local steps="${1#--steps=}"
        if [[ $1 == --steps ]]; then
          [[ $# -gt 1 ]] || usage_error "--steps needs a number"
          steps="$2" && shift
        fi
        [[ $steps =~ ^[1-9][0-9]*$ ]] || usage_error "--steps needs a positive number; got '$steps'"
        LINEAR_STEPS="$steps" MNIST_STEPS="$steps" MIRRORED_IMAGES=$((steps < 500 ? steps : 6000))
        ;;
      *) usage_error "unknown argument '$1'" ;;
    esac
    shift
  done
}

# Prints the file name of the newest checkpoint in a folder ("model.ckpt-2000"), or nothing if there is none.
newest_checkpoint() {
  [[ ! -f $1/checkpoint ]] || sed -n 's/^model_checkpoint_path: "\(.*\)"$/\1/p' "$1/checkpoint" | sed 's,.*/,,'
}

# train FOLDER PROGRAM STEPS [FLAGS...]: trains for STEPS more steps on the cluster and prints a summary of the output.
# If the folder has a checkpoint, the training goes on from it.
train() {
  local logdir="$LOGS/$1" program="$2" steps="$3" output checkpoint
  shift 3
  checkpoint="$(newest_checkpoint "$logdir")"
  mkdir -p "$logdir"
  output="$logdir/output.log"
  if [[ $checkpoint =~ -([0-9]+)$ ]]; then
    printf '\n=== %s: going on from %s/%s\n' "$program" "$logdir" "$checkpoint"
    steps=$((steps + BASH_REMATCH[1]))
  else
    printf '\n=== %s: 2 parameter servers, 2 workers\n' "$program"
  fi
  # With pipefail the exit status is that of the launcher.
  "$BIN/cohort" launch "${CLUSTER[@]}" -- "$BIN/$program" --logdir="$logdir" --max_steps="$steps" "$@" \
    2>&1 </dev/null | tee "$output" ||
    { printf 'demo: %s failed; its output is in %s\n' "$program" "$output" >&2 && exit 1; }
  summarize "$program" "$logdir" "$output"
}

# Prints each worker's last "... 1234.5 steps/s" and the newest checkpoint. The launcher puts "[worker/0] " before the
# lines of a worker.
summarize() {
  local program="$1" logdir="$2" output="$3" worker speed
  printf -- '--- %s\n' "$program"
  while read -r worker; do
    speed="$(grep -F "$worker" "$output" | grep -oE '[0-9.]+ steps/s' | tail -n 1 || true)"
    printf '    %s %s\n' "$worker" "${speed:-printed no steps/s}"
  done < <(grep -oE '^\[worker/[0-9]+\]' "$output" | sort -u)
  grep -oE 'test accuracy: .*' "$output" | sed 's/^/    /' || true
  printf '    checkpoint: %s\n' "$logdir/$(newest_checkpoint "$logdir")"
}

# Trains on two workers. Each has a copy of the network and one thread, and their gradients are summed in every step. The
# launcher writes to the terminal itself, so that the progress bar is seen, and also to files.
train_mirrored() {
  local logdir="$LOGS/mirrored"
  mkdir -p "$logdir"
  printf '\n=== fashion_mnist: 2 workers, MultiWorkerMirroredStrategy, %s images\n' "$MIRRORED_IMAGES"
  "$BIN/cohort" launch --workers=2 --output_dir="$logdir" -- "$BIN/fashion_mnist" --strategy=multi_worker --threads=1 \
    --epochs=2 --max_images="$MIRRORED_IMAGES" --logdir="$logdir" 2>&1 </dev/null ||
    { printf 'demo: fashion_mnist failed; its output is in %s/worker-*.log\n' "$logdir" >&2 && exit 1; }
  printf -- '--- fashion_mnist\n'
  grep -oE 'test accuracy: .*' "$logdir/worker-0.log" | sed 's/^/    /' || true
  printf '    model (Keras opens it): %s\n    learning curves: %s\n' "$logdir/model.keras" "$logdir/curves.svg"
}

main() {
  parse_arguments "$@"
  # The programs find the images by COHORT_DATA_DIR. If it names a folder without them, they fail.
  local images=fashion_mnist
  if [[ -z ${COHORT_DATA_DIR:-} ]]; then
    images=generated_images
    printf '\nCOHORT_DATA_DIR is not set: the classifiers train on GENERATED images, on which accuracies mean nothing.\n'
    printf 'For real ones put the four *-ubyte.gz files of Fashion-MNIST into DIR/fashion-mnist and set it to DIR.\n'
  fi
  printf '\nDevices of this machine:\n'
  "$BIN/cohort" devices | sed 's/^/    /'
  train linear_regression linear_regression "$LINEAR_STEPS" --steps_to_validate=2000 --learning_rate=0.001
  train "$images" mnist_classifier "$MNIST_STEPS"
  train_mirrored
  printf '\nLook at the runs:      tensorboard --logdir %s\n' "$LOGS"
  printf 'Train further:         ./dev demo      (from the start: ./dev demo --fresh)\n'
  if [[ $images == generated_images ]]; then
    printf 'The accuracies above are of GENERATED images, because COHORT_DATA_DIR is not set.\n'
  fi
}

main "$@"
