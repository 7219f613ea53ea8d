// The settings of gRPC that both sides of a connection use.
#pragma once

#include <grpc/grpc.h>

#include "cohort/cluster/grpc/frame.h"

namespace cohort {

struct Tuning {
  const char* name;
  int value;
};
// See docs/benchmarks.md for what each of them brings.
inline constexpr Tuning kTuning[] = {
    {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, static_cast<int>(kLargestFrame)},
    {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1},
    {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 16777215},
    {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 20},
    {GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, 64 << 20},
    {GRPC_ARG_HTTP2_BDP_PROBE, 0},
    {GRPC_ARG_TCP_READ_CHUNK_SIZE, 1 << 20},
    {GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, 64 << 10},
    {GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 4 << 20},
};

}  // namespace cohort
