#include "cohort/cluster/grpc/acceptor.h"

#include "cohort/cluster/grpc/frame_mac.h"
#include "cohort/cluster/grpc/tuning.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// Returns the number of the connection in the first frame of a stream. The MAC of the frame is not checked yet.
uint64_t NumberIn(const grpc::ByteBuffer& buffer) {
  const FrameView frame(buffer);
  if (frame.type() != FrameType::kAttach) {
    throw DataLossError(StrCat("[transport] expected a frame of type ", static_cast<int>(FrameType::kAttach),
                               " at the beginning of a stream; got type ", static_cast<int>(frame.type())));
  }
  return WireReader(frame.payload()).Fixed64();
}

// Returns the MACs of a stream behind its first frame, which must be sealed with them.
std::unique_ptr<StreamMacs> CheckFirst(const StreamKeys& keys, grpc::ByteBuffer frame) {
  auto macs = std::make_unique<StreamMacs>(keys);
  macs->receive.Open(&frame);
  return macs;
}

}  // namespace

// The first user of an accepted stream.
class GrpcAcceptor::Opener final : public StreamUser {
 public:
  Opener(GrpcAcceptor& acceptor, ByteStream& stream, StreamRole role)
      : acceptor_(acceptor), stream_(stream), role_(role) {}
  void OnFrame(grpc::ByteBuffer& frame) override {
    try {
      role_ == StreamRole::kControl ? acceptor_.OpenControl(stream_, frame) : acceptor_.OpenBulk(stream_, frame);
    } catch (const UnavailableError&) {
      throw;  // the connection has ended in the meantime
    } catch (const Error& e) {
      LogWarning("transport", "closes a stream of a peer that has the token: ", e.what());
      throw;  // ends the stream
    }
  }
  bool NextFrame(grpc::ByteBuffer*) override { return false; }
  void OnEnded(const std::string&) override { acceptor_.Settled(stream_); }

 private:
  GrpcAcceptor& acceptor_;
  ByteStream& stream_;  // owns this
  const StreamRole role_;
};

// A call that a peer is yet to make.
struct GrpcAcceptor::AwaitedCall final : Completion {
  explicit AwaitedCall(GrpcAcceptor& acceptor)
      : acceptor(acceptor),
        context(std::make_unique<grpc::GenericServerContext>()),
        call(std::make_unique<ServerByteStream::Call>(context.get())) {}
  void Complete(bool ok) override {
    if (ok && !std::exchange(known, true) && !acceptor.OnCall(*this)) {
      // A dropped call would stay open: the peer has to be told.
      return call->Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "[transport] no such method"), Starts());
    }
    delete this;
  }
  GrpcAcceptor& acceptor;
  std::unique_ptr<grpc::GenericServerContext> context;
  std::unique_ptr<ServerByteStream::Call> call;
  bool known = false;
};

GrpcAcceptor::GrpcAcceptor(ConnectionHost& host, const TransportOptions& options, const GrpcTls* tls, LiveStreams& live,
                           grpc::ServerBuilder& builder, NetworkLoop& loop)
    : host_(host),
      options_(options),
      tls_(tls),
      live_(live),
      builder_(builder),
      loop_(loop),
      sockets_(*this, options.token,
               {options.handshake_timeout, options.max_handshakes, options.max_handshakes_per_address,
                options.max_failed_handshakes_per_second}) {}

GrpcAcceptor::~GrpcAcceptor() = default;

int GrpcAcceptor::Listen(const std::string& address) {
  Listener listener = ListenOn(address, options_.allow_insecure || tls_ != nullptr);
  using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  const auto add = [this](const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    to_grpc_.push_back(builder_.experimental().AddExternalConnectionAcceptor(External::FROM_FD, credentials));
  };
  if (tls_ == nullptr) {
    add(grpc::InsecureServerCredentials());
  } else {
    tls_news_ = sockets_.UseTls();
    for (int slot = 0; slot < kTlsSlots; ++slot) {
      add(tls_->ForServer([news = tls_news_, slot](const CertificateVerdict& verdict) { news->Judge(slot, verdict); }));
    }
  }
  const int timeout = static_cast<int>(options_.handshake_timeout.count());
  builder_.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, timeout);
  // A socket has one stream from its beginning to its end.
  builder_.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1);
  builder_.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, timeout);
  for (const Tuning& tuning : kTuning) builder_.AddChannelArgument(tuning.name, tuning.value);
  builder_.RegisterAsyncGenericService(&service_);
  server_ = builder_.BuildAndStart();
  if (server_ == nullptr) throw UnavailableError(StrCat("[transport] cannot listen on ", address, ": gRPC has failed"));
  port_ = listener.port;
  AwaitCall();
  sockets_.Start(std::move(listener));
  return port_;
}

std::optional<ConnectionSecret> GrpcAcceptor::SecretOf(uint64_t number) {
  MutexLock lock(mu_);
  const auto peer = peers_.find(number);
  return peer == peers_.end() ? std::nullopt : std::optional(peer->second.secret);
}

std::optional<std::vector<std::string>> GrpcAcceptor::Welcome(AcceptorHandshake& handshake) {
  if (handshake.role() == StreamRole::kBulk) {
    MutexLock lock(mu_);
    const auto peer = peers_.find(handshake.connection().number);
    if (peer == peers_.end()) throw UnavailableError("[transport] the connection of a bulk stream has ended");
    // The handler learns of the connection before the first large message can come.
    if (!peer->second.announced) return std::nullopt;
    return std::vector<std::string>{handshake.WelcomeBulk()};
  }
  const std::optional<TaskIdentity> mine = host_.identity();
  if (!mine) return std::nullopt;
  MutexLock lock(mu_);
  if (stopped_) throw UnavailableError("[transport] this task ends");
  if (peers_.size() >= static_cast<size_t>(options_.max_connections)) {
    throw ResourceExhaustedError(
        StrCat("[transport] ", mine->task, " has ", peers_.size(), " connections, the limit (max_connections)"));
  }
  return handshake.Welcome(*mine, port_, next_number_++);
}

bool GrpcAcceptor::Register(const AcceptorHandshake& handshake) {
  MutexLock lock(mu_);
  if (stopped_) return false;
  if (handshake.role() == StreamRole::kBulk) {
    const auto peer = peers_.find(handshake.connection().number);
    if (peer == peers_.end()) return false;  // the connection has ended
    peer->second.bulk_keys = handshake.keys();
  } else {
    Peer& peer = peers_[handshake.connection().number];
    peer.identity = handshake.peer();
    peer.secret = handshake.connection();
    peer.control_keys = handshake.keys();
    peer.deadline = Clock::now() + options_.handshake_timeout;
  }
  return true;
}

void GrpcAcceptor::TakeSocket(const AcceptorHandshake& handshake, Descriptor socket) {
  if (Register(handshake)) GiveToGrpc(0, std::move(socket));
}

void GrpcAcceptor::GiveToGrpc(size_t index, Descriptor socket) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.fd = socket.Release();
  to_grpc_[index]->HandleNewConnection(&parameters);
}

void GrpcAcceptor::AwaitCall() {
  MutexLock lock(mu_);
  if (stopped_) return;  // gRPC aborts if a call is asked for on a queue that has been shut down
  auto* awaited = new AwaitedCall(*this);
  service_.RequestCall(awaited->context.get(), awaited->call.get(), loop_.queue(), loop_.queue(), awaited->Starts());
}

bool GrpcAcceptor::OnCall(AwaitedCall& awaited) {
  AwaitCall();
  const std::string method = awaited.context->method();
  if (method != kControlMethod && method != kBulkMethod) return false;
  const grpc::ServerContext& context = *awaited.context;
  auto stream = std::make_shared<ServerByteStream>(live_, std::move(awaited.context), std::move(awaited.call));
  const StreamRole role = method == kControlMethod ? StreamRole::kControl : StreamRole::kBulk;
  stream->SetUser(tls_ == nullptr ? std::make_shared<Opener>(*this, *stream, role)
                                  : MakeTlsOpener(*stream, role, context));
  MutexLock lock(mu_);
  if (stopped_) return true;
  openings_[stream.get()] = {stream, Clock::now() + options_.handshake_timeout};
  stream->Start();
  return true;
}

void GrpcAcceptor::OpenControl(ByteStream& stream, const grpc::ByteBuffer& frame) {
  const uint64_t number = NumberIn(frame);
  std::unique_ptr<StreamMacs> macs;
  std::shared_ptr<GrpcConnection> connection;
  {
    MutexLock lock(mu_);
    const auto found = peers_.find(number);
    if (found == peers_.end() || found->second.connection != nullptr) {
      throw PermissionDeniedError(StrCat("[transport] no connection waits for a control stream with number ", number));
    }
    Peer& peer = found->second;
    if (tls_ == nullptr) macs = CheckFirst(peer.control_keys, frame);
    connection = host_.AddConnection(peer.identity, number, true);
    peer.connection = connection;
  }
  Settled(stream);
  host_.Accepted(connection);
  connection->UseControl(stream.shared_from_this(), std::move(macs), std::nullopt);
  {
    MutexLock lock(mu_);
    const auto found = peers_.find(number);
    if (found != peers_.end()) found->second.announced = true;
  }
  Wake();  // the bulk stream may wait
}

void GrpcAcceptor::OpenBulk(ByteStream& stream, const grpc::ByteBuffer& frame) {
  const uint64_t number = NumberIn(frame);
  std::unique_ptr<StreamMacs> macs;
  std::shared_ptr<GrpcConnection> connection;
  {
    MutexLock lock(mu_);
    const auto found = peers_.find(number);
    if (found == peers_.end()) throw UnavailableError("[transport] the connection of a bulk stream has ended");
    if (!found->second.bulk_keys) {
      throw PermissionDeniedError(StrCat("[transport] no connection waits for a bulk stream with number ", number));
    }
    if (tls_ == nullptr) macs = CheckFirst(*found->second.bulk_keys, frame);
    found->second.bulk_keys.reset();
    connection = found->second.connection;
  }
  Settled(stream);
  if (!connection->UseBulk(stream.shared_from_this(), std::move(macs), std::nullopt)) {
    throw UnavailableError("[transport] the connection of a bulk stream has ended");
  }
  stream.Pump();
}

void GrpcAcceptor::Settled(ByteStream& stream) {
  MutexLock lock(mu_);
  openings_.erase(&stream);
}

void GrpcAcceptor::Forget(uint64_t number) {
  MutexLock lock(mu_);
  peers_.erase(number);
}

void GrpcAcceptor::DropLate(Clock::time_point now) {
  MutexLock lock(mu_);
  for (auto& [key, opening] : openings_) {
    if (opening.deadline > now) continue;
    opening.stream->Cancel();
    opening.deadline = Clock::time_point::max();
  }
  std::erase_if(
      peers_, [now](const auto& entry) { return entry.second.connection == nullptr && entry.second.deadline <= now; });
}

void GrpcAcceptor::StopAccepting() {
  {
    MutexLock lock(mu_);
    stopped_ = true;
    for (const auto& [key, opening] : openings_) opening.stream->Cancel();
  }
  sockets_.Stop();
}

void GrpcAcceptor::ShutDownServer() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

}  // namespace cohort
