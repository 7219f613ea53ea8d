// GlooMesh: one member's Gloo connections to all other members, and Gloo's collectives over them. This header hides
// Gloo's own headers. Internal to gloo/.
//
// The connections are Gloo's own TCP sockets on the `host` of MakeGlooMeshes, with ports that the system chooses. They
// carry plain bytes and have no handshake. A program that connects to such a port before the peer does is taken for the
// peer. If it sends bytes that are not Gloo's, Gloo's thread ends this process. So use GlooMesh only in networks that
// you trust.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cohort::collective {

// One member's connections to all others. A GlooLane owns it. One thread at a time may call it; only Break, Close and
// waits_for may be called by any thread at any time. All members have to make the same collectives in the same order,
// which nothing checks. AllReduce, Broadcast and AllGather wait until the bytes have moved. They throw UnavailableError
// with Gloo's report if a connection breaks, if Break or Close is called, or if no byte has moved for a minute.
// After such an error, run no further collective on the mesh. Gloo uses `tag` to tell the messages of two collectives
// apart; it must be equal at all members.
class GlooMesh {
 public:
  // Computes out[0, n) = a[0, n) op b[0, n). `out` may be `a` or `b`.
  using Combine = std::function<void(void* out, const void* a, const void* b, size_t n)>;

  virtual ~GlooMesh() = default;
  // Returns the address that the other members need for Connect.
  virtual const std::string& Endpoint() const = 0;
  // Connects to all other members. `endpoints` has the Endpoint of each rank; this rank's entry is ignored. Waits at
  // most 30 s for each connection. Throws DataLossError if an endpoint has a wrong size. Throws UnavailableError if the
  // connection to a member cannot be made, or if Break or Close is called; the message names the rank of the member.
  virtual void Connect(const std::vector<std::string>& endpoints) = 0;
  // Replaces `data` by the reduction of all members' `count` elements of `element_size` bytes (1, 2, 4 or 8).
  virtual void AllReduce(void* data, size_t count, size_t element_size, const Combine& combine, uint32_t tag) = 0;
  // Replaces `data` by the root's data.
  virtual void Broadcast(void* data, size_t bytes, int root, uint32_t tag) = 0;
  // Copies every member's `bytes` bytes at `in` to `out`, in the order of ranks. Requires: `out` has room for them.
  virtual void AllGather(const void* in, size_t bytes, void* out, uint32_t tag) = 0;

  // Makes a running AllReduce, Broadcast or AllGather throw, and also every later call of them. Does not wait. May be
  // called again.
  virtual void Break() = 0;
  // Calls Break and closes all connections, which takes some milliseconds for each. A running Connect throws.
  virtual void Close() = 0;
  // Returns the rank that Gloo waits for, or -1 if it waits for none.
  virtual int waits_for() const = 0;
};

// Makes a mesh for each entry of `ranks`, which may contain a rank several times. The meshes listen on `host`, an
// address or name of this machine. They share a thread that moves the bytes. Throws UnavailableError if Gloo cannot
// listen on `host`.
std::vector<std::unique_ptr<GlooMesh>> MakeGlooMeshes(const std::string& host, const std::vector<int>& ranks,
                                                      int world);

// Blocks SIGPIPE on the calling thread. Call it on each thread that calls a mesh: Gloo writes to sockets that may be
// closed, and SIGPIPE would end the process.
void BlockBrokenPipeSignal();

}  // namespace cohort::collective
