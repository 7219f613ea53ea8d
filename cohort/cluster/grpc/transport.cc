// The transport over gRPC. A connection has two gRPC streams, for the methods Control and Bulk, whose messages are
// frames. One completion queue serves all streams. A stream begins with a handshake, which has a deadline, and then
// belongs to a connection. A watching thread sends heartbeats and finds silent peers.
#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <malloc.h>

#include <map>
#include <thread>
#include <vector>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/grpc/handshakes.h"
#include "cohort/cluster/grpc/network_loop.h"
#include "cohort/cluster/host_identity.h"
#include "cohort/cluster/local_address.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;

// How long a shutdown waits for peers to take what is queued for them; where that is large, the limit of silence.
constexpr std::chrono::milliseconds kGoodbyeTime{1000};
constexpr std::chrono::seconds kRefusalTime{1};

// For the whole process, once.
void PrepareProcess() {
  // Freed blocks stay: the pages that gRPC receives into are warm the next time.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  mallopt(M_TOP_PAD, 16 << 20);
  // So does gRPC: where the last transport of a process ends and the next one starts, its own threads would use what
  // its shutdown has just destroyed (https://github.com/grpc/grpc/pull/31319 tells of one such way).
  grpc_init();
}

void TuneChannel(grpc::ChannelArguments& arguments, std::chrono::milliseconds connect_timeout) {
  // Also the time that one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(connect_timeout.count()));
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a socket of its own for each stream
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
}

struct Tuning {
  const char* name;
  int value;
};
// Of both sides; see docs/benchmarks.md for what each brings.
constexpr Tuning kTuning[] = {
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

}  // namespace

class GrpcTransport final : public Transport, public HandshakeHost {
 public:
  GrpcTransport(TransportHandler& handler, const TransportOptions& options)
      : handler_(handler), options_(options), loop_(builder_.AddCompletionQueue(), options.network_threads) {
    static const bool prepared = (PrepareProcess(), true);
    (void)prepared;
  }
  ~GrpcTransport() override { Shutdown(); }

  int Listen(const std::string& address) override;
  void SetIdentity(const TaskIdentity& identity) override;
  std::shared_ptr<Connection> Dial(const std::string& address, const std::string& expected_task,
                                   Clock::time_point deadline) override;

 private:
  void End(const std::string& why) override;
  // A call that a peer is yet to make.
  struct AwaitedCall final : Completion {
    explicit AwaitedCall(GrpcTransport& transport)
        : transport(transport),
          context(std::make_unique<grpc::GenericServerContext>()),
          call(std::make_unique<ServerByteStream::Call>(context.get())) {}
    void Complete(bool ok) override {
      if (ok && !std::exchange(known, true) && !transport.OnCall(*this)) {
        // A dropped call would stay open: the peer has to be told.
        return call->Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "[transport] no such method"), Starts());
      }
      delete this;
    }
    GrpcTransport& transport;
    std::unique_ptr<grpc::GenericServerContext> context;
    std::unique_ptr<ServerByteStream::Call> call;
    bool known = false;
  };

  const std::string& token() const override { return options_.token; }
  std::optional<TaskIdentity> IdentityFor(const std::shared_ptr<AcceptorHandshake>& asker) override;
  std::shared_ptr<GrpcConnection> AddConnection(const TaskIdentity& peer, std::optional<uint64_t> number) override;
  std::shared_ptr<GrpcConnection> FindAccepted(uint64_t number) override;
  void DialBulk(const std::shared_ptr<GrpcConnection>& connection, const std::string& address,
                grpc::ByteBuffer ticket) override;
  void Accepted(const std::shared_ptr<GrpcConnection>& connection) override { handler_.OnAccepted(connection); }
  void Settled(ByteStream& stream, bool refused) override;

  void AwaitCall() COHORT_EXCLUDES(mu_);
  // False where nothing was done with the call.
  bool OnCall(AwaitedCall& awaited);
  void Forget(GrpcConnection& connection);
  std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) const;
  // Lets `start` start the stream, whose handshake has to end by `deadline`. False after Shutdown.
  bool StartWatched(const std::shared_ptr<ByteStream>& stream, Clock::time_point deadline,
                    const std::function<void()>& start) COHORT_EXCLUDES(mu_);
  void WatchLoop();
  std::vector<std::shared_ptr<GrpcConnection>> Connections() COHORT_REQUIRES(mu_);
  // Cancels the handshakes that are late; returns when the next one will be.
  Clock::time_point CancelLate(Clock::time_point now) COHORT_REQUIRES(mu_);

  struct Entry {
    std::shared_ptr<GrpcConnection> connection;
    bool accepted;
  };

  TransportHandler& handler_;
  const TransportOptions options_;
  grpc::AsyncGenericService service_;
  grpc::ServerBuilder builder_;
  LiveStreams live_;
  NetworkLoop loop_;
  std::unique_ptr<grpc::Server> server_;

  Mutex mu_;
  CondVar changed_;
  std::optional<TaskIdentity> identity_ COHORT_GUARDED_BY(mu_);
  std::vector<std::weak_ptr<AcceptorHandshake>> want_identity_ COHORT_GUARDED_BY(mu_);
  bool ending_ COHORT_GUARDED_BY(mu_) = false;   // no new connections
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;  // no new streams
  uint64_t next_number_ COHORT_GUARDED_BY(mu_) = 1;
  std::map<const GrpcConnection*, Entry> connections_ COHORT_GUARDED_BY(mu_);
  struct Deadline {
    std::shared_ptr<ByteStream> stream;
    Clock::time_point time;
  };
  std::map<const ByteStream*, Deadline> handshakes_ COHORT_GUARDED_BY(mu_);
  std::thread watcher_;
};

int GrpcTransport::Listen(const std::string& address) {
  const HostPort where = ParseAddress(address);
  CheckListenAddress(where, options_.allow_insecure);
  int port = 0;
  builder_.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder_.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder_.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                              static_cast<int>(options_.handshake_timeout.count()));
  for (const Tuning& tuning : kTuning) builder_.AddChannelArgument(tuning.name, tuning.value);
  builder_.RegisterAsyncGenericService(&service_);
  server_ = builder_.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    server_.reset();
    throw UnavailableError(StrCat("[transport] cannot listen on ", address, ": the port is in use"));
  }
  AwaitCall();
  return port;
}

void GrpcTransport::AwaitCall() {
  MutexLock lock(mu_);
  if (stopped_) return;  // gRPC aborts where a call is asked for on a queue that has been shut down
  auto* awaited = new AwaitedCall(*this);
  service_.RequestCall(awaited->context.get(), awaited->call.get(), loop_.queue(), loop_.queue(), awaited->Starts());
}

bool GrpcTransport::OnCall(AwaitedCall& awaited) {
  AwaitCall();
  const std::string method = awaited.context->method();
  if (method != kControlMethod && method != kBulkMethod) return false;
  auto stream = std::make_shared<ServerByteStream>(live_, std::move(awaited.context), std::move(awaited.call));
  if (method == kControlMethod) {
    stream->SetUser(std::make_shared<AcceptorHandshake>(*this, *stream));
  } else {
    stream->SetUser(std::make_shared<BulkAcceptor>(*this, *stream));
  }
  StartWatched(stream, Clock::now() + options_.handshake_timeout, [&stream] { stream->Start(); });
  return true;
}

bool GrpcTransport::StartWatched(const std::shared_ptr<ByteStream>& stream, Clock::time_point deadline,
                                 const std::function<void()>& start) {
  MutexLock lock(mu_);
  if (stopped_) return false;
  handshakes_[stream.get()] = {stream, deadline};
  start();
  if (!watcher_.joinable()) watcher_ = std::thread([this] { WatchLoop(); });
  changed_.NotifyAll();
  return true;
}

void GrpcTransport::Settled(ByteStream& stream, bool refused) {
  MutexLock lock(mu_);
  const auto it = handshakes_.find(&stream);
  if (it == handshakes_.end()) return;
  if (!refused) {
    handshakes_.erase(it);
    return;
  }
  it->second.time = std::min(it->second.time, Clock::now() + kRefusalTime);
  changed_.NotifyAll();
}

void GrpcTransport::SetIdentity(const TaskIdentity& identity) {
  TaskIdentity mine = identity;
  if (options_.share_memory) mine.host = HostIdentity();
  std::vector<std::weak_ptr<AcceptorHandshake>> waiting;
  {
    MutexLock lock(mu_);
    identity_ = mine;
    waiting.swap(want_identity_);
  }
  for (const auto& handshake : waiting) {
    if (const auto alive = handshake.lock()) alive->Answer(mine);
  }
}

std::optional<TaskIdentity> GrpcTransport::IdentityFor(const std::shared_ptr<AcceptorHandshake>& asker) {
  MutexLock lock(mu_);
  if (!identity_) want_identity_.push_back(asker);
  return identity_;
}

std::shared_ptr<GrpcConnection> GrpcTransport::AddConnection(const TaskIdentity& peer, std::optional<uint64_t> number) {
  MutexLock lock(mu_);
  if (ending_) throw UnavailableError("[transport] this task ends");
  const bool accepted = !number;
  const bool same_host = !peer.host.empty() && identity_->host == peer.host;
  auto connection = std::make_shared<GrpcConnection>(handler_, options_, peer, accepted ? next_number_++ : *number,
                                                     same_host, [this](GrpcConnection& ended) { Forget(ended); });
  connections_[connection.get()] = {connection, accepted};
  return connection;
}

void GrpcTransport::Forget(GrpcConnection& connection) {
  MutexLock lock(mu_);
  connections_.erase(&connection);
  changed_.NotifyAll();
}

std::shared_ptr<GrpcConnection> GrpcTransport::FindAccepted(uint64_t number) {
  MutexLock lock(mu_);
  for (const auto& [key, entry] : connections_) {
    if (entry.accepted && entry.connection->number() == number) return entry.connection;
  }
  return nullptr;
}

std::shared_ptr<grpc::Channel> GrpcTransport::MakeChannel(const std::string& address) const {
  grpc::ChannelArguments arguments;
  TuneChannel(arguments, options_.handshake_timeout);
  for (const Tuning& tuning : kTuning) arguments.SetInt(tuning.name, tuning.value);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // who dials decides whether to dial again
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

void GrpcTransport::DialBulk(const std::shared_ptr<GrpcConnection>& connection, const std::string& address,
                             grpc::ByteBuffer ticket) {
  auto bulk = std::make_shared<ClientByteStream>(live_, MakeChannel(address));
  if (connection->UseBulk(bulk, std::move(ticket))) bulk->Start(kBulkMethod, loop_.queue());
}

std::shared_ptr<Connection> GrpcTransport::Dial(const std::string& address, const std::string& expected_task,
                                                Clock::time_point deadline) {
  CheckDialAddress(ParseAddress(address), options_.allow_insecure);
  TaskIdentity mine;
  {
    MutexLock lock(mu_);
    if (!identity_) throw FailedPreconditionError("[transport] SetIdentity comes before Dial");
    if (ending_) throw UnavailableError("[transport] the transport is shut down");
    mine = *identity_;
  }
  const auto start = Clock::now();
  auto control = std::make_shared<ClientByteStream>(live_, MakeChannel(address));
  auto handshake = std::make_shared<DialerHandshake>(*this, mine, expected_task, address);
  handshake->set_stream(control.get());
  control->SetUser(handshake);
  const auto limit = std::min(deadline, start + options_.handshake_timeout);
  if (!StartWatched(control, limit + kRefusalTime, [&] { control->Start(kControlMethod, loop_.queue()); })) {
    throw UnavailableError("[transport] the transport is shut down");
  }
  const auto connection = handshake->Wait(limit);
  Settled(*control, false);
  if (connection != nullptr) return connection;
  control->Cancel();
  throw NoAnswer(expected_task, address, Clock::now() - start);
}

std::vector<std::shared_ptr<GrpcConnection>> GrpcTransport::Connections() {
  std::vector<std::shared_ptr<GrpcConnection>> all;
  for (const auto& [key, entry] : connections_) all.push_back(entry.connection);
  return all;
}

Clock::time_point GrpcTransport::CancelLate(Clock::time_point now) {
  Clock::time_point next = Clock::time_point::max();
  for (auto& [key, handshake] : handshakes_) {
    if (handshake.time <= now) {
      handshake.stream->Cancel();
      handshake.time = Clock::time_point::max();
    }
    next = std::min(next, handshake.time);
  }
  return next;
}

void GrpcTransport::WatchLoop() {
  SetThreadName("cohort-watch");
  const auto tick = std::max<Clock::duration>(std::min(options_.heartbeat_interval / 4, options_.silence_limit / 10),
                                              std::chrono::milliseconds(10));
  Clock::time_point awake_since{};
  for (;;) {
    std::vector<std::shared_ptr<GrpcConnection>> connections;
    {
      MutexLock lock(mu_);
      if (stopped_) return;
      const auto planned = std::min(CancelLate(Clock::now()), Clock::now() + tick);
      changed_.WaitUntil(mu_, planned);
      if (stopped_) return;
      // Where this process was stopped for a while itself, it cannot say who was silent meanwhile.
      if (Clock::now() - planned > options_.silence_limit / 4) awake_since = Clock::now();
      connections = Connections();
    }
    if (loop_.AddThreadIfAllBusy()) awake_since = Clock::now();  // whoever is not listened to is not silent
    for (const auto& connection : connections) connection->Watch(Clock::now(), awake_since);
  }
}

void GrpcTransport::End(const std::string& reason) {
  const Status why(Code::kCancelled, reason);
  std::vector<std::shared_ptr<GrpcConnection>> connections;
  {
    MutexLock lock(mu_);
    if (ending_) return;
    ending_ = true;
    connections = Connections();
  }
  auto goodbye_time = kGoodbyeTime;
  for (const auto& connection : connections) {
    if (connection->SayGoodbye(why)) goodbye_time = std::max(kGoodbyeTime, options_.silence_limit);
  }
  {
    const auto deadline = Clock::now() + goodbye_time;
    MutexLock lock(mu_);
    while (!connections_.empty() && changed_.WaitUntil(mu_, deadline)) {
    }
    stopped_ = true;
    changed_.NotifyAll();
    for (const auto& [key, handshake] : handshakes_) handshake.stream->Cancel();
  }
  if (watcher_.joinable()) watcher_.join();
  for (const auto& connection : connections) connection->Close(why);
  live_.CancelAll();
  live_.WaitForNone();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  loop_.Stop();
}

std::unique_ptr<Transport> MakeGrpcTransport(TransportHandler& handler, const TransportOptions& options) {
  return std::make_unique<GrpcTransport>(handler, options);
}

}  // namespace cohort
