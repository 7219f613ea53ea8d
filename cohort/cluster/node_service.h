// NodeService: how a later module speaks over the connections of a ClusterNode. It gets the messages of a range of
// kinds and hears of every connection that ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cohort/cluster/transport.h"

namespace cohort {

class ClusterNode;

// One a node; thread-safe. Called on network threads: quick work only, nothing that waits.
class NodeService {
 public:
  virtual ~NodeService() = default;
  // What it throws closes the connection.
  virtual void OnMessage(const std::shared_ptr<Connection>& connection, Message message) = 0;
  virtual void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) = 0;
  // The node ends; its connections are still there. No other call follows the end of the node's Stop.
  virtual void OnStop(const Status& why) = 0;
};

// Filled once at start by the explicit registration list (cohort/registration.h), read-only afterwards.
class NodeServices {
 public:
  using Factory = std::function<std::unique_ptr<NodeService>(ClusterNode&)>;
  struct Entry {
    uint16_t first_kind = 0;
    uint16_t last_kind = 0;
    Factory make;
  };

  static NodeServices& Global();
  // Kinds from kFirstServiceKind (cluster/steps/protocol.h) on. Throws AlreadyExistsError for a range that overlaps
  // another.
  void Register(uint16_t first_kind, uint16_t last_kind, Factory factory);
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace cohort
