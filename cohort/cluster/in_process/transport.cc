// The transport inside one process: connections are pairs of objects, messages are handed over by reference. Each
// transport has one thread, which makes all calls to its handler. Used by tests, and the measure of what a network
// adds.
#include "cohort/cluster/transport.h"

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/handshake.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFirstPort = 1;

class InProcessConnection;

// What outlives a transport for those who still point at it.
class Site : public std::enable_shared_from_this<Site> {
 public:
  Site(TransportHandler& handler, const TransportOptions& options) : options(options), handler_(handler) {}

  void Start() {
    thread_ = std::thread([self = shared_from_this()] { self->Run(); });
  }
  // Runs `call` after those posted before; drops it once stopped.
  void Post(std::function<void(TransportHandler&)> call) EXCLUDES(mu_);
  void Add(const std::shared_ptr<InProcessConnection>& connection) EXCLUDES(mu_);
  void Remove(const std::shared_ptr<InProcessConnection>& connection) EXCLUDES(mu_);
  void SetIdentity(const TaskIdentity& identity) EXCLUDES(mu_);
  // Waits for it. Throws UnavailableError once stopped or at `deadline`.
  TaskIdentity WaitForIdentity(Clock::time_point deadline) EXCLUDES(mu_);
  void Stop() EXCLUDES(mu_);

  const TransportOptions options;

 private:
  void Run() EXCLUDES(mu_);

  TransportHandler& handler_;
  Mutex mu_;
  CondVar changed_;
  std::deque<std::function<void(TransportHandler&)>> calls_ GUARDED_BY(mu_);
  std::set<std::shared_ptr<InProcessConnection>> connections_ GUARDED_BY(mu_);
  std::optional<TaskIdentity> identity_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
  bool stopped_ GUARDED_BY(mu_) = false;
  std::thread thread_;
};

class InProcessConnection final : public Connection, public std::enable_shared_from_this<InProcessConnection> {
 public:
  InProcessConnection(std::shared_ptr<Site> site, TaskIdentity peer) : site_(std::move(site)), peer_(std::move(peer)) {}

  // Makes two sides each other's; before either is used.
  static void Join(const std::shared_ptr<InProcessConnection>& a, const std::shared_ptr<InProcessConnection>& b) {
    a->other_ = b;
    b->other_ = a;
  }

  const TaskIdentity& peer() const override { return peer_; }
  bool closed() const override { return closed_.load(std::memory_order_acquire); }
  // A peer in the same process is never stopped alone.
  std::chrono::milliseconds silent_for() const override { return std::chrono::milliseconds(0); }

  void Send(Message message) override {
    std::vector<Message> messages;
    messages.push_back(std::move(message));
    Send(std::move(messages));
  }

  void Send(std::vector<Message> messages) override {
    for (const Message& message : messages) CheckCanTravel(message);
    const auto other = other_.lock();
    if (closed() || other == nullptr) return;
    other->site_->Post([other, messages = std::move(messages)](TransportHandler& handler) mutable {
      try {
        for (Message& message : messages) handler.OnMessage(other, std::move(message));
      } catch (...) {
        other->Close(other->LostStatus(Status::FromCurrentException().ToString()));
      }
    });
  }

  void Close(const Status& why) override {
    End(why);
    if (const auto other = other_.lock()) other->End(other->LostStatus("the connection was closed by the peer"));
  }

 private:
  Status LostStatus(const std::string& seen) const {
    return Status(Code::kUnavailable, StrCat("[transport] lost ", peer_.task,
                                             peer_.address.empty() ? "" : " (" + peer_.address + ")", ": ", seen));
  }
  void End(const Status& why) {
    if (closed_.exchange(true, std::memory_order_acq_rel)) return;
    site_->Post([self = shared_from_this(), why](TransportHandler& handler) {
      self->site_->Remove(self);
      handler.OnClosed(self, why);
    });
  }

  const std::shared_ptr<Site> site_;
  const TaskIdentity peer_;
  std::weak_ptr<InProcessConnection> other_;
  std::atomic<bool> closed_{false};
};

void Site::Post(std::function<void(TransportHandler&)> call) {
  MutexLock lock(mu_);
  if (stopped_) return;
  calls_.push_back(std::move(call));
  changed_.NotifyAll();
}

void Site::Add(const std::shared_ptr<InProcessConnection>& connection) {
  MutexLock lock(mu_);
  if (stopping_) throw UnavailableError("[transport] the transport is shut down");
  connections_.insert(connection);
}

void Site::Remove(const std::shared_ptr<InProcessConnection>& connection) {
  MutexLock lock(mu_);
  connections_.erase(connection);
  changed_.NotifyAll();
}

void Site::SetIdentity(const TaskIdentity& identity) {
  MutexLock lock(mu_);
  identity_ = identity;
  changed_.NotifyAll();
}

TaskIdentity Site::WaitForIdentity(Clock::time_point deadline) {
  MutexLock lock(mu_);
  while (!identity_ && !stopping_ && changed_.WaitUntil(mu_, deadline)) {
  }
  if (!identity_ || stopping_) throw UnavailableError("[transport] the task does not serve (yet)");
  return *identity_;
}

void Site::Run() {
  SetThreadName("cohort-inproc");
  for (;;) {
    std::function<void(TransportHandler&)> call;
    {
      MutexLock lock(mu_);
      while (calls_.empty() && !stopped_) changed_.Wait(mu_);  // Stop ends it
      if (calls_.empty()) return;
      call = std::move(calls_.front());
      calls_.pop_front();
    }
    call(handler_);
  }
}

void Site::Stop() {
  std::set<std::shared_ptr<InProcessConnection>> connections;
  {
    MutexLock lock(mu_);
    if (stopping_) return;
    stopping_ = true;
    connections = connections_;
    changed_.NotifyAll();
  }
  for (const auto& connection : connections) {
    connection->Close(Status(Code::kCancelled, "[transport] this side shuts down"));
  }
  {
    MutexLock lock(mu_);
    while (!connections_.empty()) changed_.Wait(mu_);  // ends: their OnClosed are posted
    stopped_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

}  // namespace

class InProcessNetwork {
 public:
  // The bound port. Throws UnavailableError where another listens there.
  int Listen(const HostPort& address, const std::shared_ptr<Site>& site) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    const int port = address.port == 0 ? next_port_++ : address.port;
    auto& listener = listeners_[{address.host, port}];
    if (!listener.expired()) {
      throw UnavailableError(StrCat("[transport] port ", port, " of ", address.host, " is in use"));
    }
    listener = site;
    return port;
  }
  void Forget(const Site* site) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    std::erase_if(listeners_, [site](const auto& entry) {
      const auto alive = entry.second.lock();
      return alive == nullptr || alive.get() == site;
    });
  }
  // Null where nobody listens.
  std::shared_ptr<Site> Find(const HostPort& address) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    const auto it = listeners_.find({address.host, address.port});
    return it == listeners_.end() ? nullptr : it->second.lock();
  }

 private:
  Mutex mu_;
  int next_port_ GUARDED_BY(mu_) = kFirstPort;
  std::map<std::pair<std::string, int>, std::weak_ptr<Site>> listeners_ GUARDED_BY(mu_);
};

namespace {

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(std::shared_ptr<InProcessNetwork> network, TransportHandler& handler,
                     const TransportOptions& options)
      : network_(std::move(network)), site_(std::make_shared<Site>(handler, options)) {
    site_->Start();
  }
  ~InProcessTransport() override { Shutdown(); }

  int Listen(const std::string& address) override { return network_->Listen(ParseAddress(address), site_); }
  void SetIdentity(const TaskIdentity& identity) override { site_->SetIdentity(identity); }
  std::shared_ptr<Connection> Dial(const std::string& address, const std::string& expected_task,
                                   Clock::time_point deadline) override;
  void Shutdown() override {
    network_->Forget(site_.get());
    site_->Stop();
  }

 private:
  const std::shared_ptr<InProcessNetwork> network_;
  const std::shared_ptr<Site> site_;
};

std::shared_ptr<Connection> InProcessTransport::Dial(const std::string& address, const std::string& expected_task,
                                                     Clock::time_point deadline) {
  const std::shared_ptr<Site> there = network_->Find(ParseAddress(address));
  if (there == nullptr) throw UnavailableError(StrCat("[transport] no connection to ", address, ": nobody listens"));
  const TaskIdentity mine = site_->WaitForIdentity(deadline);
  const TaskIdentity theirs = there->WaitForIdentity(deadline);
  CheckProof(ProveToken(there->options.token, "accept", "", ""), ProveToken(site_->options.token, "accept", "", ""),
             theirs);
  CheckCompatible(mine, theirs, expected_task);
  const auto here_side = std::make_shared<InProcessConnection>(site_, theirs);
  const auto there_side = std::make_shared<InProcessConnection>(there, mine);
  InProcessConnection::Join(here_side, there_side);
  site_->Add(here_side);
  try {
    there->Add(there_side);
  } catch (const UnavailableError&) {
    site_->Remove(here_side);
    throw;
  }
  there->Post([there_side](TransportHandler& handler) { handler.OnAccepted(there_side); });
  return here_side;
}

}  // namespace

std::shared_ptr<InProcessNetwork> MakeInProcessNetwork() { return std::make_shared<InProcessNetwork>(); }

std::unique_ptr<Transport> MakeInProcessTransport(std::shared_ptr<InProcessNetwork> network, TransportHandler& handler,
                                                  const TransportOptions& options) {
  return std::make_unique<InProcessTransport>(std::move(network), handler, options);
}

}  // namespace cohort
