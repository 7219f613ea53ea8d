// ByteStream: one bidirectional gRPC stream of raw frames, the same from the dialer's and from the acceptor's side.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <memory>
#include <string>

namespace cohort {

// Read and Write may run on two threads at once, each on one at a time; Cancel on any.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // False when the stream has ended.
  virtual bool Read(grpc::ByteBuffer* buffer) = 0;
  virtual bool Write(const grpc::ByteBuffer& buffer) = 0;
  // Wakes Read and Write; they return false.
  virtual void Cancel() = 0;
  // After Read or Write gave false, on the reading thread: why ("" where nothing is known).
  virtual std::string Finish() = 0;
};

class ServerByteStream final : public ByteStream {
 public:
  using Stream = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
  ServerByteStream(grpc::ServerContext* context, Stream* stream) : context_(context), stream_(stream) {}
  bool Read(grpc::ByteBuffer* buffer) override { return stream_->Read(buffer); }
  bool Write(const grpc::ByteBuffer& buffer) override { return stream_->Write(buffer); }
  void Cancel() override { context_->TryCancel(); }
  std::string Finish() override { return ""; }

 private:
  grpc::ServerContext* context_;
  Stream* stream_;
};

class ClientByteStream final : public ByteStream {
 public:
  using Stream = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
  // `method` stays valid. Nothing happens yet.
  ClientByteStream(std::shared_ptr<grpc::Channel> channel, const char* method)
      : channel_(std::move(channel)), method_(method) {}
  ~ClientByteStream() override;
  // Connects; before anything else but Cancel, which ends it (a peer that accepts the connection and then says nothing
  // would hold it for gRPC's own 20 s). Whether it went well Read and Write tell.
  void Open();
  bool Read(grpc::ByteBuffer* buffer) override { return stream_->Read(buffer); }
  bool Write(const grpc::ByteBuffer& buffer) override { return stream_->Write(buffer); }
  void Cancel() override { context_.TryCancel(); }
  std::string Finish() override;

 private:
  std::shared_ptr<grpc::Channel> channel_;
  const char* method_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
  bool finished_ = false;
};

inline constexpr const char* kControlMethod = "/cohort.Transport/Control";
inline constexpr const char* kBulkMethod = "/cohort.Transport/Bulk";

}  // namespace cohort
