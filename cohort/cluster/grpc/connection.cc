// What happens to a message: Send puts it into the queue of its stream and pumps the stream. The stream asks for frames
// (NextControlFrame, NextBulkFrame), and each gets its MAC (Seal). The peer's stream delivers them (OnControlFrame,
// OnBulkFrame), and Handle gives each message to the handler. Shared memory begins with an offer on the control stream.
// A connection ends with a goodbye from either side, with an error, or when Watch finds the peer silent.
#include "cohort/cluster/grpc/connection.h"

#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// The sizes of chunks. A chunk should take between these times on its way, so that bytes come often even over a slow
// network.
constexpr size_t kSmallestChunk = 32 * 1024;
constexpr size_t kFirstChunk = 128 * 1024;
constexpr std::chrono::milliseconds kQuickChunk{10};
constexpr std::chrono::milliseconds kSlowChunk{100};

}  // namespace

class GrpcConnection::ControlUser final : public StreamUser {
 public:
  ControlUser(std::shared_ptr<GrpcConnection> connection, std::unique_ptr<StreamMacs> macs)
      : connection_(std::move(connection)), macs_(std::move(macs)) {}
  void OnFrame(grpc::ByteBuffer& frame) override { connection_->OnControlFrame(frame, macs_.get()); }
  bool NextFrame(grpc::ByteBuffer* frame) override {
    return connection_->NextControlFrame(frame) && connection_->Seal(macs_.get(), frame);
  }
  void OnEnded(const std::string&) override {
    connection_->OnStreamEnded(&GrpcConnection::control_,
                               "the connection was closed by the peer (its process ended or was killed)");
  }

 private:
  const std::shared_ptr<GrpcConnection> connection_;
  const std::unique_ptr<StreamMacs> macs_;
};

class GrpcConnection::BulkUser final : public StreamUser {
 public:
  BulkUser(std::shared_ptr<GrpcConnection> connection, std::unique_ptr<StreamMacs> macs)
      : connection_(std::move(connection)), macs_(std::move(macs)) {}
  void OnFrame(grpc::ByteBuffer& frame) override { connection_->OnBulkFrame(frame, macs_.get()); }
  bool NextFrame(grpc::ByteBuffer* frame) override {
    return connection_->NextBulkFrame(frame) && connection_->Seal(macs_.get(), frame);
  }
  void OnEnded(const std::string&) override {
    connection_->OnStreamEnded(&GrpcConnection::bulk_,
                               "the bulk stream was closed by the peer (its process ended or was killed)");
  }

 private:
  const std::shared_ptr<GrpcConnection> connection_;
  const std::unique_ptr<StreamMacs> macs_;
};

GrpcConnection::GrpcConnection(TransportHandler& handler, const TransportOptions& options, TaskIdentity peer,
                               uint64_t number, bool same_host, std::function<void(GrpcConnection&)> forget)
    : handler_(handler),
      options_(options),
      peer_(std::move(peer)),
      number_(number),
      same_host_(same_host),
      forget_(std::move(forget)),
      last_heard_(Clock::now()),
      last_sent_(Clock::now()),
      chunk_(kFirstChunk) {}

std::chrono::milliseconds GrpcConnection::silent_for() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() -
                                                               last_heard_.load(std::memory_order_relaxed));
}

void GrpcConnection::UseControl(const std::shared_ptr<ByteStream>& stream, std::unique_ptr<StreamMacs> macs,
                                std::optional<grpc::ByteBuffer> first) {
  {
    MutexLock lock(mu_);
    control_ = stream;
    if (first) control_frames_.push_front(*first);
  }
  stream->SetUser(std::make_shared<ControlUser>(shared_from_this(), std::move(macs)));
  if (closed()) stream->Cancel();  // Close was called before and did not find the stream
  stream->Pump();
}

bool GrpcConnection::UseBulk(const std::shared_ptr<ByteStream>& stream, std::unique_ptr<StreamMacs> macs,
                             std::optional<grpc::ByteBuffer> first) {
  {
    MutexLock lock(mu_);
    if (closed_ || bulk_ != nullptr) return false;
    bulk_ = stream;
    first_bulk_ = std::move(first);
  }
  stream->SetUser(std::make_shared<BulkUser>(shared_from_this(), std::move(macs)));
  return true;
}

void GrpcConnection::Send(Message message) {
  std::vector<Message> messages;
  messages.push_back(std::move(message));
  Send(std::move(messages));
}

void GrpcConnection::Send(std::vector<Message> messages) {
  for (const Message& message : messages) CheckCanTravel(message);
  std::shared_ptr<ByteStream> control;
  std::shared_ptr<ByteStream> bulk;
  bool large = false;
  {
    MutexLock lock(mu_);
    if (closed_ || !goodbye_.ok()) return;
    for (Message& message : messages) {
      const size_t size = MaxEncodedSize(message);
      if (size < kSmallMessage) {
        queued_.push_back(std::move(message));
        queued_bytes_ += size;
        control = control_;
      } else {
        bulk_queue_.push_back(std::move(message));
        ++bulk_sent_;
        bulk_busy_ = true;
        large = true;
        bulk = bulk_;
      }
    }
  }
  if (large && same_host_ && !offered_.exchange(true)) OfferWindow();
  if (control != nullptr) control->Pump();
  if (bulk != nullptr) bulk->Pump();
}

void GrpcConnection::SendAfterAll(Message message) {
  CheckIsSmall(message);
  std::shared_ptr<ByteStream> control;
  {
    MutexLock lock(mu_);
    if (closed_ || !goodbye_.ok()) return;
    if (bulk_sent_ > 0) message = AfterBulk(std::move(message), bulk_sent_);
    queued_bytes_ += MaxEncodedSize(message);
    queued_.push_back(std::move(message));
    control = control_;
  }
  if (control != nullptr) control->Pump();
}

void GrpcConnection::OfferWindow() {
  std::shared_ptr<SendWindow> window = SendWindow::Make();
  if (window == nullptr) return;
  std::shared_ptr<ByteStream> control;
  {
    MutexLock lock(mu_);
    control_frames_.push_back(EncodeFrame(FrameType::kWindow, window->Offer()));
    window_ = std::move(window);
    window_state_ = WindowState::kOffered;
    control = control_;
  }
  if (control != nullptr) control->Pump();
}

void GrpcConnection::OnWindowOffer(std::string_view payload) {
  std::shared_ptr<const ReceiveWindow> window;
  if (same_host_) window = ReceiveWindow::Open(payload);
  const bool open = window != nullptr;
  {
    MutexLock lock(mu_);
    if (peers_window_ != nullptr) throw DataLossError("[window] a second one is offered");
    peers_window_ = std::move(window);
  }
  SendOnControl(FrameType::kWindowAnswer, open ? 1 : 0);
}

void GrpcConnection::OnWindowAnswer(std::string_view payload) {
  WireReader in(payload);
  const bool open = in.Varint(1) == 1;
  in.ExpectEnd();
  MutexLock lock(mu_);
  if (closed_) return;  // another thread has closed it, and may have freed the window
  if (window_state_ != WindowState::kOffered) throw DataLossError("[window] an answer to no offer");
  window_->CloseOffer();
  window_state_ = open ? WindowState::kOpen : WindowState::kNone;
  if (!open) window_.reset();
}

void GrpcConnection::OnGivenBack(std::string_view payload) {
  WireReader in(payload);
  const uint64_t count = in.Varint();
  in.ExpectEnd();
  std::shared_ptr<ByteStream> bulk;
  {
    MutexLock lock(mu_);
    if (closed_) return;
    if (window_ == nullptr) throw DataLossError("[window] a piece of none is given back");
    window_->GiveBack(count);
    bulk = bulk_;
  }
  if (bulk != nullptr) bulk->Pump();
}

void GrpcConnection::SendOnControl(FrameType type, uint64_t number) {
  WireWriter payload;
  payload.Varint(number);
  std::shared_ptr<ByteStream> control;
  {
    MutexLock lock(mu_);
    control_frames_.push_back(EncodeFrame(type, payload.view()));
    control = control_;
  }
  if (control != nullptr) control->Pump();
}

std::vector<Message> GrpcConnection::TakeBatch() {
  std::vector<Message> batch;
  if (queued_bytes_ <= kLargestChunk) {
    batch.swap(queued_);
    queued_bytes_ = 0;
    return batch;
  }
  size_t bytes = 0;
  auto end = queued_.begin();
  for (; end != queued_.end() && bytes < kLargestChunk; ++end) bytes += MaxEncodedSize(*end);
  batch.assign(std::make_move_iterator(queued_.begin()), std::make_move_iterator(end));
  queued_.erase(queued_.begin(), end);
  queued_bytes_ -= bytes;
  return batch;
}

bool GrpcConnection::NextControlFrame(grpc::ByteBuffer* frame) {
  std::vector<Message> batch;
  {
    MutexLock lock(mu_);
    if (closed_ || goodbye_sent_) return false;
    const bool all_sent = queued_.empty() && (bulk_goodbye_sent_ || (bulk_ == nullptr && bulk_queue_.empty()));
    const bool goodbye_due = !goodbye_.ok() && all_sent;
    if (queued_.empty() && control_frames_.empty() && !goodbye_due && !heartbeat_due_) return false;
    heartbeat_due_ = false;
    last_sent_ = Clock::now();
    if (!control_frames_.empty()) {
      *frame = control_frames_.front();
      control_frames_.pop_front();
      return true;
    }
    if (queued_.empty()) {
      goodbye_sent_ = goodbye_due;
      if (!goodbye_due) {
        *frame = EncodeFrame(FrameType::kHeartbeat, "");
        return true;
      }
      WireWriter payload;
      payload.Varint(bulk_goodbye_sent_ ? 1 : 0);
      *frame = EncodeFrame(FrameType::kGoodbye, payload.Take() + goodbye_.message());
      return true;
    }
    batch = TakeBatch();
  }
  try {
    *frame = EncodeMessages(batch);
    CountSent(frame->Length());
    return true;
  } catch (...) {
    CloseForError();
    return false;
  }
}

bool GrpcConnection::NextBulkFrame(grpc::ByteBuffer* frame) {
  Message message;
  std::shared_ptr<ByteStream> told_next;
  std::shared_ptr<SendWindow> window;
  {
    MutexLock lock(mu_);
    if (closed_ || bulk_goodbye_sent_) return false;
    if (first_bulk_) {
      *frame = *first_bulk_;
      first_bulk_.reset();
      return true;
    }
    bulk_busy_ = sending_ || !bulk_queue_.empty();
    if (!bulk_busy_ && goodbye_.ok()) return false;
    if (!bulk_busy_) {
      bulk_goodbye_sent_ = true;
      told_next = control_;
    } else if (!sending_) {
      message = std::move(bulk_queue_.front());
      bulk_queue_.pop_front();
    }
    if (window_state_ == WindowState::kOpen) window = window_;
  }
  if (told_next != nullptr) {
    *frame = EncodeFrame(FrameType::kGoodbye, "");
    told_next->Pump();
    return true;
  }
  try {
    const bool begins = !sending_;
    if (begins) sending_.emplace(std::move(message));
    if (window != nullptr) {
      std::optional<SendWindow::Room> room;
      {
        MutexLock lock(mu_);
        room = window->Reserve(std::min(sending_->left(), kLargestChunk));
      }
      if (!room) return false;  // OnGivenBack continues
      *frame = sending_->NextThrough(*room);
      CountSent(room->size);
    } else {
      *frame = sending_->Next(NextChunk(begins));
      CountSent(frame->Length());
    }
    if (sending_->done()) sending_.reset();
    return true;
  } catch (...) {
    CloseForError();
    return false;
  }
}

bool GrpcConnection::Seal(StreamMacs* macs, grpc::ByteBuffer* frame) {
  if (macs == nullptr) return true;
  try {
    macs->send.Seal(frame);
    return true;
  } catch (...) {
    CloseForError();
    return false;
  }
}

size_t GrpcConnection::NextChunk(bool first) {
  const Clock::time_point now = Clock::now();
  if (!first) {  // the chunk before has been written
    if (now - chunk_asked_ > kSlowChunk) chunk_ = std::max(chunk_ / 4, kSmallestChunk);
    if (now - chunk_asked_ < kQuickChunk) chunk_ = std::min(chunk_ * 2, kLargestChunk);
  }
  chunk_asked_ = now;
  return chunk_;
}

void GrpcConnection::OnControlFrame(grpc::ByteBuffer& buffer, StreamMacs* macs) {
  Heard();
  if (closed()) return;
  try {
    if (macs != nullptr) macs->receive.Open(&buffer);
    const FrameView frame(buffer);
    if (frame.type() == FrameType::kHeartbeat) return;
    if (frame.type() == FrameType::kGoodbye) return OnControlGoodbye(frame.payload());
    if (frame.type() == FrameType::kWindow) return OnWindowOffer(frame.payload());
    if (frame.type() == FrameType::kWindowAnswer) return OnWindowAnswer(frame.payload());
    if (frame.type() == FrameType::kGivenBack) return OnGivenBack(frame.payload());
    if (frame.type() != FrameType::kMessages) {
      throw DataLossError(StrCat("[frame] a frame of type ", static_cast<int>(frame.type()), " on a control stream"));
    }
    CountReceived(buffer.Length());
    for (Message& message : DecodeMessages(frame.payload())) {
      if (closed()) return;  // the handler may have closed it
      if (message.kind == kReservedKind && WaitsForBulk(&message)) continue;
      Handle(std::move(message));
    }
  } catch (...) {
    CloseForError();
  }
}

void GrpcConnection::OnBulkFrame(grpc::ByteBuffer& buffer, StreamMacs* macs) {
  Heard();
  if (closed()) return;
  try {
    if (macs != nullptr) macs->receive.Open(&buffer);
    // Frames with bytes of a message are larger, and lie in many pieces.
    constexpr size_t kFewBytes = 64;
    if (buffer.Length() <= kFewBytes) {
      const FrameView frame(buffer);
      if (frame.type() == FrameType::kGoodbye) return OnBulkGoodbye();
      if (frame.type() == FrameType::kWindowChunk) {
        if (OnWindowChunk(frame)) HandleBulk(receiver_.Take());
        return;
      }
    }
    CountReceived(buffer.Length());
    if (receiver_.Add(buffer)) HandleBulk(receiver_.Take());
  } catch (...) {
    CloseForError();
  }
}

bool GrpcConnection::OnWindowChunk(const FrameView& frame) {
  std::shared_ptr<const ReceiveWindow> window;
  {
    MutexLock lock(mu_);
    window = peers_window_;
  }
  if (window == nullptr) throw DataLossError("[window] bytes in one that is not open");
  const size_t bytes = receiver_.AddThrough(*window, frame.payload());
  CountReceived(bytes);
  ++taken_pieces_;
  taken_bytes_ += bytes;
  // A quarter of the window may be given back late: the peer then still has space for the largest chunk in one piece.
  if (taken_bytes_ >= window->size() / 4) {
    SendOnControl(FrameType::kGivenBack, std::exchange(taken_pieces_, 0));
    taken_bytes_ = 0;
  }
  return receiver_.complete();
}

void GrpcConnection::OnControlGoodbye(std::string_view payload) {
  WireReader in(payload);
  const bool after_bulk = in.Varint(1) == 1;
  const Status why = LostPeer(peer_, StrCat("the connection was closed by the peer: ", in.Rest()));
  {
    MutexLock lock(mu_);
    if (after_bulk && !bulk_goodbye_heard_) {
      peers_goodbye_ = why;
      return;
    }
  }
  Close(why);
}

void GrpcConnection::OnBulkGoodbye() {
  Status why;
  {
    MutexLock lock(mu_);
    bulk_goodbye_heard_ = true;
    why = peers_goodbye_;
  }
  if (!why.ok()) Close(why);
}

bool GrpcConnection::WaitsForBulk(Message* message) {
  const uint64_t bulk_messages = TakeAfterBulk(message);
  MutexLock lock(mu_);
  if (closed_ || bulk_handled_ >= bulk_messages) return false;
  after_bulk_.emplace_back(bulk_messages, std::move(*message));
  return true;
}

void GrpcConnection::HandleBulk(Message message) {
  Handle(std::move(message));
  std::vector<Message> due;
  {
    MutexLock lock(mu_);
    ++bulk_handled_;
    while (!closed_ && !after_bulk_.empty() && after_bulk_.front().first <= bulk_handled_) {
      due.push_back(std::move(after_bulk_.front().second));
      after_bulk_.pop_front();
    }
  }
  for (Message& waited : due) {
    if (closed()) return;
    Handle(std::move(waited));
  }
}

void GrpcConnection::Handle(Message message) {
  struct Handling {
    explicit Handling(GrpcConnection& connection) : connection(connection) { ++connection.handling_; }
    ~Handling() {
      connection.Heard();
      --connection.handling_;
    }
    GrpcConnection& connection;
  } const handling(*this);
  handler_.OnMessage(shared_from_this(), std::move(message));
}

void GrpcConnection::CloseForError() {
  const Status why = LostPeer(peer_, Status::FromCurrentException().ToString());
  if (!closed()) LogError("transport", "closes a connection: ", why.message());  // the peer is not told why
  Close(why);
}

void GrpcConnection::Close(const Status& why) {
  std::shared_ptr<ByteStream> control;
  std::shared_ptr<ByteStream> bulk;
  {
    MutexLock lock(mu_);
    if (closed_) return;
    closed_ = true;
    why_ = why;
    control = control_;
    bulk = bulk_;
    queued_.clear();
    bulk_queue_.clear();
    after_bulk_.clear();
  }
  if (control != nullptr) control->Cancel();
  if (bulk != nullptr) bulk->Cancel();
}

bool GrpcConnection::SayGoodbye(const Status& why) {
  std::shared_ptr<ByteStream> control;
  std::shared_ptr<ByteStream> bulk;
  bool large;
  {
    MutexLock lock(mu_);
    if (closed_ || !goodbye_.ok()) return false;
    goodbye_ = why;
    control = control_;
    bulk = bulk_;
    large = bulk_busy_;
  }
  if (bulk != nullptr) bulk->Pump();
  if (control != nullptr) control->Pump();
  return large;
}

void GrpcConnection::OnStreamEnded(std::shared_ptr<ByteStream> GrpcConnection::*stream, const std::string& seen) {
  Status why;
  {
    MutexLock lock(mu_);
    why = !goodbye_.ok() ? goodbye_ : !peers_goodbye_.ok() ? peers_goodbye_ : LostPeer(peer_, seen);
  }
  Close(why);
  {
    MutexLock lock(mu_);
    (this->*stream).reset();
    if (bulk_ == nullptr) {  // nothing writes to it or reads from it any more
      sending_.reset();
      receiver_.Reset();
      window_.reset();
      peers_window_.reset();
    }
    if (control_ != nullptr || bulk_ != nullptr) return;
    why = why_;
  }
  forget_(*this);
  handler_.OnClosed(shared_from_this(), why);
}

void GrpcConnection::Watch(Clock::time_point now, Clock::time_point listening_since) {
  if (closed()) return;
  const Clock::time_point heard = last_heard_.load(std::memory_order_relaxed);
  const auto silent = now - std::max(heard, listening_since);
  if (silent > options_.silence_limit && handling_ == 0) {
    return Close(LostPeer(peer_, StrCat("no byte for ", std::chrono::duration<double>(now - heard).count(),
                                        " s (the process is stopped, or the network is cut)")));
  }
  std::shared_ptr<ByteStream> control;
  {
    MutexLock lock(mu_);
    if (now - last_sent_ < options_.heartbeat_interval) return;
    heartbeat_due_ = true;
    control = control_;
  }
  if (control != nullptr) control->Pump();
}

}  // namespace cohort
