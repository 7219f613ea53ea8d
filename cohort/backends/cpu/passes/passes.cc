#include "cohort/backends/cpu/passes/passes.h"

#include <utility>

#include "cohort/backends/cpu/passes/bias_fusion.h"
#include "cohort/backends/cpu/passes/image_gradient_fusion.h"
#include "cohort/backends/cpu/passes/layout.h"

namespace cohort {

std::unique_ptr<Graph> RunCpuPasses(std::unique_ptr<Graph> partition, const std::string& device_type) {
  std::unique_ptr<Graph> graph = FuseImageGradients(FuseBiases(std::move(partition), device_type), device_type);
  ChooseOrders(*graph, device_type);
  return graph;
}

}  // namespace cohort
