#!/bin/sh
# Compiles tf_capi_session_run.cc against the libraries and headers of the tensorflow wheel in the environment.
set -eu

case "${1:-}" in
  -h | --help)
    cat <<'EOF'
usage: bench/peers/build_capi.sh [OUTPUT]

Compiles bench/peers/tf_capi_session_run.cc to OUTPUT (default: build/peers/tf_capi_session_run in the repository)
and prints its path; does nothing else when OUTPUT is newer than its source and the environment. Runs venv.sh
first. CXX chooses the compiler (default: g++).
EOF
    exit 0 ;;
esac

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
output=${1:-$root/build/peers/tf_capi_session_run}
python=$("$here/venv.sh" | tail -n 1)
venv=$(dirname "$(dirname "$python")")
if [ -x "$output" ] &&
  [ -z "$(find "$here/tf_capi_session_run.cc" "$venv/requirements.installed" -newer "$output")" ]; then
  echo "$output"
  exit 0
fi
# find_spec does not import the package. An import would take seconds and print text.
tf=$("$python" -c 'import importlib.util as u, os; print(os.path.dirname(u.find_spec("tensorflow").origin))')

mkdir -p "$(dirname "$output")"
"${CXX:-g++}" -std=c++17 -O2 -Wall -Wextra -isystem "$tf/include" "$here/tf_capi_session_run.cc" -o "$output" \
  -L"$tf" -l:libtensorflow_cc.so.2 -l:libtensorflow_framework.so.2 -Wl,-rpath,"$tf" >&2
echo "$output"
