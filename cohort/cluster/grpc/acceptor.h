// GrpcAcceptor: the accepting side of the transport over gRPC. A socket whose peer has proved itself (SocketAcceptor)
// is given to a gRPC server. The peer opens one stream on it. The first frame of the stream says which handshake it
// belongs to, and its MAC proves it. Then the stream becomes a part of a connection.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/grpc/connection.h"
#include "cohort/cluster/grpc/network_loop.h"
#include "cohort/cluster/grpc/socket_acceptor.h"
#include "cohort/cluster/grpc/stream.h"
#include "cohort/cluster/grpc/tls.h"
#include "cohort/core/mutex.h"

namespace cohort {

// The functions of a transport that its acceptor calls. The transport implements it. Thread-safe.
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;
  // Returns the identity of this side, or nullopt if Transport::SetIdentity was not called yet. In the second case,
  // SetIdentity calls GrpcAcceptor::Wake.
  virtual std::optional<TaskIdentity> identity() = 0;
  // Returns a new connection, which the host owns until it has ended. The host then calls GrpcAcceptor::Forget if it
  // was `accepted`. Throws UnavailableError after Shutdown.
  virtual std::shared_ptr<GrpcConnection> AddConnection(const TaskIdentity& peer, uint64_t number, bool accepted) = 0;
  // Calls OnAccepted of the transport's TransportHandler.
  virtual void Accepted(const std::shared_ptr<GrpcConnection>& connection) = 0;
};

// Owned by a transport. Thread-safe, except Listen, StopAccepting and ShutDownServer.
class GrpcAcceptor final : private SocketAcceptorHost {
 public:
  using Clock = std::chrono::steady_clock;
  // `builder` has made the queue of `loop`. `tls` is null without TLS.
  GrpcAcceptor(ConnectionHost& host, const TransportOptions& options, const GrpcTls* tls, LiveStreams& live,
               grpc::ServerBuilder& builder, NetworkLoop& loop);
  ~GrpcAcceptor() override;

  // See Transport::Listen.
  int Listen(const std::string& address);
  // The identity of this side is known now.
  void Wake() COHORT_EXCLUDES(mu_);
  // The accepted connection with this number has ended.
  void Forget(uint64_t number) COHORT_EXCLUDES(mu_);
  // Ends what peers that have proved themselves have begun and not continued in time. Called regularly.
  void DropLate(Clock::time_point now) COHORT_EXCLUDES(mu_);
  // Accepts no more sockets and streams. Streams that belong to no connection yet are cancelled.
  void StopAccepting() COHORT_EXCLUDES(mu_);
  // Ends the server. Requires: StopAccepting was called, and all streams have ended.
  void ShutDownServer();

 private:
  class Opener;
  class TlsOpener;
  struct AwaitedCall;
  // A peer that has proved itself on the socket of a control stream.
  struct Peer {
    TaskIdentity identity;
    ConnectionSecret secret;
    StreamKeys control_keys;
    std::optional<StreamKeys> bulk_keys;
    Clock::time_point deadline;                  // for the control stream
    std::shared_ptr<GrpcConnection> connection;  // null before the control stream has come
    bool announced = false;                      // the handler knows the connection
  };

  std::optional<ConnectionSecret> SecretOf(uint64_t number) override COHORT_EXCLUDES(mu_);
  std::optional<std::vector<std::string>> Welcome(AcceptorHandshake& handshake) override COHORT_EXCLUDES(mu_);
  void TakeSocket(const AcceptorHandshake& handshake, Descriptor socket) override COHORT_EXCLUDES(mu_);
  void TakeTlsSocket(int slot, Descriptor socket) override { GiveToGrpc(static_cast<size_t>(slot), std::move(socket)); }
  // Remembers a peer that has proved itself. Returns false if nobody waits for it any more.
  bool Register(const AcceptorHandshake& handshake) COHORT_EXCLUDES(mu_);
  // `index` is that of to_grpc_.
  void GiveToGrpc(size_t index, Descriptor socket);
  void WaitForWake(std::weak_ptr<TlsOpener> opener) COHORT_EXCLUDES(mu_);
  // Throws if the certificate of a bulk stream is for another task than that of its connection.
  void CheckBulkPeer(uint64_t number, const std::string& certified) COHORT_EXCLUDES(mu_);
  // Returns the first user of an accepted stream with TLS.
  std::shared_ptr<StreamUser> MakeTlsOpener(ByteStream& stream, StreamRole role, const grpc::ServerContext& context);
  void AwaitCall() COHORT_EXCLUDES(mu_);
  // Returns false if nothing was done with the call.
  bool OnCall(AwaitedCall& awaited) COHORT_EXCLUDES(mu_);
  // The first frame of a stream. Both throw if it belongs to no handshake.
  void OpenControl(ByteStream& stream, const grpc::ByteBuffer& frame) COHORT_EXCLUDES(mu_);
  void OpenBulk(ByteStream& stream, const grpc::ByteBuffer& frame) COHORT_EXCLUDES(mu_);
  // The stream belongs to a connection now, or has ended.
  void Settled(ByteStream& stream) COHORT_EXCLUDES(mu_);

  ConnectionHost& host_;
  const TransportOptions options_;
  const GrpcTls* const tls_;
  LiveStreams& live_;
  grpc::ServerBuilder& builder_;
  NetworkLoop& loop_;
  grpc::AsyncGenericService service_;
  // One, or with TLS one for each slot of SocketAcceptor.
  std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>> to_grpc_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;

  struct Opening {
    std::shared_ptr<ByteStream> stream;
    Clock::time_point deadline;
  };
  Mutex mu_;
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;
  uint64_t next_number_ COHORT_GUARDED_BY(mu_) = 1;
  std::map<uint64_t, Peer> peers_ COHORT_GUARDED_BY(mu_);
  std::map<const ByteStream*, Opening> openings_ COHORT_GUARDED_BY(mu_);  // streams that belong to no connection yet
  std::vector<std::weak_ptr<TlsOpener>> waiting_ COHORT_GUARDED_BY(mu_);  // for Welcome
  std::shared_ptr<TlsNews> tls_news_;                                     // null without TLS
  SocketAcceptor sockets_;  // the last member, because its thread uses the others
};

}  // namespace cohort
