// GlooMesh: Gloo (libgloo) without its headers - one member's connections to all others, and Gloo's collectives over
// them. Internal to collective/. mesh.cc is the real one, absent.cc stands for it where Gloo was not found.
//
// The connections are Gloo's own TCP sockets, on `host` alone and on ports that the system chooses: plain bytes, with
// no handshake. Who connects to a port of ours before the peer does is taken for the peer, and bytes that are not
// Gloo's end the process on Gloo's thread: only for networks on which nobody is ill-disposed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cohort::collective {

// Whether Gloo was found when this was built.
bool GlooIsBuilt();

// What can be called is called by one thread, but for Break, Close and waits_for; all members make the same calls in
// the same order, which nobody checks. The calls block: until the bytes have moved, until Break, or until nothing has
// moved for a minute. They throw UnavailableError with what Gloo says; the mesh is broken then.
class GlooMesh {
 public:
  // out[0, n) = a[0, n) op b[0, n); `out` may be `a` or `b`.
  using Combine = std::function<void(void* out, const void* a, const void* b, size_t n)>;

  virtual ~GlooMesh() = default;
  // What the others need to connect: for their Connect alone.
  virtual const std::string& Endpoint() const = 0;
  // `endpoints`: everybody's, by rank (its own does not count). Returns when all are connected, which they are within
  // seconds if they ever are. Throws DataLossError for an endpoint that is none, UnavailableError that names the rank.
  virtual void Connect(const std::vector<std::string>& endpoints) = 0;
  // `data` becomes the reduction of all members' `count` elements of `element_size` bytes (1, 2, 4 or 8).
  virtual void AllReduce(void* data, size_t count, size_t element_size, const Combine& combine, uint32_t tag) = 0;
  // `data` becomes the root's.
  virtual void Broadcast(void* data, size_t bytes, int root, uint32_t tag) = 0;
  // `out` has room for what all bring.
  virtual void AllGather(const void* in, size_t bytes, void* out, uint32_t tag) = 0;

  // What is under way and what comes later throws, but for Connect. Quick; from any thread, more than once.
  virtual void Break() = 0;
  // The same, and closes all connections, which takes some milliseconds each; ends Connect too.
  virtual void Close() = 0;
  // The rank that Gloo waits for, or -1. From any thread.
  virtual int waits_for() const = 0;
};

// One mesh for each of `ranks` (a rank may stand there several times), which listen on `host`, an address or name of
// this machine. They share a thread that moves the bytes. Throws UnavailableError for a host where nothing can listen,
// UnimplementedError where Gloo is not built.
std::vector<std::unique_ptr<GlooMesh>> MakeGlooMeshes(const std::string& host, const std::vector<int>& ranks,
                                                      int world);

// For threads that make a mesh's calls: Gloo writes to sockets that may be closed, and leaves the signal to be ended
// by.
void BlockBrokenPipeSignal();

}  // namespace cohort::collective
