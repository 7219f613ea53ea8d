#include "cohort/cluster/grpc/stream.h"

#include <grpcpp/channel.h>
#include <grpcpp/impl/codegen/rpc_method.h>

namespace cohort {

void ClientByteStream::Open() {
  using Factory = grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>;
  const grpc::internal::RpcMethod rpc(method_, grpc::internal::RpcMethod::BIDI_STREAMING, channel_);
  stream_.reset(Factory::Create(channel_.get(), rpc, &context_));
}

ClientByteStream::~ClientByteStream() {
  context_.TryCancel();
  Finish();
}

std::string ClientByteStream::Finish() {
  if (finished_ || stream_ == nullptr) return "";
  finished_ = true;
  grpc::ByteBuffer rest;
  while (stream_->Read(&rest)) {  // Finish waits until all is read
  }
  return stream_->Finish().error_message();
}

}  // namespace cohort
