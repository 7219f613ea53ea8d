// The transport over gRPC. A connection has two sockets, and one gRPC stream on each: for the method Control and for
// the method Bulk. The messages of the streams are frames. A socket begins with a handshake (handshake.h), without
// gRPC: on the thread that dials (SocketDialer), and on the acceptor's thread (SocketAcceptor). Then gRPC gets the
// socket. One completion queue serves all streams. A watching thread sends heartbeats and finds silent peers.
#include <grpc/grpc.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <malloc.h>

#include <map>
#include <thread>
#include <vector>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/grpc/acceptor.h"
#include "cohort/cluster/grpc/network_loop.h"
#include "cohort/cluster/grpc/tls_handshake.h"
#include "cohort/cluster/grpc/tuning.h"
#include "cohort/cluster/host_identity.h"
#include "cohort/cluster/tls/subject.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;

// How long a shutdown waits for peers to take what is queued for them; where that is large, the limit of silence.
constexpr std::chrono::milliseconds kGoodbyeTime{1000};

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

// Gives a connected socket to gRPC.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, Descriptor socket) {
  grpc::ChannelArguments arguments;
  for (const Tuning& tuning : kTuning) arguments.SetInt(tuning.name, tuning.value);
  return grpc::CreateCustomInsecureChannelFromFd(address, socket.Release(), arguments);
}

// Makes a channel that connects by itself.
std::shared_ptr<grpc::Channel> MakeTlsChannel(const std::string& address,
                                              const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                                              std::chrono::milliseconds connect_timeout) {
  grpc::ChannelArguments arguments;
  for (const Tuning& tuning : kTuning) arguments.SetInt(tuning.name, tuning.value);
  // Also the time that one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(connect_timeout.count()));
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a socket of its own for each stream
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // the caller decides whether to dial again
  arguments.SetString(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, std::string(kTlsServerName));
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

// Returns the dialer's first frame on a stream.
grpc::ByteBuffer AttachFrame(uint64_t number) {
  WireWriter payload;
  payload.Fixed64(number);
  return EncodeFrame(FrameType::kAttach, payload.view());
}

}  // namespace

class GrpcTransport final : public Transport, private ConnectionHost {
 public:
  GrpcTransport(TransportHandler& handler, const TransportOptions& options)
      : handler_(handler),
        options_(options),
        tls_(options.tls.empty() ? nullptr : std::make_unique<GrpcTls>(LoadTlsIdentity(options.tls))),
        loop_(builder_.AddCompletionQueue(), options.network_threads),
        acceptor_(*this, options, tls_.get(), live_, builder_, loop_) {
    static const bool prepared = (PrepareProcess(), true);
    (void)prepared;
  }
  ~GrpcTransport() override { Shutdown(); }

  int Listen(const std::string& address) override;
  void SetIdentity(const TaskIdentity& identity) override;
  std::shared_ptr<Connection> Dial(const std::string& address, const std::string& expected_task,
                                   const DialEnd& end) override;

 private:
  void End(const std::string& why) override;

  std::optional<TaskIdentity> identity() override COHORT_EXCLUDES(mu_);
  std::shared_ptr<GrpcConnection> AddConnection(const TaskIdentity& peer, uint64_t number, bool accepted) override
      COHORT_EXCLUDES(mu_);
  void Accepted(const std::shared_ptr<GrpcConnection>& connection) override { handler_.OnAccepted(connection); }

  std::shared_ptr<GrpcConnection> AddLocked(const TaskIdentity& peer, uint64_t number, bool accepted)
      COHORT_REQUIRES(mu_);
  void Forget(GrpcConnection& connection, bool accepted) COHORT_EXCLUDES(mu_);
  // Makes the bulk stream of a connection whose control stream is there, by `dial`, which returns false at its
  // deadline. Closes the connection if that fails.
  void DialBulk(const std::shared_ptr<GrpcConnection>& connection, const std::function<bool()>& dial)
      COHORT_EXCLUDES(mu_);
  // A peer to dial with TLS.
  struct TlsPeer {
    std::string address;
    std::string task;  // that is expected; "" means any
    std::string whom;  // for errors
    DialEnd end;
  };
  // Makes a connection with TLS. Returns null at the deadline.
  std::shared_ptr<GrpcConnection> DialTls(const TlsPeer& peer, const TaskIdentity& mine) COHORT_EXCLUDES(mu_);
  // Makes one stream, and its handshake. Returns false at the deadline. Throws what TlsDialing::Wait throws.
  bool DialTlsStream(const char* method, const TlsPeer& peer, const DialerHandshake& handshake,
                     const TlsDialing::Attach& attach) COHORT_EXCLUDES(mu_);
  // Throws UnavailableError after Shutdown.
  void CheckNotEnding() COHORT_REQUIRES(mu_);
  void StartWatching() COHORT_REQUIRES(mu_);
  void WatchLoop();
  std::vector<std::shared_ptr<GrpcConnection>> Connections() COHORT_REQUIRES(mu_);

  TransportHandler& handler_;
  const TransportOptions options_;
  const std::unique_ptr<const GrpcTls> tls_;  // null without TLS
  grpc::ServerBuilder builder_;
  LiveStreams live_;
  NetworkLoop loop_;
  WakeUp end_;  // notified by End, for the threads that dial
  GrpcAcceptor acceptor_;

  Mutex mu_;
  CondVar changed_;
  std::optional<TaskIdentity> identity_ COHORT_GUARDED_BY(mu_);
  bool ending_ COHORT_GUARDED_BY(mu_) = false;   // no new connections
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;  // no new streams
  std::map<const GrpcConnection*, std::shared_ptr<GrpcConnection>> connections_ COHORT_GUARDED_BY(mu_);
  std::thread watcher_;
};

int GrpcTransport::Listen(const std::string& address) {
  const int port = acceptor_.Listen(address);
  MutexLock lock(mu_);
  StartWatching();
  return port;
}

void GrpcTransport::SetIdentity(const TaskIdentity& identity) {
  if (tls_ != nullptr) CheckIsFor(tls_->identity(), identity.task);
  TaskIdentity mine = identity;
  if (options_.share_memory) mine.host = HostIdentity();
  {
    MutexLock lock(mu_);
    identity_ = mine;
  }
  acceptor_.Wake();
}

std::optional<TaskIdentity> GrpcTransport::identity() {
  MutexLock lock(mu_);
  return identity_;
}

std::shared_ptr<GrpcConnection> GrpcTransport::AddConnection(const TaskIdentity& peer, uint64_t number, bool accepted) {
  MutexLock lock(mu_);
  return AddLocked(peer, number, accepted);
}

std::shared_ptr<GrpcConnection> GrpcTransport::AddLocked(const TaskIdentity& peer, uint64_t number, bool accepted) {
  CheckNotEnding();
  const bool same_host = !peer.host.empty() && identity_->host == peer.host;
  auto connection =
      std::make_shared<GrpcConnection>(handler_, options_, peer, number, same_host,
                                       [this, accepted](GrpcConnection& ended) { Forget(ended, accepted); });
  connections_[connection.get()] = connection;
  return connection;
}

void GrpcTransport::Forget(GrpcConnection& connection, bool accepted) {
  if (accepted) acceptor_.Forget(connection.number());
  MutexLock lock(mu_);
  connections_.erase(&connection);
  changed_.NotifyAll();
}

std::shared_ptr<Connection> GrpcTransport::Dial(const std::string& address, const std::string& expected_task,
                                                const DialEnd& end) {
  std::vector<SocketAddress> addresses =
      CheckDialAddress(ParseAddress(address), options_.allow_insecure || tls_ != nullptr);
  TaskIdentity mine;
  {
    MutexLock lock(mu_);
    if (!identity_) throw FailedPreconditionError("[transport] SetIdentity comes before Dial");
    CheckNotEnding();
    mine = *identity_;
  }
  const auto start = Clock::now();
  const DialEnd limit(std::min(end.deadline, start + options_.handshake_timeout), end.given_up);
  const std::string whom = expected_task.empty() ? address : StrCat(expected_task, " (", address, ")");
  if (tls_ != nullptr) {
    const auto connection = DialTls({address, expected_task, whom, limit}, mine);
    if (connection == nullptr) throw NoAnswer(expected_task, address, Clock::now() - start);
    return connection;
  }
  SocketDialer dialer(std::move(addresses), whom, limit, end_);
  DialerHandshake handshake(options_.token, mine, expected_task, address);
  std::optional<Descriptor> socket = dialer.Dial(handshake);
  if (!socket) throw NoAnswer(expected_task, address, Clock::now() - start);
  const ConnectionSecret secret = handshake.connection();
  std::shared_ptr<GrpcConnection> connection;
  {
    MutexLock lock(mu_);
    connection = AddLocked(handshake.peer(), secret.number, false);
    const auto control = std::make_shared<ClientByteStream>(live_, MakeChannel(address, std::move(*socket)), false);
    connection->UseControl(control, std::make_unique<StreamMacs>(handshake.keys()), AttachFrame(secret.number));
    control->Start(kControlMethod, loop_.queue());
    StartWatching();
  }
  DialBulk(connection, [&] {
    DialerHandshake of_bulk(secret, connection->peer());
    std::optional<Descriptor> bulk_socket = dialer.Dial(of_bulk);
    if (!bulk_socket) return false;
    MutexLock lock(mu_);
    CheckNotEnding();
    const auto bulk = std::make_shared<ClientByteStream>(live_, MakeChannel(address, std::move(*bulk_socket)), false);
    auto macs = std::make_unique<StreamMacs>(of_bulk.keys());
    if (connection->UseBulk(bulk, std::move(macs), AttachFrame(secret.number))) bulk->Start(kBulkMethod, loop_.queue());
    return true;
  });
  return connection;
}

void GrpcTransport::DialBulk(const std::shared_ptr<GrpcConnection>& connection, const std::function<bool()>& dial) {
  std::string why = "it has not answered in time";
  try {
    if (dial()) return;
  } catch (const Error& e) {
    why = e.what();
  }
  {
    MutexLock lock(mu_);
    CheckNotEnding();
  }
  connection->Close(LostPeer(connection->peer(), StrCat("the bulk stream cannot be opened: ", why)));
}

std::shared_ptr<GrpcConnection> GrpcTransport::DialTls(const TlsPeer& peer, const TaskIdentity& mine) {
  std::shared_ptr<GrpcConnection> connection;
  ConnectionSecret secret;
  const auto dial = [&] {
    const DialerHandshake handshake(options_.token, mine, peer.task, peer.address);
    return DialTlsStream(kControlMethod, peer, handshake, [&](ByteStream& stream, const DialerHandshake& done) {
      secret = done.connection();
      connection = AddConnection(done.peer(), secret.number, false);
      connection->UseControl(stream.shared_from_this(), nullptr, AttachFrame(secret.number));
      stream.Pump();
    });
  };
  bool in_time = false;
  try {
    in_time = dial();
  } catch (const UnauthenticatedError&) {
    // A task that ends just now looks the same as one that refuses this side's certificate. The next attempt tells.
    in_time = dial();
  }
  if (!in_time) return nullptr;
  {
    MutexLock lock(mu_);
    StartWatching();
  }
  DialBulk(connection, [&] {
    const TlsPeer same{peer.address, connection->peer().task, peer.whom, peer.end};
    return DialTlsStream(kBulkMethod, same, DialerHandshake(secret, connection->peer()),
                         [&](ByteStream& stream, const DialerHandshake&) {
                           const auto bulk = stream.shared_from_this();
                           if (!connection->UseBulk(bulk, nullptr, AttachFrame(secret.number))) return bulk->Cancel();
                           bulk->Pump();
                         });
  });
  return connection;
}

bool GrpcTransport::DialTlsStream(const char* method, const TlsPeer& peer, const DialerHandshake& handshake,
                                  const TlsDialing::Attach& attach) {
  const auto certificate = std::make_shared<DialedCertificate>();
  const auto stream = std::make_shared<ClientByteStream>(
      live_, MakeTlsChannel(peer.address, tls_->ForChannel(peer.task, certificate), options_.handshake_timeout), true);
  const auto dialing =
      std::make_shared<TlsDialing>(*stream, handshake, peer.whom, certificate, tls_->identity().files, attach);
  stream->SetUser(dialing);
  {
    MutexLock lock(mu_);
    CheckNotEnding();
    stream->Start(method, loop_.queue());
  }
  if (dialing->Wait(peer.end)) return true;
  stream->Cancel();
  return false;
}

void GrpcTransport::CheckNotEnding() {
  if (ending_) throw UnavailableError("[transport] the transport is shut down");
}

void GrpcTransport::StartWatching() {
  if (!watcher_.joinable() && !stopped_) watcher_ = std::thread([this] { WatchLoop(); });
}

std::vector<std::shared_ptr<GrpcConnection>> GrpcTransport::Connections() {
  std::vector<std::shared_ptr<GrpcConnection>> all;
  for (const auto& [key, connection] : connections_) all.push_back(connection);
  return all;
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
      const auto planned = Clock::now() + tick;
      changed_.WaitUntil(mu_, planned);
      if (stopped_) return;
      // Where this process was stopped for a while itself, it cannot say who was silent meanwhile.
      if (Clock::now() - planned > options_.silence_limit / 4) awake_since = Clock::now();
      connections = Connections();
    }
    acceptor_.DropLate(Clock::now());
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
  end_.Notify();
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
  }
  acceptor_.StopAccepting();
  if (watcher_.joinable()) watcher_.join();
  for (const auto& connection : connections) connection->Close(why);
  live_.CancelAll();
  live_.WaitForNone();
  acceptor_.ShutDownServer();
  loop_.Stop();
}

std::unique_ptr<Transport> MakeGrpcTransport(TransportHandler& handler, const TransportOptions& options) {
  CheckTokenLength(options.token, options.allow_short_token);
  return std::make_unique<GrpcTransport>(handler, options);
}

}  // namespace cohort
