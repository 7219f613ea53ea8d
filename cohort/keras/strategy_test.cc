// Models on strategies: N replicas make the updates of one device with the whole global batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/distribute/strategies.h"
#include "cohort/keras/image_layers.h"
#include "cohort/keras/normalization_layers.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/keras/testing/updates.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/reduction.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

distribute::StrategyPtr Make(const std::string& kind, int replicas) {
  if (kind == "mirrored") return distribute::MirroredOnCpus(replicas);
  std::vector<std::string> devices;
  for (int i = 0; i < replicas; ++i) devices.push_back(StrCat("/cpu:", i));
  return distribute::CentralStorage({.compute_devices = devices});
}

OptimizerPtr MakeOptimizer(const std::string& name) {
  if (name == "momentum") return SGD({.learning_rate = 0.05, .momentum = 0.9, .nesterov = true});
  if (name == "clipped") return SGD({.learning_rate = 0.5, .global_clipnorm = 0.1});
  if (name == "adamw") return AdamW({.learning_rate = 0.01, .epsilon = 1e-3});
  if (name == "adagrad") return Adagrad({.learning_rate = 0.05});
  if (name == "rmsprop") return RMSprop({.learning_rate = 0.01, .epsilon = 1e-3, .centered = true});
  return Ftrl({.learning_rate = 0.05, .l1_regularization_strength = 1e-3});
}

class Replicas : public ::testing::TestWithParam<std::tuple<std::string, int, std::string>> {};

// Other data for every replica, an uneven last batch, sometimes fewer examples than replicas, regularizers, weights of
// examples and classes, moving statistics over all replicas, losses by count and by weight.
TEST_P(Replicas, UpdateAsOneDevice) {
  const auto& [kind, replicas, optimizer] = GetParam();
  for (int variant = 0; variant < 4; ++variant) {
    TrainingCase one;
    one.optimizer = MakeOptimizer(optimizer);
    one.examples = 22 + variant;
    one.batch_size = variant == 3 ? 3 : 8 + variant;
    one.regularized = variant % 2 == 0;
    one.weighted = variant >= 1;
    one.by_weight = variant == 2;
    one.normalized = variant != 1;
    one.seed = 17 * replicas + variant;
    const Trained expected = Train(one, nullptr);
    const Trained got = Train(one, Make(kind, replicas));
    EXPECT_LT(DistanceOfUpdates(expected, got), 2e-5) << "variant " << variant;
    EXPECT_NEAR(got.loss, expected.loss, 1e-5 * std::abs(expected.loss) + 1e-6) << "variant " << variant;
    EXPECT_NEAR(got.metric, expected.metric, 1e-5) << "variant " << variant;
    EXPECT_NEAR(got.evaluated, expected.evaluated, 1e-4 * std::abs(expected.evaluated)) << "variant " << variant;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Replicas,
                         ::testing::Combine(::testing::Values("mirrored", "central"), ::testing::Values(1, 2, 3, 4),
                                            ::testing::Values("momentum", "clipped", "adamw", "adagrad", "rmsprop",
                                                              "ftrl")),
                         [](const auto& info) {
                           return StrCat(std::get<0>(info.param), "_", std::get<1>(info.param), "_",
                                         std::get<2>(info.param));
                         });

}  // namespace
}  // namespace cohort::keras
