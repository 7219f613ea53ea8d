// GlooMesh: Gloo (libgloo) without its headers: one member's connections to all others, and Gloo's collectives over
// them. Internal to gloo/.
//
// The connections are Gloo's own TCP sockets, on `host` alone and on ports that the system chooses: plain bytes, with
// no handshake. A program that connects to one of these ports before the peer does is taken for the peer, and bytes
// that are not Gloo's end the process on Gloo's thread. So use it only in networks that you trust.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cohort::collective {

// One member's connections. Its GlooLane owns it. One thread at a time may call it; only Break, Close and waits_for may
// be called by any thread. All members have to make the same calls in the same order, which nothing checks. A call
// blocks until the bytes have moved, until Break, or until nothing has moved for a minute. It throws UnavailableError
// with what Gloo reports; the mesh is then broken.
class GlooMesh {
 public:
  // Computes out[0, n) = a[0, n) op b[0, n). `out` may be `a` or `b`.
  using Combine = std::function<void(void* out, const void* a, const void* b, size_t n)>;

  virtual ~GlooMesh() = default;
  // Returns what the other members need for Connect.
  virtual const std::string& Endpoint() const = 0;
  // Connects to all other members. `endpoints` has the Endpoint of each rank; the own one is ignored. Takes at most
  // some seconds. Throws DataLossError for a malformed endpoint, UnavailableError that names the rank.
  virtual void Connect(const std::vector<std::string>& endpoints) = 0;
  // Replaces `data` by the reduction of all members' `count` elements of `element_size` bytes (1, 2, 4 or 8).
  virtual void AllReduce(void* data, size_t count, size_t element_size, const Combine& combine, uint32_t tag) = 0;
  // Replaces `data` by that of the root.
  virtual void Broadcast(void* data, size_t bytes, int root, uint32_t tag) = 0;
  // Requires: `out` has room for the bytes of all members.
  virtual void AllGather(const void* in, size_t bytes, void* out, uint32_t tag) = 0;

  // Makes the call that is under way and all later ones throw, except Connect. Does not wait. May be called again.
  virtual void Break() = 0;
  // Breaks the mesh and closes all connections, which takes some milliseconds each. Ends Connect, too.
  virtual void Close() = 0;
  // Returns the rank that Gloo waits for, or -1.
  virtual int waits_for() const = 0;
};

// Makes a mesh for each entry of `ranks`, which may contain a rank several times. They listen on `host`, an address or
// name of this machine, and share a thread that moves the bytes. Throws UnavailableError if nothing can listen there.
std::vector<std::unique_ptr<GlooMesh>> MakeGlooMeshes(const std::string& host, const std::vector<int>& ranks,
                                                      int world);

// Blocks SIGPIPE on the calling thread. Call it on each thread that calls a mesh: Gloo writes to sockets that may be
// closed, and SIGPIPE would end the process.
void BlockBrokenPipeSignal();

}  // namespace cohort::collective
