// Peer: raw gRPC ByteBuffer streams, without protobuf and generated code. See grpc_stream.cc for what is
// measured.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <string>
#include <vector>

namespace grpc_stream {

// The first message of every stream says what the server shall do.
enum class Mode : uint32_t {
  kEcho,  // send every message back
  kPull,  // for every request message send `bytes` in chunks of `chunk`
  kPush,  // take `bytes` in chunks of `chunk`, copy them to a warm buffer, then send a 1-byte acknowledgement
};

struct Hello {
  Mode mode;
  uint64_t bytes;
  uint64_t chunk;
};

// Which API of gRPC a side uses: blocking calls, reactors, a completion queue, or one polled without
// sleeping. Bulk modes are served by blocking calls only.
enum class Api { kSync, kCallback, kQueue, kSpin };

constexpr char kMethod[] = "/cohort.bench.Stream/Talk";

// Channel arguments that measurably help bulk transfers; both sides set them.
struct Argument {
  const char* name;
  int value;
};
const std::vector<Argument>& TunedArguments();

// A message whose bytes stay where they are; `data` must outlive it.
grpc::ByteBuffer StaticMessage(const void* data, size_t size);

// Copies a message to `to`, at most `capacity` bytes, and returns its length.
size_t CopyOut(const grpc::ByteBuffer& message, void* to, size_t capacity);

// `size` bytes of a pattern, touched, so that the pages are there.
std::vector<char> WarmBuffer(size_t size);

// Serves `address` ("127.0.0.1:0" or "unix:PATH") until the process is killed; writes the port (0 for unix)
// to `port_fd` once it listens.
void Serve(const std::string& address, Api api, bool tuned, int port_fd);

// Round trips of `payload`-byte messages in microseconds, one at a time; the echoed bytes are checked.
std::vector<double> PingPong(const std::string& target, Api api, bool tuned, int count, size_t payload);

struct Bulk {
  std::vector<double> pull_seconds, push_seconds;  // of `bytes` each
};
Bulk MeasureBulk(const std::string& target, bool tuned, size_t bytes, size_t chunk, int repeats);

}  // namespace grpc_stream

