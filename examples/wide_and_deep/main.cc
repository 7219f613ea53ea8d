// Trains a wide and deep model (DNNLinearCombinedClassifier) that says who earns much, from generated people: age,
// hours of work, job and country. The wide part remembers combinations of job and country; the deep part learns from
// numbers and embeddings. Feature columns say what becomes of each feature.
//
//   wide_and_deep --model_dir=/tmp/wide
//   cohort launch --chief --workers=1 --ps=2 --evaluator -- wide_and_deep --model_dir=/tmp/wide
//
// Alone it trains, evaluates and predicts in this process; with TF_CONFIG it does the work of its task.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cohort/cohort.h"
#include "examples/task.h"

namespace {

using namespace cohort;
namespace fc = cohort::feature_column;

struct Flags {
  std::string model_dir;
  int64_t max_steps = 2000;
  int64_t batch_size = 64;
};

const std::vector<std::string> kJobs = {"cook", "nurse", "pilot", "teacher"};
const std::vector<std::string> kCountries = {"Chad", "Fiji", "Iran", "Oman", "Peru"};

// Whoever works long earns more, in the middle of life most of all, and some jobs pay well in some countries only.
bool EarnsMuch(float age, float hours, size_t job, size_t country, std::mt19937& random) {
  const float middle = 1 - std::abs(age - 45) / 25;
  const float pay = (job * 7 + country * 3) % 5 < 2 ? 1.5f : -1.0f;
  const float noise = std::normal_distribution<float>(0, 0.3f)(random);
  return middle + (hours - 40) / 20 + pay + noise > 0;
}

// Other seeds give other people.
estimator::Input People(int64_t count, uint32_t seed, int64_t batch_size, bool training) {
  std::mt19937 random(seed);
  std::vector<float> ages, hours;
  std::vector<std::string> jobs, countries;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    ages.push_back(static_cast<float>(random() % 50 + 20));
    hours.push_back(static_cast<float>(random() % 50 + 10));
    const size_t job = random() % kJobs.size(), country = random() % kCountries.size();
    jobs.push_back(kJobs[job]);
    countries.push_back(kCountries[country]);
    labels.push_back(EarnsMuch(ages.back(), hours.back(), job, country, random) ? 1 : 0);
  }
  data::Dataset people =
      data::Dataset::FromTensorSlices({Tensor::Vector(ages), Tensor::Vector(hours), Tensor::Vector(jobs),
                                       Tensor::Vector(countries), Tensor::Vector(labels)});
  if (training) people = people.Shuffle(count).Repeat();
  return {people.Batch(batch_size), {"age", "hours", "job", "country"}};
}

estimator::DNNLinearCombinedOptions Options() {
  const fc::ColumnPtr age = fc::NumericColumn("age", {.normalizer_fn = [](Output x) { return (x - 45.0f) / 15.0f; }});
  const fc::ColumnPtr hours =
      fc::NumericColumn("hours", {.normalizer_fn = [](Output x) { return (x - 35.0f) / 15.0f; }});
  const fc::ColumnPtr age_group = fc::BucketizedColumn(fc::NumericColumn("age"), {25, 35, 45, 55, 65});
  const fc::ColumnPtr job = fc::CategoricalColumnWithVocabularyList("job", kJobs);
  const fc::ColumnPtr country = fc::CategoricalColumnWithHashBucket("country", 50);
  return {.linear_feature_columns = {job, country, age_group, fc::CrossedColumn({"job", "country"}, 1000)},
          .linear_optimizer = [](Graph&) { return std::make_shared<train::FtrlOptimizer>(0.1f); },
          .dnn_feature_columns = {age, hours, fc::EmbeddingColumn(job, 4), fc::EmbeddingColumn(country, 4)},
          .dnn_optimizer = [](Graph&) { return std::make_shared<train::AdagradOptimizer>(0.1f); },
          .dnn_hidden_units = {32, 16}};
}

int Run(const Flags& flags) {
  estimator::RunConfig config;
  config.model_dir = flags.model_dir;
  config.save_checkpoints_steps = 1000;
  // The losses are means, so that the learning rates fit every batch size.
  estimator::DNNLinearCombinedClassifier model(Options(), config,
                                               {.loss_reduction = losses::Reduction::kSumOverBatchSize});
  const auto unseen = [&] { return People(1000, 2, flags.batch_size, false); };
  const auto result = estimator::TrainAndEvaluate(
      model, {.input_fn = [&] { return People(10'000, 1, flags.batch_size, true); }, .max_steps = flags.max_steps},
      {.input_fn = unseen, .start_delay = std::chrono::seconds(0)});
  if (!result) return 0;  // a task that does not evaluate
  const estimator::EvalMetrics& metrics = result->first;
  std::printf("step %.0f: accuracy %.3f (%.3f without a model), auc %.3f\n", metrics.at("global_step"),
              metrics.at("accuracy"), metrics.at("accuracy_baseline"), metrics.at("auc"));
  const estimator::Prediction first = model.Predict(unseen)[0];
  std::printf("the first person earns much with a probability of %.3f\n",
              first.at("probabilities").ToVector<float>()[1]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  examples::CommandLine line("Trains a wide and deep model on generated people.");
  line.Add("--model_dir", &flags.model_dir, "the folder of the checkpoints; without it, a new one for temporary files");
  line.Add("--max_steps", &flags.max_steps, "the number of training steps", examples::AtLeast(1));
  line.Add("--batch_size", &flags.batch_size, "people in a step", examples::AtLeast(1));
  line.SetFooter("TF_CONFIG describes the cluster and this task; without it, this process does all.");
  return examples::Main(argc, argv, line, [&] { return Run(flags); });
}
