// Trains a model that recommends films, from clicks of users: strings and ids go in, and the model has its vocabulary
// and its hashes itself. Embeddings lie on parameter servers if there are any.
//
//   recommender --data_dir=/tmp/clicks
//   cohort launch --chief --workers=2 --ps=2 -- recommender --data_dir=/tmp/clicks
//
// The program writes clicks into the folder if there are none, learns the vocabulary of cities, trains, and evaluates
// on clicks that the training has not seen. Then it saves the model, loads it for serving, and ranks all films for one
// user.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "cohort/cohort.h"
#include "examples/recommender/clicks.h"
#include "examples/task.h"

namespace {

using namespace cohort;

struct Flags {
  std::string data_dir = "cohort-clicks";
  int epochs = 4;
  int64_t batch_size = 128;
  int64_t dimensions = 8;  // of an embedding
  int64_t bins = 20'000;   // rows of the tables of users and films
};

// What two features have to do with each other is the product of their embeddings; FeatureCross multiplies further.
keras::Model MakeModel(const Flags& flags, const std::vector<std::string>& cities, const keras::Moments& ages,
                       const distribute::StrategyPtr& strategy) {
  const keras::LayerTensor user = keras::Input(Shape{1}, {.dtype = DType::kInt64, .name = "user"});
  const keras::LayerTensor city = keras::Input(Shape{1}, {.dtype = DType::kString, .name = "city"});
  const keras::LayerTensor item = keras::Input(Shape{1}, {.dtype = DType::kString, .name = "item"});
  const keras::LayerTensor watched =
      keras::Input(Shape{examples::kWatched}, {.dtype = DType::kString, .name = "watched"});
  const keras::LayerTensor age = keras::Input(Shape{1}, {.name = "age"});

  const keras::LayerRef lookup = keras::StringLookup({.vocabulary = cities});
  const keras::LayerRef hash = keras::Hashing(flags.bins, {.mask_value = ""});  // "" is no film, and has hash 0
  const keras::Initializer rows = keras::initializers::RandomNormal(0, 0.3);    // so that products are not too small
  const keras::LayerRef films = keras::EmbedReduce(flags.bins, flags.dimensions,
                                                   {.padding_idx = 0, .embeddings_initializer = rows, .name = "films"});
  const auto one = [&](int64_t n, const keras::LayerTensor& id) {
    return keras::Flatten()(keras::Embedding(n, flags.dimensions, {.embeddings_initializer = rows})(id));
  };
  const std::vector<keras::LayerTensor> embeddings = {one(flags.bins, keras::Hashing(flags.bins)(user)),
                                                      one(keras::VocabularySize(lookup), lookup(city)),
                                                      films(hash(item)), films(hash(watched))};
  const keras::LayerTensor scaled = keras::Normalization({.mean = ages.mean, .variance = ages.variance})(age);
  const keras::LayerTensor products = keras::DotInteraction()(embeddings);
  const keras::LayerTensor all = keras::Concatenate()({products, embeddings[2], embeddings[3], scaled});
  const keras::LayerTensor hidden = keras::Dense(32, {.activation = "relu"})(keras::FeatureCross()(all));
  return keras::Model({user, city, item, watched, age}, {keras::Dense(1, {.activation = "sigmoid"})(hidden)},
                      {.seed = 1, .strategy = strategy});
}

// Loads the model as a server would do it, and prints the films that user 4 is most likely to click on. In the clicks,
// this user likes westerns.
void Recommend(const std::string& path) {
  const keras::Predictor predictor = keras::Predictor::Load(path);
  const std::vector<std::string> films = examples::Films();
  const auto n = static_cast<int64_t>(films.size());
  const auto same = [n](const auto& value, int64_t width) {
    using T = std::decay_t<decltype(value)>;
    return Tensor::FromValues(std::vector<T>(static_cast<size_t>(n * width), value), Shape{n, width});
  };
  Tensor watched = same(std::string(), examples::kWatched);
  for (int64_t i = 0; i < n; ++i) watched.data<std::string>()[i * examples::kWatched] = "western 7";
  const Tensor chances = predictor.PredictAll({same(int64_t{4}, 1), same(std::string("Beijing"), 1),
                                               Tensor::FromValues(films, Shape{n, 1}), watched, same(67.0f, 1)})[0];
  std::vector<int64_t> order(films.size());
  std::iota(order.begin(), order.end(), 0);
  const float* chance = chances.data<float>();
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return chance[a] > chance[b]; });
  std::printf("user 4, who likes westerns, may like:");
  for (size_t i = 0; i < 3; ++i) std::printf("%s %s", i > 0 ? "," : "", films[static_cast<size_t>(order[i])].c_str());
  std::printf("\n");
}

int Train(const Flags& flags, const distribute::StrategyPtr& strategy) {
  const examples::ClickFiles files = examples::MakeClicks(flags.data_dir, /*writes=*/true);
  const data::Dataset clicks = examples::ReadClicks(files.train);
  const std::vector<std::string> cities = keras::LearnStrings(clicks, {.component = 1});
  const keras::Moments ages = keras::LearnMoments(clicks, /*component=*/4);

  keras::Model model = MakeModel(flags, cities, ages, strategy);
  model.Compile({.optimizer = keras::Adam({.learning_rate = 0.02}), .loss = "binary_crossentropy", .metrics = {"auc"}});
  // Each worker of a cluster has an order of its own. A repeated dataset has no end, so the number of steps is given.
  const data::Dataset batches = clicks.Shuffle(examples::kClicksOfAFile).Repeat().Batch(flags.batch_size).Prefetch(4);
  const int64_t steps = examples::kClicksOfAFile / flags.batch_size;
  const keras::History history =
      model.Fit(batches, {.epochs = flags.epochs, .steps_per_epoch = steps * static_cast<int64_t>(files.train.size())});
  if (history.interrupted()) return 0;  // told to stop: an earlier model stays
  const data::Dataset test = examples::ReadClicks({files.test}).Repeat().Batch(flags.batch_size);
  const keras::Logs logs = model.Evaluate(test, {.verbose = 0, .steps = steps});
  std::printf("%zu cities; AUC on other clicks: %.4f\n", cities.size(), keras::FindLog(logs, "auc").value());

  const std::string path = flags.data_dir + "/recommender.keras";
  model.Save(path);
  Recommend(path);
  return 0;
}

int Run(const Flags& flags) {
  const TFConfigClusterResolver task;
  const std::string type = task.task_type().value_or("");
  if (type == "worker" || type == "ps") {
    Server(task.cluster_spec(), type, task.task_id().value_or(0)).Join();
    return 0;
  }
  if (type != "chief") return Train(flags, distribute::OneDevice("/cpu:0"));
  const auto strategy = distribute::ParameterServerStrategy(task);
  const int result = Train(flags, strategy);
  strategy->server()->AnnounceDone();  // so that workers and parameter servers end
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("Trains a model that recommends films, from clicks of users.");
  Flags flags;
  line.Add("--data_dir", &flags.data_dir, "Folder of the clicks, which all tasks can read, and of the trained model");
  line.Add("--epochs", &flags.epochs, "Passes over the clicks", examples::AtLeast(1));
  line.Add("--batch_size", &flags.batch_size, "Clicks in one step, at most those of a file", examples::AtLeast(1));
  line.Add("--dimensions", &flags.dimensions, "Dimensions of an embedding", examples::AtLeast(1));
  line.Add("--bins", &flags.bins, "Rows of the tables of users and of films", examples::AtLeast(2));
  return examples::Main(argc, argv, line, [&] { return Run(flags); });
}
