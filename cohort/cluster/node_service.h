// NodeService: how a later module uses the connections of a ClusterNode. A service receives the messages of a range of
// kinds, and is told of every connection that closes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cohort/cluster/transport.h"

namespace cohort {

class ClusterNode;

// The base of all services. Each node owns one object of each service. Thread-safe. Called on network threads, so a
// call must be quick and must not wait.
class NodeService {
 public:
  virtual ~NodeService() = default;
  // If it throws, the connection is closed with that error.
  virtual void OnMessage(const std::shared_ptr<Connection>& connection, Message message) = 0;
  virtual void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) = 0;
  // The node stops. Its connections are still open. After the node's Stop has returned, no more calls come.
  virtual void OnStop(const Status& why) = 0;
};

// The services of later modules. cohort/registration.h fills it once at the start. After that it never changes, and all
// threads may read it.
class NodeServices {
 public:
  using Factory = std::function<std::unique_ptr<NodeService>(ClusterNode&)>;
  struct Entry {
    uint16_t first_kind = 0;
    uint16_t last_kind = 0;
    Factory make;
  };

  static NodeServices& Global();
  // Registers a service for the kinds first_kind..last_kind. They must be at least kFirstServiceKind
  // (cluster/steps/protocol.h). Throws AlreadyExistsError if the range overlaps another one.
  void Register(uint16_t first_kind, uint16_t last_kind, Factory factory);
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace cohort
