// The client's side of grpc_stream.h: PingPong with each API of gRPC, and the bulk transfers.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "grpc_stream.h"

namespace grpc_stream {

namespace {

using Clock = std::chrono::steady_clock;
using SyncStream = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::shared_ptr<grpc::Channel> Connect(const std::string& target, bool tuned) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  if (tuned) {
    for (const Argument& argument : TunedArguments()) arguments.SetInt(argument.name, argument.value);
  }
  auto channel = grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10))) {
    throw std::runtime_error("cannot connect to " + target + " within 10 s");
  }
  return channel;
}

std::unique_ptr<SyncStream> OpenSync(grpc::Channel* channel, grpc::ClientContext* context) {
  const grpc::internal::RpcMethod method(kMethod, grpc::internal::RpcMethod::BIDI_STREAMING);
  return std::unique_ptr<SyncStream>(
      grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(channel, method, context));
}

void Require(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string("the stream ended while ") + what);
}

// Makes and checks payloads. The payload of round trip i begins with i, so that an old echo is noticed.
class Payload {
 public:
  explicit Payload(size_t size) : bytes_(WarmBuffer(size)), received_(size) {}
  grpc::ByteBuffer Next(uint32_t i) {
    std::memcpy(bytes_.data(), &i, sizeof(i));
    const grpc::Slice slice(bytes_.data(), bytes_.size());  // a small message is copied, as a header would be
    return grpc::ByteBuffer(&slice, 1);
  }
  void Check(const grpc::ByteBuffer& echo) {
    if (CopyOut(echo, received_.data(), received_.size()) != bytes_.size() || received_ != bytes_) {
      throw std::runtime_error("an echo differs from what was sent");
    }
  }

 private:
  std::vector<char> bytes_, received_;
};

std::vector<double> PingPongSync(grpc::Channel* channel, const Hello& hello, int count, size_t size) {
  grpc::ClientContext context;
  auto stream = OpenSync(channel, &context);
  Require(stream->Write(StaticMessage(&hello, sizeof(hello))), "saying hello");
  Payload payload(size);
  grpc::ByteBuffer echo;
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    const auto start = Clock::now();
    Require(stream->Write(payload.Next(static_cast<uint32_t>(i))), "writing");
    Require(stream->Read(&echo), "reading");
    payload.Check(echo);
    samples.push_back(MicrosecondsSince(start));
  }
  stream->WritesDone();
  stream->Finish();
  return samples;
}

// All work happens in the callbacks. No thread waits for a hand-over.
class PingReactor : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  PingReactor(grpc::Channel* channel, const Hello& hello, int count, size_t size)
      : payload_(size), count_(count), message_(StaticMessage(&hello, sizeof(hello))) {
    grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub(
        std::shared_ptr<grpc::ChannelInterface>(channel, [](auto*) {}));
    stub.PrepareBidiStreamingCall(&context_, kMethod, {}, this);
    StartWrite(&message_);
    StartCall();
  }
  std::vector<double> Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return finished_; });
    if (!error_.empty() || samples_.size() != static_cast<size_t>(count_)) {
      throw std::runtime_error("the stream of reactors ended early: " + error_);
    }
    return samples_;
  }

 private:
  // A ping has ended when its echo has come and its write is reported done. The two come in any order, on any thread.
  void HalfDone() {
    if (--open_halves_ > 0) return;
    if (samples_.size() == static_cast<size_t>(count_)) return StartWritesDone();
    open_halves_ = 2;
    StartRead(&echo_);
    start_ = Clock::now();
    message_ = payload_.Next(static_cast<uint32_t>(samples_.size()));
    StartWrite(&message_);
  }
  void OnWriteDone(bool ok) override {
    if (ok) HalfDone();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    try {
      payload_.Check(echo_);
    } catch (const std::exception& error) {
      error_ = error.what();
      return context_.TryCancel();
    }
    samples_.push_back(MicrosecondsSince(start_));
    HalfDone();
  }
  void OnDone(const grpc::Status& status) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (error_.empty()) error_ = status.error_message();
    finished_ = true;
    done_.notify_all();
  }

  grpc::ClientContext context_;
  Payload payload_;
  const int count_;
  grpc::ByteBuffer message_, echo_;
  Clock::time_point start_;
  std::atomic<int> open_halves_{1};  // the first message is only written
  std::vector<double> samples_;
  std::string error_;
  std::mutex mutex_;
  std::condition_variable done_;
  bool finished_ = false;
};

std::vector<double> PingPongQueue(std::shared_ptr<grpc::Channel> channel, const Hello& hello, int count, size_t size,
                                  bool spin) {
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  auto stream = grpc::GenericStub(channel).PrepareCall(&context, kMethod, &queue);
  auto next = [&](const char* what) {
    void* tag = nullptr;
    bool ok = false;
    auto status = grpc::CompletionQueue::TIMEOUT;
    while (status == grpc::CompletionQueue::TIMEOUT) {
      status = queue.AsyncNext(&tag, &ok, spin ? gpr_time_0(GPR_CLOCK_MONOTONIC) : gpr_inf_future(GPR_CLOCK_MONOTONIC));
    }
    Require(ok, what);
  };
  stream->StartCall(nullptr);
  next("starting");
  stream->Write(StaticMessage(&hello, sizeof(hello)), nullptr);
  next("saying hello");
  Payload payload(size);
  grpc::ByteBuffer echo;
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    const auto start = Clock::now();
    stream->Write(payload.Next(static_cast<uint32_t>(i)), nullptr);
    stream->Read(&echo, nullptr);
    next("writing");
    next("reading");
    payload.Check(echo);
    samples.push_back(MicrosecondsSince(start));
  }
  context.TryCancel();
  return samples;
}

}  // namespace

std::vector<double> PingPong(const std::string& target, Api api, bool tuned, int count, size_t payload) {
  const Hello hello = {Mode::kEcho, 0, 0};
  const auto channel = Connect(target, tuned);
  if (api == Api::kSync) return PingPongSync(channel.get(), hello, count, payload);
  if (api == Api::kCallback) return PingReactor(channel.get(), hello, count, payload).Wait();
  return PingPongQueue(channel, hello, count, payload, api == Api::kSpin);
}

Bulk MeasureBulk(const std::string& target, bool tuned, size_t bytes, size_t chunk, int repeats) {
  constexpr int kWarmups = 3;
  const auto channel = Connect(target, tuned);
  const std::vector<char> source = WarmBuffer(bytes);
  std::vector<char> destination = WarmBuffer(bytes);
  const char go = 1;
  grpc::ByteBuffer message;
  Bulk result;
  grpc::ClientContext pull_context, push_context;
  const Hello pull_hello = {Mode::kPull, bytes, chunk}, push_hello = {Mode::kPush, bytes, chunk};
  auto pull = OpenSync(channel.get(), &pull_context), push = OpenSync(channel.get(), &push_context);
  Require(pull->Write(StaticMessage(&pull_hello, sizeof(Hello))), "saying hello");
  Require(push->Write(StaticMessage(&push_hello, sizeof(Hello))), "saying hello");
  for (int i = 0; i < repeats + kWarmups; ++i) {
    for (size_t at = 0; at < bytes; at += chunk) destination[at] = static_cast<char>(~source[at]);
    auto start = Clock::now();
    Require(pull->Write(StaticMessage(&go, 1)), "asking for a pull");
    for (size_t at = 0; at < bytes;) {
      Require(pull->Read(&message), "pulling");
      at += CopyOut(message, destination.data() + at, bytes - at);
    }
    if (i >= kWarmups) result.pull_seconds.push_back(MicrosecondsSince(start) * 1e-6);
    if (destination != source) throw std::runtime_error("pulled bytes differ from what was sent");

    start = Clock::now();
    for (size_t at = 0; at < bytes; at += chunk) {
      Require(push->Write(StaticMessage(source.data() + at, std::min(chunk, bytes - at))), "pushing");
    }
    Require(push->Read(&message), "waiting for the acknowledgement");
    if (i >= kWarmups) result.push_seconds.push_back(MicrosecondsSince(start) * 1e-6);
    char ok = 0;
    if (CopyOut(message, &ok, 1) != 1 || ok != 1) throw std::runtime_error("pushed bytes arrived damaged");
  }
  pull_context.TryCancel();
  push_context.TryCancel();
  return result;
}

}  // namespace grpc_stream
