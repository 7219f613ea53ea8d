// NodeService: how a module above cluster/ uses the connections of a ClusterNode. A service receives the messages of a
// range of kinds, and is told of the connections that close.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cohort/cluster/transport.h"

namespace cohort {

class ClusterNode;
struct CollectiveWait;

// The base of all services. Each node owns one object of each service, from the node's constructor to its destructor.
// Implementations must be thread-safe. OnMessage and OnClosed are called on network threads, so they must be quick and
// must not wait.
class NodeService {
 public:
  virtual ~NodeService() = default;
  // Handles a message of one of the service's kinds, which has come over `connection`. If OnMessage throws, the
  // connection is closed, and the reason that OnClosed gets contains the error's text.
  virtual void OnMessage(const std::shared_ptr<Connection>& connection, Message message) = 0;
  // A connection of the node has closed. No call begins after the node's Stop has begun. OnClosed may be called twice
  // for a connection that closes just after it was made.
  virtual void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) = 0;
  // Adds what this process waits for in the service. Any thread may call it. It must be quick and must not wait.
  virtual void AppendWaits(std::vector<CollectiveWait>* waits) { static_cast<void>(waits); }
  // The node stops. Called once, on the thread that calls the node's Stop. The connections are still open, and
  // OnMessage may still be called until the node's Stop returns.
  virtual void OnStop(const Status& why) = 0;
};

// The services of modules above cluster/. cohort/registration.h fills it once at the start. After that it never
// changes, and all threads may read it.
class NodeServices {
 public:
  using Factory = std::function<std::unique_ptr<NodeService>(ClusterNode&)>;
  struct Entry {
    uint16_t first_kind = 0;
    uint16_t last_kind = 0;
    Factory make;
  };

  static NodeServices& Global();
  // Registers a service for the kinds first_kind..last_kind. `factory` is called once for each node, in the node's
  // constructor. Throws InvalidArgumentError if a kind is less than kFirstServiceKind (cluster/steps/protocol.h), and
  // AlreadyExistsError if the range overlaps another one. Not thread-safe.
  void Register(uint16_t first_kind, uint16_t last_kind, Factory factory);
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace cohort
