// The server's side of grpc_stream.h: echo and bulk streams with each API of gRPC.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/method_handler.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "grpc_stream.h"

namespace grpc_stream {

const std::vector<Argument>& TunedArguments() {
  constexpr int kLarge = 64 << 20;
  static const std::vector<Argument> arguments = {
      {"grpc.http2.max_frame_size", 16777215},
      {"grpc.http2.lookahead_bytes", kLarge},
      {"grpc.http2.bdp_probe", 0},
      {"grpc.http2.write_buffer_size", kLarge},
      {"grpc.experimental.tcp_read_chunk_size", 4 << 20},
      {"grpc.experimental.tcp_min_read_chunk_size", 1 << 20},
      {"grpc.experimental.tcp_max_read_chunk_size", 4 << 20},
  };
  return arguments;
}

grpc::ByteBuffer StaticMessage(const void* data, size_t size) {
  const grpc::Slice slice(data, size, grpc::Slice::STATIC_SLICE);
  return grpc::ByteBuffer(&slice, 1);
}

size_t CopyOut(const grpc::ByteBuffer& message, void* to, size_t capacity) {
  // DumpToSingleSlice would allocate memory. Dump only counts references.
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) throw std::runtime_error("a received message cannot be read");
  size_t at = 0;
  for (const grpc::Slice& slice : slices) {
    if (at + slice.size() > capacity) throw std::runtime_error("a received message is longer than expected");
    std::memcpy(static_cast<char*>(to) + at, slice.begin(), slice.size());
    at += slice.size();
  }
  return at;
}

std::vector<char> WarmBuffer(size_t size) {
  std::vector<char> buffer(size);
  for (size_t i = 0; i < size; ++i) buffer[i] = static_cast<char>(i * 31 + (i >> 12));
  return buffer;
}

namespace {

using Stream = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

void ServePull(const Hello& hello, Stream* stream) {
  const std::vector<char> source = WarmBuffer(hello.bytes);
  grpc::ByteBuffer request;
  while (stream->Read(&request)) {
    for (size_t at = 0; at < hello.bytes; at += hello.chunk) {
      if (!stream->Write(StaticMessage(source.data() + at, std::min(hello.chunk, hello.bytes - at)))) return;
    }
  }
}

void ServePush(const Hello& hello, Stream* stream) {
  const std::vector<char> expected = WarmBuffer(hello.bytes);
  std::vector<char> destination = WarmBuffer(hello.bytes);
  for (;;) {
    grpc::ByteBuffer chunk;
    size_t at = 0;
    while (at < hello.bytes) {
      if (!stream->Read(&chunk)) return;
      at += CopyOut(chunk, destination.data() + at, hello.bytes - at);
    }
    // To compare all bytes would cost as much as to copy them. It is enough to compare the ends of every chunk.
    char ok = 1;
    for (size_t k = 0; k < hello.bytes; k += hello.chunk) ok = ok && destination[k] == expected[k];
    ok = ok && destination.back() == expected.back();
    const grpc::Slice acknowledgement(&ok, 1);
    if (!stream->Write(grpc::ByteBuffer(&acknowledgement, 1))) return;
    for (size_t k = 0; k < hello.bytes; k += hello.chunk) destination[k] = 0;
  }
}

class SyncService : public grpc::Service {
 public:
  SyncService() {
    AddMethod(new grpc::internal::RpcServiceMethod(
        kMethod, grpc::internal::RpcMethod::BIDI_STREAMING,
        new grpc::internal::BidiStreamingHandler<SyncService, grpc::ByteBuffer, grpc::ByteBuffer>(
            [](SyncService*, grpc::ServerContext*, Stream* stream) {
              Talk(stream);
              return grpc::Status::OK;
            },
            this)));
  }

 private:
  static void Talk(Stream* stream) {
    grpc::ByteBuffer message;
    Hello hello;
    if (!stream->Read(&message) || CopyOut(message, &hello, sizeof(hello)) != sizeof(hello)) return;
    if (hello.mode == Mode::kPull) return ServePull(hello, stream);
    if (hello.mode == Mode::kPush) return ServePush(hello, stream);
    while (stream->Read(&message) && stream->Write(message)) {
    }
  }
};

class EchoReactor : public grpc::ServerGenericBidiReactor {
 public:
  EchoReactor() { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    if (first_) {
      first_ = false;
      return StartRead(&message_);
    }
    StartWrite(&message_);
  }
  void OnWriteDone(bool ok) override {
    if (ok) StartRead(&message_);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
  bool first_ = true;
};

class CallbackService : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new EchoReactor;
  }
};

// Serves one echo stream after another on a completion queue.
void ServeQueue(grpc::AsyncGenericService* service, grpc::ServerCompletionQueue* queue, bool spin) {
  auto done = [&] {
    void* tag = nullptr;
    bool ok = false;
    if (!spin) return queue->Next(&tag, &ok) && ok;
    for (;;) {
      const auto status = queue->AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC));
      if (status != grpc::CompletionQueue::TIMEOUT) return status == grpc::CompletionQueue::GOT_EVENT && ok;
    }
  };
  for (;;) {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream(&context);
    service->RequestCall(&context, &stream, queue, queue, nullptr);
    if (!done()) return;
    grpc::ByteBuffer message;
    stream.Read(&message, nullptr);
    bool alive = done();  // the first message
    while (alive) {
      stream.Read(&message, nullptr);
      if (!(alive = done())) break;
      stream.Write(message, nullptr);
      alive = done();
    }
    stream.Finish(grpc::Status::OK, nullptr);
    done();
  }
}

}  // namespace

void Serve(const std::string& address, Api api, bool tuned, int port_fd) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(-1);
  if (tuned) {
    for (const Argument& argument : TunedArguments()) builder.AddChannelArgument(argument.name, argument.value);
  }
  SyncService sync;
  CallbackService callback;
  grpc::AsyncGenericService generic;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  if (api == Api::kSync) {
    builder.RegisterService(&sync);
  } else if (api == Api::kCallback) {
    builder.RegisterCallbackGenericService(&callback);
  } else {
    builder.RegisterAsyncGenericService(&generic);
    queue = builder.AddCompletionQueue();
  }
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) throw std::runtime_error("cannot listen on " + address);
  if (write(port_fd, &port, sizeof(port)) != sizeof(port)) throw std::runtime_error("cannot report the port");
  if (queue != nullptr) ServeQueue(&generic, queue.get(), api == Api::kSpin);
  server->Wait();
}

}  // namespace grpc_stream
