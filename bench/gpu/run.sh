#!/usr/bin/env bash
# Measures on a GPU: run.sh ours|peers [FOLDER WITH gpu_steps]. Each of the two takes at most ten minutes, and prints one JSON
# object on each line; README.md explains them. The peers need a Python (PYTHON, else python3) with torch, with jax, or both.
set -uo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
WHAT="${1:-}"
PYTHON="${PYTHON:-python3}"
[[ $PYTHON != */* ]] || PYTHON="$(realpath -s "$PYTHON")" # a path holds from any folder
STEPS="${2:-$HERE/../bin}/gpu_steps"

ours() {
  [[ -x $STEPS ]] || { printf 'run.sh: there is no %s: run ./dev build release gpu_steps, and name its folder\n' "$STEPS" >&2 && exit 1; }
  timeout 60 "$STEPS" kernels --batches=2048
  timeout 180 "$STEPS" network
  timeout 30 "$STEPS" perceptron --batches=64
  timeout 120 "$STEPS" fit
  timeout 60 "$STEPS" fit --batches=2048 --precisions=float32 --replicas=2
  timeout 20 "$STEPS" losses --batches=64
  timeout 90 "$STEPS" losses --batches=64 --device=/cpu:0
}

peers() {
  cd "$HERE" || exit 1
  timeout 60 "$PYTHON" -B torch_ceilings.py
  timeout 20 "$PYTHON" -B torch_network.py --network=perceptron --batches=64 --modes=eager,graph --orders=rows
  # The peer's slowest settings are the last ones, and are left out if the time is over.
  timeout 380 "$PYTHON" -B torch_network.py --seconds=330
  timeout 20 "$PYTHON" -B jax_network.py --network=perceptron --batches=64
  timeout 110 "$PYTHON" -B jax_network.py --seconds=90
}

case $WHAT in
  ours | peers) "$WHAT" ;;
  *) printf 'usage: run.sh ours|peers [FOLDER WITH gpu_steps]\n' >&2 && exit 2 ;;
esac
