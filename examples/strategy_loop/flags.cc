#include "examples/strategy_loop/flags.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>

#include "examples/command_line.h"

namespace examples {

using namespace cohort;

distribute::StrategyPtr StrategyFromFlags(int argc, char** argv) {
  std::string name = "mirrored";
  std::optional<int> given;
  CommandLine flags("Fits a line to points with its own training loop, under a strategy.");
  flags.Add("--strategy", &name, "Strategy: default, one_device, mirrored, central_storage or multi_worker",
            OneOf({"default", "one_device", "mirrored", "central_storage", "multi_worker"}));
  flags.Add("--num_replicas", &given,
            "Replicas of this process. Default: 2 for mirrored and central_storage, 1 for each worker", AtLeast(1));
  if (const std::optional<int> code = flags.Parse(argc, argv)) std::exit(*code);
  if (name == "default" || name == "one_device") {
    if (given) {
      std::fprintf(stderr, "expected a strategy with several replicas beside --num_replicas=%d; got --strategy=%s\n",
                   *given, name.c_str());
      std::exit(2);
    }
    return name == "default" ? distribute::Default() : distribute::OneDevice("/cpu:0");
  }
  if (name == "multi_worker") return distribute::MultiWorkerMirrored({.replicas_per_worker = given.value_or(1)});
  std::vector<std::string> devices;
  for (int i = 0; i < given.value_or(2); ++i) devices.push_back("/cpu:" + std::to_string(i));
  return name == "mirrored" ? distribute::Mirrored(devices) : distribute::CentralStorage({.compute_devices = devices});
}

data::Dataset PointsOnALine(int64_t count) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> coordinate(-1, 1);
  Tensor x(DType::kFloat32, Shape{count, 2}), y(DType::kFloat32, Shape{count, 1});
  for (int64_t i = 0; i < count; ++i) {
    float* point = x.data<float>() + 2 * i;
    point[0] = coordinate(random);
    point[1] = coordinate(random);
    y.data<float>()[i] = 2 * point[0] - 3 * point[1] + 1;
  }
  return data::Dataset::FromTensorSlices({x, y});
}

void PrintLine(const distribute::Strategy& strategy, const std::vector<Tensor>& weights) {
  const std::vector<float> w = weights.at(0).ToVector<float>();
  std::printf("%d replicas of %s: y = %.3f x0 + %.3f x1 + %.3f\n", strategy.num_replicas_in_sync(),
              strategy.name().c_str(), w[0], w[1], weights.at(1).ToVector<float>()[0]);
}

}  // namespace examples
