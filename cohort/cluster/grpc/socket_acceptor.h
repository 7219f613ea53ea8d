// SocketAcceptor: accepts sockets and makes the acceptor's handshake on them. Only a socket whose peer has proved
// itself leaves it. Until then a peer costs one descriptor and at most a few KiB, and only for a limited time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/grpc/refusal_log.h"
#include "cohort/cluster/grpc/socket.h"
#include "cohort/cluster/grpc/tls_news.h"

namespace cohort {

// What the acceptor asks and gives away. All calls come on the acceptor's thread.
class SocketAcceptorHost {
 public:
  virtual ~SocketAcceptorHost() = default;
  // Returns the secret of the accepted connection with this number, or nullopt if there is none.
  virtual std::optional<ConnectionSecret> SecretOf(uint64_t number) = 0;
  // The peer has proved itself. Returns the messages that the handshake's Welcome or WelcomeBulk gives, or nullopt if
  // the peer has to wait: the acceptor asks again after SocketAcceptor::Wake. If it throws, the peer is refused.
  virtual std::optional<std::vector<std::string>> Welcome(AcceptorHandshake& handshake) = 0;
  // The handshake is done, and the peer knows. Takes over the socket.
  virtual void TakeSocket(const AcceptorHandshake& handshake, Descriptor socket) = 0;
  // With TLS only, in place of all of the above: the peer begins a TLS handshake. Gives the socket to gRPC, with the
  // credentials of `slot`, whose verifier tells TlsNews what it finds.
  virtual void TakeTlsSocket(int slot, Descriptor socket) = 0;
};

// A socket with TLS is given to gRPC before its peer has proved itself. Each slot has credentials of its own and one
// such socket at a time, so the address of a peer that gRPC refuses is known. If all slots are taken, more sockets
// share the last one.
inline constexpr int kTlsSlots = 9;

// A TLS handshake that fails costs a task about a millisecond of processor time, which is that of ten handshakes
// without TLS and more. So it counts as ten failures.
inline constexpr int kTlsFailureWeight = 10;

// Limits for peers that have not proved themselves.
struct AcceptorLimits {
  std::chrono::milliseconds timeout;  // for a handshake
  int handshakes;                     // at the same time
  int handshakes_per_address;         // of one IP address at the same time
  int failures_per_second;            // handshakes that end without a proof
};

// Owned by a transport. One thread does all the work. If there are too many handshakes, the acceptor drops the oldest
// one of a peer that has sent nothing, or else the oldest one. So peers that only connect do not keep others out. If
// too many handshakes fail, the acceptor accepts nothing for a short time: strangers who connect in a loop then wait in
// the kernel's queue, and leave the processor to the training. A TLS handshake counts as failed from its beginning
// until the peer has shown a good certificate, so that not too many begin at once. Thread-safe, except Start and Stop.
class SocketAcceptor {
 public:
  SocketAcceptor(SocketAcceptorHost& host, std::string token, const AcceptorLimits& limits);
  // Calls Stop.
  ~SocketAcceptor();
  // Begins to accept on the sockets of `listener`. Must be called at most once.
  void Start(Listener listener);
  // Asks the host again about the peers that wait.
  void Wake() { wake_.Notify(); }
  // With TLS. Must be called before Start. Then no handshake is made here: a peer has to begin with a TLS handshake.
  // When its first message is there, the socket goes to gRPC, and a copy of it stays, for the limits, until the news
  // say that the peer has proved itself.
  std::shared_ptr<TlsNews> UseTls();
  // Logs that a peer was refused.
  void LogRefusal(const std::string& address, const std::string& why) { log_.Refused(address, why); }
  // Closes all sockets that are in a handshake, stops listening and joins the thread. Later calls do nothing.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Pending {
    Descriptor socket;
    std::string address;  // with the port
    std::string host;     // without it
    AcceptorHandshake handshake;
    Clock::time_point deadline;
    std::string in;         // the message that is coming, with its length
    std::string out;        // bytes to send
    bool has_sent = false;  // the peer has sent a whole message; with TLS: a good certificate
    bool given = false;     // with TLS: gRPC has the socket, too
    bool charged = false;   // with TLS: the handshake counts as failed
    int slot = -1;          // with TLS: the slot that is this socket's alone
  };
  // Numbers of pending handshakes. They grow, so that the oldest one is the first in the map.
  using Key = uint64_t;
  using Pendings = std::map<Key, Pending>;

  void Run();
  void Watch(int operation, int fd, uint32_t events, Key key);
  void AcceptFrom(int listener);
  // Accepts nothing until `end`.
  void Pause(Clock::time_point end);
  void EndPause();
  // Adds to the failures, and pauses if there are too many.
  void Charge(int failures);
  // A handshake that was counted as failed has a peer with a good certificate.
  void GiveBackCharge(Pending& pending);
  // Says, once in a while, that there are too many failures.
  void WarnOfFailures();
  // Takes from failures_ what the intervals that have passed allow.
  void ForgetFailures();
  // Returns how many failures an interval allows.
  int FailuresOfAnInterval() const;
  void Add(Descriptor socket);
  void MakeRoom(const std::string& host);
  // Drops one handshake, of `host` if that is not "". Returns false if there is none that has not proved itself.
  bool DropOldest(const std::string& host, const char* why);
  int CountUnproved(const std::string& host) const;
  // Each of these may remove the handshake.
  void OnEvent(Key key, uint32_t events);
  void OnTlsEvent(Key key, uint32_t events);
  void GiveToTls(Key key);
  void HandleTlsNews();
  void OnVerdict(const TlsNews::Verdict& judged);
  void ReadFrom(Key key);
  void TryWelcome(Key key);
  void WriteTo(Key key);
  void Refuse(Key key, const Status& why);
  void Drop(Key key, const std::string& why);
  // Drops the handshakes that are late. Returns how long to wait for the next one or for the end of a pause, in ms; -1:
  // without limit.
  int DropLate();
  // Ends the handshake, if it is still there, and counts it as a failure if the peer has not proved itself.
  void Remove(Key key);
  // Forgets the handshake, and closes the socket.
  void Forget(Key key);

  SocketAcceptorHost& host_;
  const std::string token_;
  const AcceptorLimits limits_;
  RefusalLog log_;
  WakeUp wake_;
  Descriptor epoll_;
  Listener listener_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};

  std::shared_ptr<TlsNews> tls_;  // null without TLS; constant after Start

  // Only for the thread.
  Pendings pending_;
  std::array<Key, kTlsSlots - 1> slots_{};  // the handshake that has the slot, or 0
  Key next_key_;
  // Set while the acceptor accepts nothing: no descriptors are left, or too many handshakes have failed.
  std::optional<Clock::time_point> paused_until_;
  Clock::time_point failures_since_{};  // the beginning of the interval
  int failures_ = 0;                    // of the interval, and what was too much in those before it
  Clock::time_point next_warning_{};
};

}  // namespace cohort
