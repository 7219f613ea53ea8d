#!/bin/sh
# Makes a Python environment of the peer benchmarks and the interop tests. Does nothing if it is up to date.
set -eu

usage() {
  cat <<'EOF'
usage: bench/peers/venv.sh [--force] [current | tf215]

Makes a virtual environment and prints the path of its python on the last line of stdout.

  current        the packages of bench/peers/requirements.txt (the default)
  tf215          those of bench/peers/requirements-tf215.txt: the last TensorFlow with Keras 2 and Estimator
  --force        make it anew
  COHORT_VENV, COHORT_TF215_VENV   where they lie (default: build/venv and build/venv-tf215 in the repository)
  PYTHON         the interpreter to make it with (default: /usr/bin/python3, else python3); tf215 needs 3.10 or 3.11
EOF
}

force=no
packages=current
for arg in "$@"; do
  case "$arg" in
    -h | --help) usage; exit 0 ;;
    --force) force=yes ;;
    current | tf215) packages=$arg ;;
    *) echo "venv.sh: unknown argument: $arg" >&2; usage >&2; exit 2 ;;
  esac
done

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
case "$packages" in
  current)
    venv=${COHORT_VENV:-build/venv} variable=COHORT_VENV requirements=$here/requirements.txt
    needed='3.10 or newer' test_version='sys.version_info >= (3, 10)'
    modules='keras, keras_rs, numpy, onnxruntime, tensorboard, tensorflow' ;;
  tf215)
    venv=${COHORT_TF215_VENV:-build/venv-tf215} variable=COHORT_TF215_VENV requirements=$here/requirements-tf215.txt
    needed='3.10 or 3.11' test_version='sys.version_info[:2] in ((3, 10), (3, 11))'
    modules='numpy, tensorflow, tensorflow_estimator' ;;
esac
case "$venv" in /*) ;; *) venv=$root/$venv ;; esac
stamp=$venv/requirements.installed

if [ -n "${PYTHON:-}" ]; then python=$PYTHON
elif [ -x /usr/bin/python3 ]; then python=/usr/bin/python3
else python=python3; fi

finish_if_up_to_date() { # the stamp is written last, so a folder that has it is complete
  if [ "$force" = no ] && cmp -s "$requirements" "$stamp" && "$venv/bin/python" -c '' 2>/dev/null; then
    echo "$venv/bin/python"
    exit 0
  fi
}
finish_if_up_to_date

# Two runs for one folder wait for each other. Otherwise the second one would clear what the first one is installing.
mkdir -p "$(dirname "$venv")"
exec 9>"$venv.lock"
flock -n 9 || { echo "venv.sh: waiting for another run that makes $venv" >&2; flock 9; finish_if_up_to_date; }

"$python" -c "import sys; sys.exit(not ($test_version))" ||
  { echo "venv.sh: $python: need Python $needed; set PYTHON" >&2; exit 1; }
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
  { echo "venv.sh: $python cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }

# --clear removes everything in the folder. So use it only on a folder that an earlier run of venv made.
if [ -e "$venv" ] && [ ! -f "$venv/pyvenv.cfg" ] && [ -n "$(ls -A "$venv")" ]; then
  echo "venv.sh: $venv exists and is no virtual environment; set $variable to another folder" >&2
  exit 1
fi
rm -f "$stamp"
"$python" -m venv --clear "$venv" >&2
"$venv/bin/python" -m pip install --disable-pip-version-check -r "$requirements" >&2
TF_CPP_MIN_LOG_LEVEL=3 "$venv/bin/python" -c "import $modules" 2>/dev/null ||
  { echo "venv.sh: the packages were installed but do not import; see: $venv/bin/python -c 'import tensorflow'" >&2; exit 1; }
cp "$requirements" "$stamp"
echo "$venv/bin/python"
