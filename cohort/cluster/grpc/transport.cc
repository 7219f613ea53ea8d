// The transport over gRPC: a service of two methods whose messages are raw frames, and the dialing of it.
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/method_handler.h>
#include <malloc.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/grpc/connection.h"
#include "cohort/cluster/handshake.h"
#include "cohort/cluster/local_address.h"
#include "cohort/cluster/wire.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;
using ServerStream = ServerByteStream::Stream;

// Freed blocks stay with the process: the pages that gRPC receives into are warm the next time.
void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  mallopt(M_TOP_PAD, 16 << 20);
}

void TuneChannel(grpc::ChannelArguments& arguments) {
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a socket of its own for each stream
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
}

struct Tuning {
  const char* name;
  int value;
};
// Of both sides; see docs/benchmarks.md for what each brings.
constexpr Tuning kTuning[] = {
    {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1},
    {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1},
    {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 16777215},
    {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 20},
    {GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, 64 << 20},
    {GRPC_ARG_HTTP2_BDP_PROBE, 0},
    {GRPC_ARG_TCP_READ_CHUNK_SIZE, 1 << 20},
    {GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, 64 << 10},
    {GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 4 << 20},
};

bool WriteFrame(ByteStream& stream, FrameType type, std::string_view payload) {
  return stream.Write(EncodeFrame(type, payload));
}

std::string WhomOf(const std::string& expected_task, const std::string& address) {
  return expected_task.empty() ? address : StrCat(expected_task, " (", address, ")");
}

// Throws UnavailableError when the stream ends, the refusal when the peer refuses.
std::string ExpectFrame(ByteStream& stream, FrameType type, const std::string& whom) {
  grpc::ByteBuffer buffer;
  if (!stream.Read(&buffer)) {
    const std::string reason = stream.Finish();
    throw UnavailableError(StrCat("[transport] no connection to ", whom, ": ",
                                  reason.empty() ? "it closed the stream" : reason));
  }
  Frame frame = DecodeFrame(buffer);
  if (frame.type == FrameType::kRefused) {
    WireReader in(frame.payload);
    const auto code = static_cast<Code>(in.Varint(16));
    ThrowError(code, in.String() + " (refused by " + whom + ")");
  }
  if (frame.type != type) throw DataLossError(StrCat("[handshake] ", whom, " sent a frame out of order"));
  return std::move(frame.payload);
}

}  // namespace

class GrpcTransport final : public Transport {
 public:
  GrpcTransport(TransportHandler& handler, const TransportOptions& options)
      : handler_(handler), options_(options), service_(*this) {
    static const bool kept = (KeepFreedMemory(), true);
    (void)kept;
  }
  ~GrpcTransport() override { Shutdown(); }

  int Listen(const std::string& address) override;
  void SetIdentity(const TaskIdentity& identity) override;
  std::shared_ptr<Connection> Dial(const std::string& address, const std::string& expected_task,
                                   Clock::time_point deadline) override;
  void Shutdown() override;

 private:
  class Service final : public grpc::Service {
   public:
    explicit Service(GrpcTransport& transport) {
      Add(kControlMethod, transport, &GrpcTransport::ServeControl);
      Add(kBulkMethod, transport, &GrpcTransport::ServeBulk);
    }

   private:
    void Add(const char* method, GrpcTransport& transport, void (GrpcTransport::*serve)(ServerByteStream&)) {
      using Handler = grpc::internal::BidiStreamingHandler<Service, grpc::ByteBuffer, grpc::ByteBuffer>;
      auto run = [&transport, serve](Service*, grpc::ServerContext* context, ServerStream* stream) {
        ServerByteStream bytes(context, stream);
        (transport.*serve)(bytes);
        return grpc::Status::OK;
      };
      AddMethod(new grpc::internal::RpcServiceMethod(method, grpc::internal::RpcMethod::BIDI_STREAMING,
                                                     new Handler(run, this)));
    }
  };
  // The reading threads of a connection that this side has dialed.
  struct Dialed {
    std::shared_ptr<GrpcConnection> connection;
    std::thread control_reader;
    std::thread bulk_reader;
    std::atomic<int> readers_left{2};
  };

  void ServeControl(ServerByteStream& stream);
  void ServeBulk(ServerByteStream& stream);
  std::shared_ptr<GrpcConnection> ShakeHands(ServerByteStream& stream);
  TaskIdentity WaitForIdentity();
  std::shared_ptr<GrpcConnection> ShakeHandsAsDialer(const std::shared_ptr<ByteStream>& stream,
                                                     const std::string& address, const std::string& expected_task,
                                                     std::string* bulk_ticket);
  void WatchLoop();
  void Watch(ByteStream* stream, Clock::time_point deadline) EXCLUDES(mu_);
  // Whether the stream was cancelled at its deadline.
  bool Unwatch(ByteStream* stream) EXCLUDES(mu_);
  void StartWatching() REQUIRES(mu_);
  // Of closed connections; those whose readers are still on their way out are left for later, unless `wait`: the
  // watching thread must not wait for a handler that waits for it to notice another silent peer.
  void JoinClosedDials(bool wait) EXCLUDES(mu_);
  std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) const;

  TransportHandler& handler_;
  const TransportOptions options_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;

  Mutex mu_;
  CondVar changed_;
  TaskIdentity identity_ GUARDED_BY(mu_);
  bool has_identity_ GUARDED_BY(mu_) = false;
  bool stopped_ GUARDED_BY(mu_) = false;
  uint64_t next_number_ GUARDED_BY(mu_) = 1;
  std::map<uint64_t, std::shared_ptr<GrpcConnection>> accepted_ GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Dialed>> dialed_ GUARDED_BY(mu_);
  std::map<ByteStream*, Clock::time_point> handshakes_ GUARDED_BY(mu_);  // cancelled at their deadline
  std::thread watcher_;
};

int GrpcTransport::Listen(const std::string& address) {
  const HostPort where = ParseAddress(address);
  CheckListenAddress(where, options_.allow_insecure);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  for (const Tuning& tuning : kTuning) builder.AddChannelArgument(tuning.name, tuning.value);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 1);
  builder.RegisterService(&service_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    server_.reset();
    throw UnavailableError(StrCat("[transport] cannot listen on ", address, ": the port is in use"));
  }
  return port;
}

void GrpcTransport::SetIdentity(const TaskIdentity& identity) {
  MutexLock lock(mu_);
  identity_ = identity;
  has_identity_ = true;
  changed_.NotifyAll();
}

TaskIdentity GrpcTransport::WaitForIdentity() {
  const auto deadline = Clock::now() + options_.handshake_timeout;
  MutexLock lock(mu_);
  while (!has_identity_ && !stopped_) {
    if (!changed_.WaitUntil(mu_, deadline)) break;
  }
  if (!has_identity_ || stopped_) throw UnavailableError("[transport] this task does not serve (yet)");
  return identity_;
}

void GrpcTransport::StartWatching() {
  if (!watcher_.joinable()) watcher_ = std::thread([this] { WatchLoop(); });
}

void GrpcTransport::Watch(ByteStream* stream, Clock::time_point deadline) {
  MutexLock lock(mu_);
  if (stopped_) throw UnavailableError("[transport] the transport is shut down");
  handshakes_[stream] = deadline;
  StartWatching();
  changed_.NotifyAll();
}

bool GrpcTransport::Unwatch(ByteStream* stream) {
  MutexLock lock(mu_);
  const auto it = handshakes_.find(stream);
  if (it == handshakes_.end()) return false;
  const bool late = it->second == Clock::time_point::max();
  handshakes_.erase(it);
  return late;
}

void GrpcTransport::WatchLoop() {
  SetThreadName("cohort-watch");
  for (;;) {
    std::vector<std::shared_ptr<GrpcConnection>> connections;
    {
      MutexLock lock(mu_);
      auto next = Clock::now() + std::max(options_.silence_limit / 10, std::chrono::milliseconds(10));
      for (const auto& [stream, deadline] : handshakes_) next = std::min(next, deadline);
      if (!stopped_) changed_.WaitUntil(mu_, next);
      if (stopped_) return;
      for (auto& [stream, deadline] : handshakes_) {
        if (Clock::now() < deadline) continue;
        stream->Cancel();
        deadline = Clock::time_point::max();
      }
      for (const auto& [number, connection] : accepted_) connections.push_back(connection);
      for (const auto& dialed : dialed_) {
        if (dialed->connection != nullptr) connections.push_back(dialed->connection);
      }
    }
    for (const auto& connection : connections) connection->CheckSilence();
    JoinClosedDials(/*wait=*/false);
  }
}

std::shared_ptr<GrpcConnection> GrpcTransport::ShakeHands(ServerByteStream& stream) {
  const TaskIdentity mine = WaitForIdentity();
  const Hello theirs = DecodeHello(ExpectFrame(stream, FrameType::kHello, "a new peer"));
  Hello reply;
  reply.identity = mine;
  reply.nonce = NewNonce();
  reply.proof = ProveToken(options_.token, "accept", theirs.nonce, reply.nonce);
  WriteFrame(stream, FrameType::kHello, EncodeHello(reply));
  const std::string proof = ExpectFrame(stream, FrameType::kProof, theirs.identity.task);
  CheckProof(proof, ProveToken(options_.token, "dial", theirs.nonce, reply.nonce), theirs.identity);
  CheckCompatible(mine, theirs.identity, "");
  CheckCompatible(theirs.identity, mine, theirs.expected_task);
  std::shared_ptr<GrpcConnection> connection;
  {
    MutexLock lock(mu_);
    if (stopped_) throw UnavailableError("[transport] this task ends");
    // The caller's thread reads the stream until the connection has ended, so the stream outlives it.
    connection = std::make_shared<GrpcConnection>(handler_, options_, theirs.identity, next_number_++,
                                                  std::shared_ptr<ByteStream>(std::shared_ptr<void>(), &stream));
    accepted_[connection->number()] = connection;
    StartWatching();
  }
  WireWriter ticket;
  ticket.Fixed64(connection->number());
  WriteFrame(stream, FrameType::kWelcome, ticket.Take());  // before anybody else may write
  return connection;
}

void GrpcTransport::ServeControl(ServerByteStream& stream) {
  std::shared_ptr<GrpcConnection> connection;
  try {
    Watch(&stream, Clock::now() + options_.handshake_timeout);
    connection = ShakeHands(stream);
  } catch (...) {
    const Status status = Status::FromCurrentException();
    WireWriter out;
    out.Varint(static_cast<uint64_t>(status.code()));
    out.String(status.message());
    WriteFrame(stream, FrameType::kRefused, out.Take());
  }
  Unwatch(&stream);
  if (connection == nullptr) return;
  connection->StartWriter();
  handler_.OnAccepted(connection);
  connection->ReadControl();
  connection->StopWriter();
  MutexLock lock(mu_);
  accepted_.erase(connection->number());
  changed_.NotifyAll();
}

void GrpcTransport::ServeBulk(ServerByteStream& stream) {
  std::shared_ptr<GrpcConnection> connection;
  try {
    Watch(&stream, Clock::now() + options_.handshake_timeout);
    const std::string payload = ExpectFrame(stream, FrameType::kProof, "a new bulk stream");
    WireReader in(payload);
    const uint64_t number = in.Fixed64();
    const std::string ticket = in.String();
    MutexLock lock(mu_);
    const auto it = accepted_.find(number);
    if (it != accepted_.end() &&
        ticket == ProveToken(options_.token, "bulk", std::to_string(number), it->second->peer().task)) {
      connection = it->second;
    }
  } catch (const Error&) {
    // Whoever it was, it is no peer of ours: the stream ends.
  }
  Unwatch(&stream);
  if (connection == nullptr) return;
  connection->ReadBulk(std::shared_ptr<ByteStream>(std::shared_ptr<void>(), &stream));
}

std::shared_ptr<grpc::Channel> GrpcTransport::MakeChannel(const std::string& address) const {
  grpc::ChannelArguments arguments;
  TuneChannel(arguments);
  for (const Tuning& tuning : kTuning) arguments.SetInt(tuning.name, tuning.value);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

std::shared_ptr<GrpcConnection> GrpcTransport::ShakeHandsAsDialer(const std::shared_ptr<ByteStream>& stream,
                                                                  const std::string& address,
                                                                  const std::string& expected_task,
                                                                  std::string* bulk_ticket) {
  const std::string whom = WhomOf(expected_task, address);
  Hello mine;
  mine.identity = WaitForIdentity();
  mine.nonce = NewNonce();
  mine.expected_task = expected_task;
  WriteFrame(*stream, FrameType::kHello, EncodeHello(mine));
  const Hello theirs = DecodeHello(ExpectFrame(*stream, FrameType::kHello, whom));
  CheckProof(theirs.proof, ProveToken(options_.token, "accept", mine.nonce, theirs.nonce), theirs.identity);
  CheckCompatible(mine.identity, theirs.identity, expected_task);
  WriteFrame(*stream, FrameType::kProof, ProveToken(options_.token, "dial", mine.nonce, theirs.nonce));
  const std::string welcome = ExpectFrame(*stream, FrameType::kWelcome, whom);
  const uint64_t number = WireReader(welcome).Fixed64();
  WireWriter ticket;
  ticket.Fixed64(number);
  ticket.String(ProveToken(options_.token, "bulk", std::to_string(number), mine.identity.task));
  *bulk_ticket = ticket.Take();
  return std::make_shared<GrpcConnection>(handler_, options_, theirs.identity, number, stream);
}

std::shared_ptr<Connection> GrpcTransport::Dial(const std::string& address, const std::string& expected_task,
                                                Clock::time_point deadline) {
  CheckDialAddress(ParseAddress(address), options_.allow_insecure);
  auto control = std::make_shared<ClientByteStream>(MakeChannel(address), kControlMethod);
  const Clock::time_point start = Clock::now();
  Watch(control.get(), std::min(deadline, start + options_.handshake_timeout));
  std::string bulk_ticket;
  std::shared_ptr<GrpcConnection> connection;
  try {
    control->Open();
    connection = ShakeHandsAsDialer(control, address, expected_task, &bulk_ticket);
  } catch (...) {
    if (!Unwatch(control.get())) throw;
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    throw UnavailableError(StrCat("[transport] no connection to ", WhomOf(expected_task, address), ": no answer for ",
                                  static_cast<double>(waited.count()) / 1000.0,
                                  " s (the process is stopped, or the network is cut)"));
  }
  Unwatch(control.get());
  auto dialed = std::make_unique<Dialed>();
  dialed->connection = connection;
  connection->StartWriter();
  auto bulk = std::make_shared<ClientByteStream>(MakeChannel(address), kBulkMethod);
  connection->ExpectBulk(bulk);
  dialed->bulk_reader = std::thread([connection, bulk, bulk_ticket, address, left = &dialed->readers_left] {
    SetThreadName("cohort-bulk");
    bulk->Open();
    if (bulk->Write(EncodeFrame(FrameType::kProof, bulk_ticket))) {
      connection->ReadBulk(bulk);
    } else {
      connection->Close(Status(Code::kUnavailable, StrCat("[transport] lost ", connection->peer().task, " (", address,
                                                          "): its bulk stream could not be opened")));
    }
    bulk->Cancel();
    --*left;
  });
  dialed->control_reader = std::thread([connection, left = &dialed->readers_left] {
    SetThreadName("cohort-control");
    connection->ReadControl();
    --*left;
  });
  bool stopped;
  {
    MutexLock lock(mu_);
    dialed_.push_back(std::move(dialed));
    stopped = stopped_;
  }
  if (stopped) {  // Shutdown may have looked before the connection was there
    const Status why(Code::kCancelled, "[transport] this side shuts down");
    connection->Close(why);
    JoinClosedDials(/*wait=*/true);
    why.ThrowIfError();
  }
  return connection;
}

void GrpcTransport::JoinClosedDials(bool wait) {
  std::vector<std::unique_ptr<Dialed>> ended;
  {
    MutexLock lock(mu_);
    for (auto it = dialed_.begin(); it != dialed_.end();) {
      if ((*it)->connection->closed() && (wait || (*it)->readers_left == 0)) {
        ended.push_back(std::move(*it));
        it = dialed_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (const auto& dialed : ended) {
    dialed->connection->StopWriter();
    dialed->control_reader.join();
    dialed->bulk_reader.join();
  }
}

void GrpcTransport::Shutdown() {
  std::vector<std::shared_ptr<GrpcConnection>> connections;
  {
    MutexLock lock(mu_);
    if (stopped_) return;
    stopped_ = true;
    changed_.NotifyAll();
    for (const auto& [number, connection] : accepted_) connections.push_back(connection);
    for (const auto& dialed : dialed_) connections.push_back(dialed->connection);
    for (const auto& [stream, deadline] : handshakes_) stream->Cancel();
  }
  if (watcher_.joinable()) watcher_.join();
  for (const auto& connection : connections) {
    connection->Close(Status(Code::kCancelled, "[transport] this side shuts down"));
  }
  JoinClosedDials(/*wait=*/true);
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }
}

std::unique_ptr<Transport> MakeGrpcTransport(TransportHandler& handler, const TransportOptions& options) {
  return std::make_unique<GrpcTransport>(handler, options);
}

}  // namespace cohort
