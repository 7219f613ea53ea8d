#include "cohort/cluster/client_node.h"

namespace cohort {

std::shared_ptr<ClusterNode> MakeClientNode(const std::string& protocol, const TransportOptions& transport,
                                            bool asks_only) {
  // Two clients are told apart by a random task index.
  const DeviceName name = FullTaskName("client", static_cast<int>(NewIncarnation() & 0x7fffffff));
  NodeOptions options;
  options.asks_only = asks_only;
  options.make_client = [protocol, transport] { return MakeClientNode(protocol, transport); };
  auto node = std::make_shared<ClusterNode>(
      ClusterSpec(), name, nullptr, nullptr,
      [&](TransportHandler& handler) { return MakeTransport(protocol, handler, transport); }, options);
  node->peers().SetAddress("");
  return node;
}

}  // namespace cohort
