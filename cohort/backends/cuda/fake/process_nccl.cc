// ProcessNccl. A member sends a Header and its elements for each collective; the hub (RunHub) reads them from one
// member after the other, computes, and sends the result to all. A kernel waits with poll for its socket and for the
// abort, which is an eventfd.
#include "cohort/backends/cuda/fake/process_nccl.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include "cohort/backends/cuda/fake/nccl_elements.h"
#include "cohort/backends/cuda/libraries/library_requests.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

constexpr int kVersion = 22807;
constexpr size_t kIdBytes = 128;  // as NCCL's
constexpr int kMostMembers = 64;

enum class Kind : int32_t { kAllReduce, kBroadcast, kAllGather };

struct Hello {
  int32_t rank;
  int32_t size;
};

struct Header {
  Kind kind;
  NcclType type;
  NcclOp op;
  int32_t root;
  uint64_t count;
  bool operator==(const Header&) const = default;
};

// A file, because the members may be in other network namespaces. It stays if the process is killed before all members
// are there.
sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

// Send and receive all bytes on a blocking socket. Return false if the peer has closed it.
bool SendAll(int socket, const void* data, size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}
bool ReceiveAll(int socket, void* data, size_t bytes) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t received = recv(socket, at, bytes, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    at += received;
    bytes -= static_cast<size_t>(received);
  }
  return true;
}

// Runs collectives of the members, by rank, until one is gone. The sockets stay open, so that the others hear nothing.
void RunRounds(const std::map<int, int>& sockets) {
  for (;;) {
    Header first{};
    std::vector<char> result;
    for (const auto& [rank, socket] : sockets) {
      Header header{};
      if (!ReceiveAll(socket, &header, sizeof(header))) return;
      if (rank == 0) first = header;
      if (header != first) return;
      std::vector<char> elements(header.count * SizeOf(header.type));
      if (!ReceiveAll(socket, elements.data(), elements.size())) return;
      if (rank == 0 && header.kind == Kind::kAllReduce) {
        result = std::move(elements);
      } else if (header.kind == Kind::kAllReduce) {
        JoinInto(header.op, header.type, result.data(), elements.data(), header.count);
      } else if (header.kind == Kind::kAllGather || header.root == rank) {
        result.insert(result.end(), elements.begin(), elements.end());
      }
    }
    for (const auto& [rank, socket] : sockets) {
      if (!SendAll(socket, result.data(), result.size())) return;
    }
  }
}

// The hub of one identifier. Accepts all members, tells them so, and runs their collectives.
void RunHub(int listener, const std::string& path) {
  std::map<int, int> sockets;
  int size = kMostMembers;
  while (static_cast<int>(sockets.size()) < size) {
    const int socket = accept(listener, nullptr, nullptr);
    Hello hello{};
    if (socket < 0 || !ReceiveAll(socket, &hello, sizeof(hello))) return;
    size = hello.size;
    sockets[hello.rank] = socket;
  }
  close(listener);
  unlink(path.c_str());
  const char connected = 1;
  for (const auto& [rank, socket] : sockets) (void)SendAll(socket, &connected, 1);
  RunRounds(sockets);
}

}  // namespace

struct ProcessNccl::Part {
  Comm* comm = nullptr;
  Header header{};
  const void* in = nullptr;
  void* out = nullptr;
  size_t result_bytes = 0;
  bool hangs = false;
};

struct ProcessNccl::Comm {
  int socket = -1;
  int abort = -1;  // an eventfd, which can be read when the communicator is aborted
  int size = 0;
  int64_t calls = 0;
  bool connected = false;           // of the thread that owns the communicator
  bool abort_hangs = false;         // of the same thread
  std::atomic<bool> broken{false};  // the hub is gone

  // Waits until the socket is ready. Returns false if the communicator is aborted.
  bool Await(short what) const {
    for (;;) {
      pollfd files[] = {{socket, what, 0}, {abort, POLLIN, 0}};
      if (poll(files, 2, -1) < 0 && errno != EINTR) return false;
      if (files[1].revents != 0) return false;
      if (files[0].revents != 0) return true;
    }
  }
  void AwaitAbort() const {
    pollfd file{abort, POLLIN, 0};
    while (poll(&file, 1, -1) <= 0) {
    }
  }
  // Move bytes as long as the communicator is not aborted and the hub is there. Return whether all have been moved.
  bool Send(const void* data, size_t bytes) {
    const auto* at = static_cast<const char*>(data);
    while (bytes > 0) {
      if (!Await(POLLOUT)) return false;
      const ssize_t sent = send(socket, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (sent <= 0) return Lose();
      at += sent;
      bytes -= static_cast<size_t>(sent);
    }
    return true;
  }
  bool Receive(void* data, size_t bytes) {
    auto* at = static_cast<char*>(data);
    while (bytes > 0) {
      if (!Await(POLLIN)) return false;
      const ssize_t received = recv(socket, at, bytes, MSG_DONTWAIT);
      if (received < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (received <= 0) return Lose();
      at += received;
      bytes -= static_cast<size_t>(received);
    }
    return true;
  }
  bool Lose() {
    broken = true;
    AwaitAbort();
    return false;
  }
};

ProcessNccl::ProcessNccl(Driver& driver) : driver_(driver) {
  const char* fault = std::getenv("COHORT_FAKE_NCCL_FAULT");
  const std::string text = fault == nullptr ? "" : fault;
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return;
  fault_ = text.substr(0, colon);
  fault_at_ = std::atoll(text.c_str() + colon + 1);
}

ProcessNccl::~ProcessNccl() = default;

int ProcessNccl::Version() {
  if (fault_ == "absent") {
    LibraryRequest request = NcclRequest();
    request.files = {"libnccl-of-nobody.so.2"};  // the machine may have the real one
    (void)DynamicLibrary::Open(request, {"/no/folder/of/nccl"});
  }
  return kVersion;
}

std::string ProcessNccl::UniqueId() {
  std::random_device random;
  std::string path;
  {
    MutexLock lock(mu_);
    path = (std::filesystem::temp_directory_path() / StrCat("cohort-fake-nccl-", getpid(), "-", ++ids_, "-", random()))
               .string();
  }
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = AddressOf(path);
  if (listener < 0 || bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener, kMostMembers) != 0) {
    throw InternalError(StrCat("[fake nccl] cannot listen on ", path, ": ", std::strerror(errno)));
  }
  std::thread(RunHub, listener, path).detach();  // ends when the members are gone, or with the process
  path.resize(kIdBytes, '\0');
  return path;
}

NcclResult ProcessNccl::Init(int, const std::string& id, int rank, int size, NcclComm* comm) {
  if (fault_ == "init") return {NcclResult::State::kFailed, "invalid usage (fake)"};
  auto made = std::make_unique<Comm>();
  made->size = size;
  made->abort = eventfd(0, EFD_CLOEXEC);
  made->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = AddressOf(id.c_str());
  const Hello hello{rank, size};
  if (made->abort < 0 || made->socket < 0 ||
      connect(made->socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      !SendAll(made->socket, &hello, sizeof(hello))) {
    return {NcclResult::State::kFailed,
            StrCat("cannot connect to ", id.c_str(), ": ", std::strerror(errno), " (fake)")};
  }
  comm->native = made.get();
  MutexLock lock(mu_);
  comms_.push_back(std::move(made));
  return {NcclResult::State::kInProgress, ""};
}

NcclResult ProcessNccl::State(NcclComm comm) {
  auto& own = *static_cast<Comm*>(comm.native);
  if (own.broken) {
    return {NcclResult::State::kRemoteFailed, "remote process exited or there was a network error (fake)"};
  }
  if (own.connected) return {};
  char connected = 0;
  const ssize_t received = recv(own.socket, &connected, 1, MSG_DONTWAIT);
  if (received == 0) own.broken = true;
  own.connected = received == 1;
  return {own.connected ? NcclResult::State::kDone : NcclResult::State::kInProgress, ""};
}

NcclResult ProcessNccl::Abort(NcclComm comm) {
  auto& own = *static_cast<Comm*>(comm.native);
  while (own.abort_hangs) pause();
  const uint64_t one = 1;
  (void)!write(own.abort, &one, sizeof(one));
  // Aborted kernels end. The communicator's stream tells when.
  return {};
}

NcclResult ProcessNccl::AllReduce(NcclComm comm, const void* in, void* out, size_t count, NcclType type, NcclOp op,
                                  StreamHandle stream) {
  return Enqueue(comm, {nullptr, {Kind::kAllReduce, type, op, 0, count}, in, out, count * SizeOf(type)}, stream);
}
NcclResult ProcessNccl::Broadcast(NcclComm comm, const void* in, void* out, size_t count, NcclType type, int root,
                                  StreamHandle stream) {
  return Enqueue(comm, {nullptr, {Kind::kBroadcast, type, {}, root, count}, in, out, count * SizeOf(type)}, stream);
}
NcclResult ProcessNccl::AllGather(NcclComm comm, const void* in, void* out, size_t count, NcclType type,
                                  StreamHandle stream) {
  Part part{nullptr, {Kind::kAllGather, type, {}, 0, count}, in, out, 0};
  part.result_bytes = count * SizeOf(type) * static_cast<size_t>(static_cast<Comm*>(comm.native)->size);
  return Enqueue(comm, part, stream);
}

NcclResult ProcessNccl::Enqueue(NcclComm comm, const Part& part, StreamHandle stream) {
  auto& own = *static_cast<Comm*>(comm.native);
  const bool hangs = fault_ == "kernel" || fault_ == "call" || fault_ == "abort";
  const bool faulty = ++own.calls == fault_at_ && hangs;
  if (faulty) {
    std::printf("nccl hangs\n");
    std::fflush(stdout);
    while (fault_ == "call") pause();
    own.abort_hangs = fault_ == "abort";
  }
  Part enqueued = part;
  enqueued.comm = &own;
  enqueued.hangs = faulty;
  static const KernelCode code{"fake nccl", nullptr, &ProcessNccl::RunKernel};
  driver_.Launch(code, {}, &enqueued, sizeof(enqueued), stream);
  return {NcclResult::State::kInProgress, ""};
}

void ProcessNccl::RunKernel(const void* argument, const LaunchSize&) {
  const Part& part = *static_cast<const Part*>(argument);
  Comm& comm = *part.comm;
  if (part.hangs) return comm.AwaitAbort();
  (void)(comm.Send(&part.header, sizeof(part.header)) &&
         comm.Send(part.in, part.header.count * SizeOf(part.header.type)) && comm.Receive(part.out, part.result_bytes));
}

}  // namespace cohort::cuda
