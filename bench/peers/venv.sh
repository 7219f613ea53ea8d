#!/bin/sh
# Makes the Python environment of the peer benchmarks and the interop tests. Does nothing if it is up to date.
set -eu

usage() {
  cat <<'EOF'
usage: bench/peers/venv.sh [--force]

Makes a virtual environment with the packages of bench/peers/requirements.txt and prints the path of its
python on the last line of stdout.

  --force        make it anew
  COHORT_VENV    where it lies (default: build/venv in the repository)
  PYTHON         the interpreter to make it with (default: /usr/bin/python3, else python3)
EOF
}

force=no
for arg in "$@"; do
  case "$arg" in
    -h | --help) usage; exit 0 ;;
    --force) force=yes ;;
    *) echo "venv.sh: unknown argument: $arg" >&2; usage >&2; exit 2 ;;
  esac
done

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=${COHORT_VENV:-build/venv}
case "$venv" in /*) ;; *) venv=$root/$venv ;; esac
requirements=$here/requirements.txt
stamp=$venv/requirements.installed

if [ -n "${PYTHON:-}" ]; then python=$PYTHON
elif [ -x /usr/bin/python3 ]; then python=/usr/bin/python3
else python=python3; fi

if [ "$force" = no ] && cmp -s "$requirements" "$stamp" && "$venv/bin/python" -c '' 2>/dev/null; then
  echo "$venv/bin/python"
  exit 0
fi

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
  { echo "venv.sh: $python: need Python 3.10 or newer; set PYTHON" >&2; exit 1; }
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
  { echo "venv.sh: $python cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }

# --clear removes everything in the folder. So use it only on a folder that an earlier run of venv made.
if [ -e "$venv" ] && [ ! -f "$venv/pyvenv.cfg" ] && [ -n "$(ls -A "$venv")" ]; then
  echo "venv.sh: $venv exists and is no virtual environment; set COHORT_VENV to another folder" >&2
  exit 1
fi
rm -f "$stamp"
"$python" -m venv --clear "$venv" >&2
"$venv/bin/python" -m pip install --disable-pip-version-check -r "$requirements" >&2
TF_CPP_MIN_LOG_LEVEL=3 "$venv/bin/python" -c 'import keras, numpy, onnxruntime, tensorboard, tensorflow' 2>/dev/null ||
  { echo "venv.sh: the packages were installed but do not import; see: $venv/bin/python -c 'import tensorflow'" >&2; exit 1; }
cp "$requirements" "$stamp"
echo "$venv/bin/python"
