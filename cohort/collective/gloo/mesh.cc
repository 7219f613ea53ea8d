// GlooMesh, on Gloo's own classes. WakeableContext replaces Gloo's transport context, so that Break can wake a thread
// that waits in a Gloo call; Gloo itself has no such function. Mesh connects one member to all others and runs Gloo's
// algorithms. AddressOf turns a host name into one numeric address.
#include "cohort/collective/gloo/mesh.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <netdb.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

using gloo::transport::UnboundBuffer;
using std::chrono::milliseconds;

// Gloo waits for a connection five times as long as the timeout of a pair.
constexpr milliseconds kConnectLimit = std::chrono::seconds(30);
constexpr milliseconds kStallLimit = std::chrono::seconds(60);

// For smaller tensors Gloo's ring is not used: it is up to ten times slower if there are more members than cores, and
// it is the algorithm that stalls after small messages. For much larger tensors it is faster (bench/collective_bench
// --sides=gloo --before=4096).
constexpr size_t kRingFrom = 32 * 1024 * 1024;

// Gloo has no function that ends a wait. Closing a connection wakes a thread that waits for its next message, but not a
// thread that waits for the rest of a message. So every buffer that Gloo makes for itself is replaced by a buffer that
// Break can wake.
class WakeableContext final : public gloo::transport::Context {
 public:
  explicit WakeableContext(std::shared_ptr<gloo::transport::Context> gloos)
      : gloo::transport::Context(gloos->rank, gloos->size), gloos_(std::move(gloos)) {}

  std::unique_ptr<gloo::transport::Pair>& getPair(int peer) override { return gloos_->getPair(peer); }
  std::unique_ptr<gloo::transport::Pair>& createPair(int peer) override { return gloos_->createPair(peer); }
  std::unique_ptr<UnboundBuffer> createUnboundBuffer(void* data, size_t size) override;

  void WakeAll() COHORT_EXCLUDES(mu_);
  void CheckWhole() const {
    if (broken_.load()) throw gloo::IoException("the connections were closed");
  }
  int waits_for() const { return waits_for_.load(std::memory_order_relaxed); }

 private:
  class Buffer;

  const std::shared_ptr<gloo::transport::Context> gloos_;
  std::atomic<bool> broken_{false};
  std::atomic<int> waits_for_{-1};
  Mutex mu_;
  std::set<Buffer*> buffers_ COHORT_GUARDED_BY(mu_);
};

class WakeableContext::Buffer final : public UnboundBuffer {
 public:
  Buffer(WakeableContext& context, void* data, size_t size)
      : UnboundBuffer(data, size), context_(context), gloos_(context.gloos_->createUnboundBuffer(data, size)) {
    MutexLock lock(context_.mu_);
    context_.buffers_.insert(this);
  }
  ~Buffer() override {
    MutexLock lock(context_.mu_);
    context_.buffers_.erase(this);
  }

  bool waitRecv(int* rank, milliseconds timeout) override {
    return With(source_, [&] { return gloos_->waitRecv(rank, timeout); });
  }
  bool waitSend(int* rank, milliseconds timeout) override {
    return With(target_, [&] { return gloos_->waitSend(rank, timeout); });
  }
  void abortWaitRecv() override { gloos_->abortWaitRecv(); }
  void abortWaitSend() override { gloos_->abortWaitSend(); }
  void send(int target, uint64_t slot, size_t offset, size_t bytes) override {
    target_ = target;
    With(target, [&] { return gloos_->send(target, slot, offset, bytes), true; });
  }
  void recv(int source, uint64_t slot, size_t offset, size_t bytes) override {
    source_ = source;
    With(source, [&] { return gloos_->recv(source, slot, offset, bytes), true; });
  }
  void recv(std::vector<int> sources, uint64_t slot, size_t offset, size_t bytes) override {
    source_ = sources.size() == 1 ? sources[0] : -1;
    With(source_, [&] { return gloos_->recv(std::move(sources), slot, offset, bytes), true; });
  }

 private:
  // `call` returns false if it was woken. Errors of `call` are errors of `peer`.
  template <typename Call>
  bool With(int peer, const Call& call) {
    context_.CheckWhole();
    context_.waits_for_.store(peer, std::memory_order_relaxed);
    if (!call()) throw gloo::IoException("the connections were closed");
    context_.waits_for_.store(-1, std::memory_order_relaxed);
    return true;
  }

  WakeableContext& context_;
  const std::unique_ptr<UnboundBuffer> gloos_;
  int source_ = -1;
  int target_ = -1;
};

std::unique_ptr<UnboundBuffer> WakeableContext::createUnboundBuffer(void* data, size_t size) {
  return std::make_unique<Buffer>(*this, data, size);
}

void WakeableContext::WakeAll() {
  broken_.store(true);
  MutexLock lock(mu_);
  for (Buffer* buffer : buffers_) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
}

// The context that Gloo's collectives take.
class MeshContext final : public gloo::Context {
 public:
  MeshContext(std::shared_ptr<gloo::transport::Device> device, std::shared_ptr<gloo::transport::Context> transport)
      : gloo::Context(transport->rank, transport->size) {
    device_ = std::move(device);
    transportContext_ = std::move(transport);
    setTimeout(kStallLimit);
  }
};

class Mesh final : public GlooMesh {
 public:
  Mesh(const std::shared_ptr<gloo::transport::Device>& device, int rank, int world)
      : rank_(rank), world_(world), gloos_(device->createContext(rank, world)) {
    gloos_->setTimeout(kConnectLimit / 5);
    std::vector<std::string> addresses(static_cast<size_t>(world));
    for (int peer = 0; peer < world; ++peer) {
      if (peer == rank) continue;
      const std::vector<char> bytes = gloos_->createPair(peer)->address().bytes();  // listens from now on
      addresses[static_cast<size_t>(peer)].assign(bytes.begin(), bytes.end());
      address_size_ = bytes.size();
    }
    for (std::string& address : addresses) {
      address.resize(address_size_);
      endpoint_ += address;
    }
    gloos_->setTimeout(kStallLimit);
    wakeable_ = std::make_shared<WakeableContext>(gloos_);
    context_ = std::make_shared<MeshContext>(device, wakeable_);
  }
  ~Mesh() override { Close(); }

  const std::string& Endpoint() const override { return endpoint_; }

  void Connect(const std::vector<std::string>& endpoints) override {
    for (int peer = 0; peer < world_; ++peer) {
      if (peer == rank_) continue;
      const std::string& endpoint = endpoints.at(static_cast<size_t>(peer));
      if (endpoint.size() != address_size_ * static_cast<size_t>(world_)) {
        throw DataLossError(StrCat("[collective] expected ", address_size_ * static_cast<size_t>(world_),
                                   " bytes of Gloo's addresses from rank ", peer, "; got ", endpoint.size()));
      }
      const char* address = endpoint.data() + address_size_ * static_cast<size_t>(rank_);
      Guarded(StrCat("could not connect to rank ", peer),
              [&] { gloos_->getPair(peer)->connect(std::vector<char>(address, address + address_size_)); });
    }
  }

  void AllReduce(void* data, size_t count, size_t element_size, const Combine& combine, uint32_t tag) override {
    Call("all-reduce", [&] {
      gloo::AllreduceOptions options(context_);
      switch (element_size) {
        case 1: options.setOutput(static_cast<uint8_t*>(data), count); break;
        case 2: options.setOutput(static_cast<uint16_t*>(data), count); break;
        case 4: options.setOutput(static_cast<uint32_t*>(data), count); break;
        default: options.setOutput(static_cast<uint64_t*>(data), count); break;
      }
      options.setAlgorithm(count * element_size < kRingFrom ? gloo::AllreduceOptions::Algorithm::BCUBE
                                                            : gloo::AllreduceOptions::Algorithm::RING);
      options.setReduceFunction(combine);
      options.setTag(tag);
      gloo::allreduce(options);
    });
  }

  void Broadcast(void* data, size_t bytes, int root, uint32_t tag) override {
    Call("broadcast", [&] {
      gloo::BroadcastOptions options(context_);
      options.setOutput(static_cast<uint8_t*>(data), bytes);
      options.setRoot(root);
      options.setTag(tag);
      gloo::broadcast(options);
    });
  }

  void AllGather(const void* in, size_t bytes, void* out, uint32_t tag) override {
    Call("all-gather", [&] {
      gloo::AllgatherOptions options(context_);
      // Gloo only reads this buffer, although its interface takes no const pointer.
      options.setInput(static_cast<uint8_t*>(const_cast<void*>(in)), bytes);
      options.setOutput(static_cast<uint8_t*>(out), bytes * static_cast<size_t>(world_));
      options.setTag(tag);
      gloo::allgather(options);
    });
  }

  void Break() override { wakeable_->WakeAll(); }
  void Close() override {
    Break();
    for (int peer = 0; peer < world_; ++peer) {
      if (peer != rank_) gloos_->getPair(peer)->close();
    }
  }

  int waits_for() const override { return wakeable_->waits_for(); }

 private:
  // Converts Gloo's exceptions to Cohort's errors.
  template <typename Work>
  void Guarded(const std::string& what, const Work& work) {
    try {
      wakeable_->CheckWhole();
      work();
      wakeable_->CheckWhole();
    } catch (const std::exception& error) {
      throw UnavailableError(StrCat("[collective] Gloo ", what, ": ", error.what()));
    }
  }
  template <typename Work>
  void Call(const char* kind, const Work& work) {
    try {
      work();
    } catch (const std::exception& error) {
      const int peer = waits_for();
      throw UnavailableError(StrCat("[collective] Gloo's ", kind, " has failed",
                                    peer < 0 ? "" : StrCat(" at rank ", peer), ": ", error.what()));
    }
  }

  const int rank_;
  const int world_;
  const std::shared_ptr<gloo::transport::Context> gloos_;
  size_t address_size_ = 0;
  std::string endpoint_;  // for each rank the address that it connects to
  std::shared_ptr<WakeableContext> wakeable_;
  std::shared_ptr<gloo::Context> context_;
};

// Returns one numeric address of `host`, IPv4 if there is one, so that all members have addresses of one kind. Gloo
// itself does not check a name. Throws UnavailableError.
std::string AddressOf(const std::string& host) {
  for (const int family : {AF_INET, AF_UNSPEC}) {
    addrinfo hints = {};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int problem = getaddrinfo(host.c_str(), nullptr, &hints, &found);
    if (problem != 0 && family == AF_INET) continue;
    if (problem != 0) throw UnavailableError(gai_strerror(problem));
    char text[NI_MAXHOST] = "";
    getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
    freeaddrinfo(found);
    return text;
  }
  return host;
}

}  // namespace

void BlockBrokenPipeSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

std::vector<std::unique_ptr<GlooMesh>> MakeGlooMeshes(const std::string& host, const std::vector<int>& ranks,
                                                      int world) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  BlockBrokenPipeSignal();  // for the thread that Gloo starts
  std::vector<std::unique_ptr<GlooMesh>> meshes;
  std::string problem;
  try {
    const std::string address = AddressOf(host);
    const auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address.c_str()));
    for (const int rank : ranks) meshes.push_back(std::make_unique<Mesh>(device, rank, world));
  } catch (const std::exception& error) {
    problem = error.what();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!problem.empty()) {
    throw UnavailableError(StrCat("[collective] expected an address of this machine that Gloo can listen on; got '",
                                  host, "', as this task stands in the cluster: ", problem));
  }
  return meshes;
}

}  // namespace cohort::collective
