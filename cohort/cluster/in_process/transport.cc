// The transport inside one process. A connection is a pair of objects, one for each side, and messages are passed by
// reference. Each transport has a Site with one thread, which makes all calls of its handler. The Switchboard is the
// table of addresses: it knows which site listens where.
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

class InProcessConnection;

// The thread and the connections of one transport. It may live longer than the transport, because connections point to
// it.
class Site : public std::enable_shared_from_this<Site> {
 public:
  using Call = std::function<void(TransportHandler&)>;

  Site(TransportHandler& handler, const TransportOptions& options) : options(options), handler_(handler) {}

  void Start() {
    thread_ = std::thread([self = shared_from_this()] { self->Run(); });
  }
  // Runs `call` on the thread, after all calls that were posted before. Ignores it after the stop.
  void Post(Call call) COHORT_EXCLUDES(mu_);
  // Adds a connection. `first` is the first call for it; null if there is none. Throws UnavailableError if this side is
  // stopping.
  void Add(const std::shared_ptr<InProcessConnection>& connection, Call first) COHORT_EXCLUDES(mu_);
  void Remove(const std::shared_ptr<InProcessConnection>& connection) COHORT_EXCLUDES(mu_);
  void Stop(const std::string& why) COHORT_EXCLUDES(mu_);

  const TransportOptions options;

 private:
  void Run() COHORT_EXCLUDES(mu_);

  TransportHandler& handler_;
  Mutex mu_;
  CondVar changed_;
  std::deque<Call> calls_ COHORT_GUARDED_BY(mu_);
  std::set<std::shared_ptr<InProcessConnection>> connections_ COHORT_GUARDED_BY(mu_);
  bool stopping_ COHORT_GUARDED_BY(mu_) = false;
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

class InProcessConnection final : public Connection, public std::enable_shared_from_this<InProcessConnection> {
 public:
  InProcessConnection(std::shared_ptr<Site> site, TaskIdentity peer) : site_(std::move(site)), peer_(std::move(peer)) {}

  // Connects two sides with each other. Must be called before either is used.
  static void Join(const std::shared_ptr<InProcessConnection>& a, const std::shared_ptr<InProcessConnection>& b) {
    a->other_ = b;
    b->other_ = a;
  }

  const TaskIdentity& peer() const override { return peer_; }
  bool closed() const override { return closed_.load(std::memory_order_acquire); }
  // A peer in the same process cannot be silent.
  std::chrono::milliseconds silent_for() const override { return std::chrono::milliseconds(0); }

  void Send(Message message) override {
    std::vector<Message> messages;
    messages.push_back(std::move(message));
    Send(std::move(messages));
  }

  void Send(std::vector<Message> messages) override {
    size_t bytes = 0;
    for (const Message& message : messages) {
      CheckCanTravel(message);
      bytes += MaxEncodedSize(message);
    }
    const auto other = other_.lock();
    if (closed() || other == nullptr) return;
    CountSent(bytes);
    other->CountReceived(bytes);
    other->site_->Post([other, messages = std::move(messages)](TransportHandler& handler) mutable {
      other->Deliver(handler, std::move(messages));
    });
  }

  // In this transport all messages of a connection are handled in the order of Send.
  void SendAfterAll(Message message) override {
    CheckIsSmall(message);
    Send(std::move(message));
  }

  void Close(const Status& why) override {
    closed_here_.store(true, std::memory_order_release);
    End(why);
    if (const auto other = other_.lock()) {
      other->End(LostPeer(other->peer_, StrCat("the connection was closed by the peer: ", why.message())));
    }
  }

 private:
  void Deliver(TransportHandler& handler, std::vector<Message> messages) {
    try {
      for (Message& message : messages) {
        // Senders check closed_ before they post. So a message that is posted after the end was already being sent
        // then.
        if (over_ || closed_here_.load(std::memory_order_acquire)) return;
        handler.OnMessage(shared_from_this(), std::move(message));
      }
    } catch (...) {
      Close(LostPeer(peer_, Status::FromCurrentException().ToString()));
    }
  }
  void End(const Status& why) {
    if (closed_.exchange(true, std::memory_order_acq_rel)) return;
    site_->Post([self = shared_from_this(), why](TransportHandler& handler) {
      self->over_ = true;
      handler.OnClosed(self, why);
      self->site_->Remove(self);
    });
  }

  const std::shared_ptr<Site> site_;
  const TaskIdentity peer_;
  std::weak_ptr<InProcessConnection> other_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> closed_here_{false};  // this side has closed it and wants no more messages
  bool over_ = false;                     // OnClosed was called; only for the site's thread
};

void Site::Post(Call call) {
  MutexLock lock(mu_);
  if (stopped_) return;
  calls_.push_back(std::move(call));
  changed_.NotifyAll();
}

void Site::Add(const std::shared_ptr<InProcessConnection>& connection, Call first) {
  MutexLock lock(mu_);
  if (stopping_) throw UnavailableError("[transport] the transport is shut down");
  connections_.insert(connection);
  if (first == nullptr) return;
  calls_.push_back(std::move(first));
  changed_.NotifyAll();
}

void Site::Remove(const std::shared_ptr<InProcessConnection>& connection) {
  MutexLock lock(mu_);
  connections_.erase(connection);
  changed_.NotifyAll();
}

void Site::Run() {
  SetThreadName("cohort-inproc");
  for (;;) {
    Call call;
    {
      MutexLock lock(mu_);
      while (calls_.empty() && !stopped_) changed_.Wait(mu_);  // ends with Stop
      if (calls_.empty()) return;
      call = std::move(calls_.front());
      calls_.pop_front();
    }
    call(handler_);
  }
}

void Site::Stop(const std::string& why) {
  std::set<std::shared_ptr<InProcessConnection>> connections;
  {
    MutexLock lock(mu_);
    if (stopping_) return;
    stopping_ = true;
    connections = connections_;
  }
  for (const auto& connection : connections) connection->Close(Status(Code::kCancelled, why));
  {
    MutexLock lock(mu_);
    while (!connections_.empty()) changed_.Wait(mu_);  // ends: the calls of OnClosed are posted
    stopped_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

// The table of addresses in this process: which site listens where, and which callers wait for an answer.
class Switchboard {
 public:
  struct Party {
    std::shared_ptr<Site> site;
    TaskIdentity identity;
  };

  static Switchboard& Global() {
    static auto* const switchboard = new Switchboard;
    return *switchboard;
  }

  // Returns the port. Throws UnavailableError if another site listens there.
  int Listen(const HostPort& address, const std::shared_ptr<Site>& site) COHORT_EXCLUDES(mu_);
  void SetIdentity(const Site& site, const TaskIdentity& identity) COHORT_EXCLUDES(mu_);
  // Returns nullopt if the site has no identity yet.
  std::optional<TaskIdentity> IdentityOf(const Site& site) COHORT_EXCLUDES(mu_);
  // Waits until the site that listens at `address` has an identity. Returns nullopt if `deadline` passes first. Throws
  // UnavailableError if no site listens there, or if `caller` has left.
  std::optional<Party> Call(const HostPort& address, const Site& caller, Clock::time_point deadline)
      COHORT_EXCLUDES(mu_);
  void Enter(const Site& site) COHORT_EXCLUDES(mu_);
  void Leave(const Site& site) COHORT_EXCLUDES(mu_);

 private:
  using Key = std::pair<std::string, int>;
  static Key KeyOf(const HostPort& address, int port) {
    return {address.host == "localhost" ? "127.0.0.1" : address.host, port};
  }

  // Returns a port on which no site listens.
  int FreePort(const HostPort& address) COHORT_REQUIRES(mu_);

  static constexpr int kFirstFreePort = 49152;
  static constexpr int kLastPort = 65535;

  Mutex mu_;
  CondVar changed_;
  int last_port_ COHORT_GUARDED_BY(mu_) = kFirstFreePort;
  std::map<Key, std::shared_ptr<Site>> listeners_ COHORT_GUARDED_BY(mu_);
  std::map<const Site*, std::optional<TaskIdentity>> present_ COHORT_GUARDED_BY(mu_);
};

int Switchboard::FreePort(const HostPort& address) {
  for (int tried = kFirstFreePort; tried <= kLastPort; ++tried) {
    last_port_ = last_port_ < kLastPort ? last_port_ + 1 : kFirstFreePort;  // a port is not used again at once
    if (listeners_.count(KeyOf(address, last_port_)) == 0) return last_port_;
  }
  throw UnavailableError(StrCat("[transport] no free port on ", address.host, " of this process"));
}

int Switchboard::Listen(const HostPort& address, const std::shared_ptr<Site>& site) {
  MutexLock lock(mu_);
  const int port = address.port == 0 ? FreePort(address) : address.port;
  if (present_.count(site.get()) == 0) throw UnavailableError("[transport] the transport is shut down");
  if (!listeners_.emplace(KeyOf(address, port), site).second) {
    throw UnavailableError(
        StrCat("[transport] cannot listen on ", address.host, ":", port, " of this process: the port is in use"));
  }
  return port;
}

void Switchboard::SetIdentity(const Site& site, const TaskIdentity& identity) {
  MutexLock lock(mu_);
  const auto it = present_.find(&site);
  if (it != present_.end()) it->second = identity;
  changed_.NotifyAll();
}

std::optional<TaskIdentity> Switchboard::IdentityOf(const Site& site) {
  MutexLock lock(mu_);
  const auto it = present_.find(&site);
  return it == present_.end() ? std::nullopt : it->second;
}

std::optional<Switchboard::Party> Switchboard::Call(const HostPort& address, const Site& caller,
                                                    Clock::time_point deadline) {
  MutexLock lock(mu_);
  for (;;) {
    if (present_.count(&caller) == 0) throw UnavailableError("[transport] the transport is shut down");
    const auto it = listeners_.find(KeyOf(address, address.port));
    if (it == listeners_.end()) {
      throw UnavailableError(StrCat("[transport] no connection to ", address.host, ":", address.port,
                                    ": nobody in this process listens there"));
    }
    if (const auto& identity = present_.at(it->second.get())) return Party{it->second, *identity};
    if (!changed_.WaitUntil(mu_, deadline)) return std::nullopt;
  }
}

void Switchboard::Enter(const Site& site) {
  MutexLock lock(mu_);
  present_[&site];
}

void Switchboard::Leave(const Site& site) {
  MutexLock lock(mu_);
  present_.erase(&site);
  std::erase_if(listeners_, [&site](const auto& entry) { return entry.second.get() == &site; });
  changed_.NotifyAll();
}

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(TransportHandler& handler, const TransportOptions& options)
      : site_(std::make_shared<Site>(handler, options)) {
    Switchboard::Global().Enter(*site_);
    site_->Start();
  }
  ~InProcessTransport() override { Shutdown(); }

  int Listen(const std::string& address) override { return Switchboard::Global().Listen(ParseAddress(address), site_); }
  void SetIdentity(const TaskIdentity& identity) override { Switchboard::Global().SetIdentity(*site_, identity); }
  std::shared_ptr<Connection> Dial(const std::string& address, const std::string& expected_task,
                                   const DialEnd& end) override;

 private:
  void End(const std::string& why) override {
    Switchboard::Global().Leave(*site_);
    site_->Stop(why);
  }

  const std::shared_ptr<Site> site_;
};

std::shared_ptr<Connection> InProcessTransport::Dial(const std::string& address, const std::string& expected_task,
                                                     const DialEnd& end) {
  const auto start = Clock::now();
  const HostPort where = ParseAddress(address);
  const auto limit = std::min(end.deadline, start + site_->options.handshake_timeout);
  const auto mine = Switchboard::Global().IdentityOf(*site_);
  const auto there = Switchboard::Global().Call(where, *site_, limit);
  if (!mine) throw FailedPreconditionError("[transport] SetIdentity comes before Dial");
  if (!there) throw NoAnswer(expected_task, address, Clock::now() - start);
  const TransportOptions& theirs = there->site->options;
  CheckSameToken(site_->options.token, theirs.token, there->identity);
  CheckCompatible(*mine, there->identity, expected_task);
  const auto here_side = std::make_shared<InProcessConnection>(site_, there->identity);
  const auto there_side = std::make_shared<InProcessConnection>(there->site, *mine);
  InProcessConnection::Join(here_side, there_side);
  site_->Add(here_side, nullptr);
  try {
    there->site->Add(there_side, [there_side](TransportHandler& handler) { handler.OnAccepted(there_side); });
  } catch (const UnavailableError&) {
    site_->Remove(here_side);
    throw;
  }
  return here_side;
}

}  // namespace

std::unique_ptr<Transport> MakeInProcessTransport(TransportHandler& handler, const TransportOptions& options) {
  return std::make_unique<InProcessTransport>(handler, options);
}

}  // namespace cohort
