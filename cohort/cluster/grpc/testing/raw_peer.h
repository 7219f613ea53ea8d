// Peers of a gRPC transport for tests. A RawPeer has the token, and then sends what the test wants. A Stranger is a
// socket without a handshake.
#pragma once

#include <arpa/inet.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/sync_stream.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/grpc/frame.h"
#include "cohort/cluster/grpc/frame_mac.h"
#include "cohort/cluster/grpc/socket.h"
#include "cohort/cluster/grpc/stream.h"
#include "cohort/cluster/handshake.h"
#include "cohort/cluster/testing/recording_handler.h"

namespace cohort::testing {

inline grpc::ByteBuffer RawFrame(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

inline grpc::ByteBuffer AttachFrameOf(uint64_t number) {
  WireWriter payload;
  payload.Fixed64(number);
  return EncodeFrame(FrameType::kAttach, payload.view());
}

// Owned by a test. Not thread-safe. All calls wait at most a minute. The destructor ends all streams.
class RawPeer {
 public:
  // `mine` is what the peer says about itself.
  RawPeer(const std::string& address, std::string token, const TaskIdentity& mine)
      : address_(address), token_(std::move(token)), mine_(mine) {}
  ~RawPeer() {
    for (auto& call : calls_) call->context.TryCancel();
    for (auto& call : calls_) {
      if (call->stream == nullptr) continue;
      grpc::ByteBuffer rest;
      while (call->stream->Read(&rest)) {
      }
      call->stream->Finish();
    }
  }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  // Makes the handshake of a control socket. Opens no stream.
  void ProveControl() {
    DialerHandshake handshake(token_, mine_, "", address_);
    AddCall(handshake);
    secret_ = handshake.connection();
    acceptor_ = handshake.peer();
  }
  // The same for a bulk socket of the last connection, with another key if there is a `secret`.
  void ProveBulk(const std::optional<ConnectionSecret>& secret = std::nullopt) {
    DialerHandshake handshake(secret ? *secret : secret_, acceptor_);
    AddCall(handshake);
  }
  // Opens a stream on the last socket.
  void Open(const char* method) {
    Call& call = *calls_.back();
    const grpc::internal::RpcMethod rpc(method, grpc::internal::RpcMethod::BIDI_STREAMING, call.channel);
    call.stream.reset(grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
        call.channel.get(), rpc, &call.context));
    current_ = calls_.size() - 1;
  }
  void OpenControl() {
    ProveControl();
    Open(kControlMethod);
    Write(AttachFrameOf(secret_.number));
  }
  void OpenBulk() {
    ProveBulk();
    Open(kBulkMethod);
    Write(AttachFrameOf(secret_.number));
  }
  // Goes on with the socket that was connected as number `call`.
  void Use(size_t call) { current_ = call; }
  void Write(grpc::ByteBuffer frame) {
    calls_[current_]->macs->send.Seal(&frame);
    calls_[current_]->stream->Write(frame);
  }
  void WriteUnsealed(const grpc::ByteBuffer& frame) { calls_[current_]->stream->Write(frame); }
  // Returns false if the stream has ended.
  bool Read(grpc::ByteBuffer* frame) {
    if (!calls_[current_]->stream->Read(frame)) return false;
    calls_[current_]->macs->receive.Open(frame);
    return true;
  }
  // Returns the number of frames up to the end of the stream.
  int ReadToEnd() {
    int frames = 0;
    grpc::ByteBuffer frame;
    while (Read(&frame)) ++frames;
    return frames;
  }
  const ConnectionSecret& secret() const { return secret_; }

 private:
  struct Call {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<StreamMacs> macs;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> stream;
  };
  void AddCall(DialerHandshake& handshake) {
    const WakeUp never;
    SocketDialer dialer(CheckDialAddress(ParseAddress(address_), false), address_, Soon(), never);
    std::optional<Descriptor> socket = dialer.Dial(handshake);
    if (!socket) throw DeadlineExceededError("the handshake was not over within a minute");
    calls_.push_back(std::make_unique<Call>());
    calls_.back()->channel = grpc::CreateInsecureChannelFromFd(address_, socket->Release());
    calls_.back()->macs = std::make_unique<StreamMacs>(handshake.keys());
  }

  const std::string address_;
  const std::string token_;
  const TaskIdentity mine_;
  TaskIdentity acceptor_;
  ConnectionSecret secret_;
  std::vector<std::unique_ptr<Call>> calls_;
  size_t current_ = 0;
};

// A connected socket without a handshake. Owned by a test. All waits end within a minute.
class Stranger {
 public:
  explicit Stranger(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    where.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&where), sizeof(where)), 0);
    const timeval limit{60, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  void Send(const std::string& bytes) { send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  // Returns the next `size` bytes.
  std::string Read(size_t size) {
    std::string bytes(size, '\0');
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(recv(fd_.get(), bytes.data(), size, MSG_WAITALL), 0)));
    return bytes;
  }
  // Returns all bytes until the other side closes the socket.
  std::string ReadToEnd() {
    std::string all;
    char bytes[4096];
    for (ssize_t got; (got = recv(fd_.get(), bytes, sizeof(bytes), 0)) != 0;) {
      if (got < 0) {
        EXPECT_NE(errno, EAGAIN) << "the socket was not closed within a minute";
        break;
      }
      all.append(bytes, static_cast<size_t>(got));
    }
    return all;
  }

 private:
  const Descriptor fd_;
};

// Returns the hello of `mine` to the process at `address`, with its length.
inline std::string HelloOf(const TaskIdentity& mine, const std::string& token, const std::string& address) {
  return WithLength(DialerHandshake(token, mine, "", address).hello());
}

}  // namespace cohort::testing
