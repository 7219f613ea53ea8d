#!/bin/sh
# Compiles the raw gRPC peer against the system's gRPC.
set -eu

case "${1:-}" in
  -h | --help)
    cat <<'EOF'
usage: bench/peers/build_grpc.sh [OUTPUT]

Compiles bench/peers/grpc_stream*.cc to OUTPUT (default: build/peers/grpc_stream in the repository) and prints its
path; does nothing else when OUTPUT is newer than they are. Needs gRPC's headers and pkg-config (Debian:
libgrpc++-dev). CXX chooses the compiler (default: g++).
EOF
    exit 0 ;;
esac

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
output=${1:-$root/build/peers/grpc_stream}
if [ -x "$output" ] && [ -z "$(find "$here"/grpc_stream* -newer "$output")" ]; then
  echo "$output"
  exit 0
fi
pkg-config --exists grpc++ || { echo "build_grpc.sh: no gRPC C++; on Debian: apt-get install libgrpc++-dev" >&2; exit 1; }

mkdir -p "$(dirname "$output")"
"${CXX:-g++}" -std=c++20 -O2 -Wall -Wextra -I"$here" $(pkg-config --cflags grpc++) \
  "$here/grpc_stream.cc" "$here/grpc_stream_server.cc" "$here/grpc_stream_client.cc" -o "$output" \
  -Wl,--as-needed $(pkg-config --libs grpc++) -lpthread >&2
echo "$output"
