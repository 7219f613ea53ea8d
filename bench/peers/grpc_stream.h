// A peer: raw gRPC streams of ByteBuffers, without protobuf and generated code. grpc_stream.cc says what is measured.
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

// The API of gRPC that a side uses: blocking calls, reactors, a completion queue, or a completion queue that is polled
// without sleeping. Only blocking calls serve the bulk modes.
enum class Api { kSync, kCallback, kQueue, kSpin };

constexpr char kMethod[] = "/cohort.bench.Stream/Talk";

// Channel arguments that make bulk transfers measurably faster. Both sides set them.
struct Argument {
  const char* name;
  int value;
};
const std::vector<Argument>& TunedArguments();

// Returns a message that refers to the bytes and does not copy them. `data` must outlive it.
grpc::ByteBuffer StaticMessage(const void* data, size_t size);

// Copies a message to `to`, at most `capacity` bytes, and returns its length.
size_t CopyOut(const grpc::ByteBuffer& message, void* to, size_t capacity);

// Returns `size` bytes of a pattern. They were written, so their pages exist.
std::vector<char> WarmBuffer(size_t size);

// Serves `address` ("127.0.0.1:0" or "unix:PATH") until the process is killed. Writes the port (0 for unix) to
// `port_fd` when it listens.
void Serve(const std::string& address, Api api, bool tuned, int port_fd);

// Returns the times in microseconds of round trips of messages with `payload` bytes, one at a time. Checks the echoed
// bytes.
std::vector<double> PingPong(const std::string& target, Api api, bool tuned, int count, size_t payload);

struct Bulk {
  std::vector<double> pull_seconds, push_seconds;  // seconds for each transfer of `bytes`
};
Bulk MeasureBulk(const std::string& target, bool tuned, size_t bytes, size_t chunk, int repeats);

}  // namespace grpc_stream
