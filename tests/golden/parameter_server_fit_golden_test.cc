// Fit and Evaluate under a ParameterServerStrategy with one worker, whose data have a fixed order, beside the results
// of TensorFlow 2.15.1 (make_parameter_server_fit.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "cohort/core/str_cat.h"
#include "cohort/distribute/testing/parameter_servers.h"
#include "cohort/keras/keras.h"

namespace cohort {
namespace {

// Numbers that follow from their positions, as in the script.
Tensor GoldenWaves(const Shape& shape, double scale, int64_t shift) {
  Tensor tensor(DType::kFloat32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data<float>()[i] = static_cast<float>(scale * static_cast<double>((i * 37 + shift) % 19 - 9) / 9);
  }
  return tensor;
}

using Rows = std::map<std::string, std::vector<double>>;

Rows ReadGolden() {
  Rows rows;
  std::ifstream file(std::string(COHORT_GOLDEN_DIR) + "/parameter_server_fit.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string name;
    in >> name;
    for (double value; in >> value;) rows[name].push_back(value);
  }
  return rows;
}

class ParameterServerFitGolden : public distribute::ParameterServers {
 protected:
  static Rows Train(const distribute::StrategyPtr& strategy, const keras::OptimizerPtr& optimizer) {
    keras::Sequential model({keras::Input(Shape{3}), keras::Dense(6, {.activation = "tanh"}), keras::Dense(1)},
                            {.strategy = strategy});
    model.Compile({.optimizer = optimizer, .loss = "mse", .metrics = {"mae"}});
    model.SetWeights({GoldenWaves(Shape{3, 6}, 0.5, 1), GoldenWaves(Shape{6}, 0.1, 2), GoldenWaves(Shape{6, 1}, 0.5, 3),
                      GoldenWaves(Shape{1}, 0.1, 4)});
    const Tensor x = GoldenWaves(Shape{10, 3}, 1, 5), y = GoldenWaves(Shape{10, 1}, 1, 6);
    const data::Dataset data = data::Dataset::FromTensorSlices({x, y}).Repeat().Batch(4);
    const keras::History history = model.Fit(data, {.epochs = 3, .verbose = 0, .steps_per_epoch = 5});
    Rows rows = {{"loss", history["loss"]}, {"mae", history["mae"]}};
    for (const auto& [name, value] : model.Evaluate(data, {.verbose = 0, .steps = 3})) {
      rows["evaluate"].push_back(value);
    }
    for (const Tensor& weight : model.GetWeights()) {
      for (const float value : weight.ToVector<float>()) rows["weights"].push_back(value);
    }
    return rows;
  }
};

TEST_F(ParameterServerFitGolden, OneWorkerComputesWhatTensorFlowComputes) {
  const Rows golden = ReadGolden();
  ASSERT_EQ(golden.size(), 5u * 4u);
  const std::map<std::string, keras::OptimizerPtr> optimizers = {
      {"sgd", keras::SGD({.learning_rate = 0.05, .momentum = 0.9})},
      {"adam", keras::Adam({.learning_rate = 0.01})},
      {"adagrad", keras::Adagrad({.learning_rate = 0.05})},
      {"rmsprop", keras::RMSprop({.learning_rate = 0.01})},
      {"clipnorm", keras::SGD({.learning_rate = 0.5, .clipnorm = 0.05})}};
  for (const int parts : {1, 2}) {
    for (const auto& [name, optimizer] : optimizers) {
      const auto strategy = Open(1, 2, parts > 1 ? distribute::FixedShardsPartitioner(parts) : nullptr);
      for (const auto& [what, values] : Train(strategy, optimizer)) {
        const std::vector<double>& expected = golden.at(StrCat(name, "/", what));
        ASSERT_EQ(values.size(), expected.size()) << name << " " << what;
        for (size_t i = 0; i < values.size(); ++i) {
          EXPECT_NEAR(values[i], expected[i], 1e-5) << name << " " << what << " " << i << ", " << parts << " parts";
        }
      }
    }
  }
}

}  // namespace
}  // namespace cohort
