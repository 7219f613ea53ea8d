// One task of a TrainAndEvaluate that estimator_chaos_test kills and freezes. TF_CONFIG names the task.
//   estimator_task --model_dir=DIR [--max_steps=N] [--save_steps=N] [--pause_ms=N] [--export_ms=N] [--patience_s=N]
//                  [--eval=endless] [--exporter=throws|latest] [--throttle_s=N] [--eval_pause_ms=N]
// The model counts the updates of each task: one step of task i adds 1 to counts[i]; the chief is 0 and worker i is
// i + 1. A task prints "acked N" after its Nth step, the chief "saved S" after a checkpoint. An export prints
// "exporting NAME" when its temporary folder is there, and waits for export_ms. With "latest" there is an export after
// each evaluation, too. With eval_pause_ms, an evaluation prints "evaluated" after each of its two batches, and then
// waits. TF_CONFIG may be unset: then the task trains and evaluates alone. At the end the program prints "result STEP
// EXPORTS", or "ended".
#include <filesystem>
#include <iostream>
#include <thread>

#include "cohort/cohort.h"
#include "cohort/core/str_cat.h"
#include "cohort/registration.h"
#include "tests/chaos/task_flags.h"

namespace cohort::testing {
namespace {

constexpr int kTasks = 4;

void Say(const std::string& line) { std::cout << "\n" << line << std::endl; }

class AckHook final : public train::SessionRunHook {
 public:
  explicit AckHook(std::chrono::milliseconds pause) : pause_(pause) {}
  void AfterRun(train::SessionRunContext&, const train::SessionRunValues&) override {
    Say("acked " + std::to_string(++steps_));
    std::this_thread::sleep_for(pause_);
  }

 private:
  const std::chrono::milliseconds pause_;
  int64_t steps_ = 0;
};

class PauseHook final : public train::SessionRunHook {
 public:
  explicit PauseHook(std::chrono::milliseconds pause) : pause_(pause) {}
  void AfterRun(train::SessionRunContext&, const train::SessionRunValues&) override {
    Say("evaluated");
    std::this_thread::sleep_for(pause_);
  }

 private:
  const std::chrono::milliseconds pause_;
};

class SavedListener final : public train::CheckpointSaverListener {
 public:
  bool AfterSave(Session&, int64_t step) override {
    Say("saved " + std::to_string(step));
    return false;
  }
};

class FailingExporter final : public estimator::Exporter {
 public:
  std::string name() const override { return "failing"; }
  std::optional<std::string> Export(estimator::Estimator&, const std::string&, const std::string&,
                                    const estimator::EvalMetrics&, bool) override {
    throw ResourceExhaustedError("[failing exporter] no room for the export");
  }
};

int IndexOf(const estimator::TaskRole& role) { return role.is_chief ? 0 : role.task_id + 1; }

estimator::EstimatorSpec Model(const estimator::ModelFnArgs& args, int task) {
  Graph& graph = args.graph;
  const ops::Variable counts(graph, Shape{kTasks}, initializers::Zeros(), {.name = "counts", .dtype = DType::kInt64});
  const ops::Variable w(graph, Shape{}, initializers::Zeros(), {.name = "w"});
  const Output x = args.features.front();
  const Output y = x * w;
  estimator::EstimatorSpec spec{.mode = args.mode, .predictions = {{"y", y}}};
  if (args.mode == estimator::ModeKeys::kPredict) return spec;
  spec.loss = ops::Mean(y);
  if (args.mode == estimator::ModeKeys::kEval) return spec;
  train::GradientDescentOptimizer optimizer(0.5);
  Node* minimize = optimizer.Minimize(spec.loss, *ops::GetGlobalStep(graph));
  std::vector<int64_t> one(kTasks, 0);
  one[static_cast<size_t>(task)] = 1;
  spec.train_op = ops::Group(graph, {minimize, counts.AssignAdd(ops::Const(graph, Tensor::Vector(one)))});
  return spec;
}

data::Dataset Labelled(int64_t rows) {
  const Tensor ones = Tensor::Vector(std::vector<float>(static_cast<size_t>(rows), 1.0f));
  return data::Dataset::FromTensorSlices({ones, ones}).Batch(1);
}

estimator::EvalSpec EvalSpecOf(const Flags& flags, const std::string& model_dir) {
  estimator::EvalSpec spec;
  const bool endless = flags.Text("eval") == "endless";
  spec.input_fn = [endless] { return endless ? Labelled(2).Repeat() : Labelled(2); };
  spec.steps = std::nullopt;
  spec.start_delay = std::chrono::seconds(0);
  spec.throttle = flags.Seconds("throttle_s", 0);
  const auto pause = flags.Ms("eval_pause_ms", 0);
  if (pause.count() > 0) spec.hooks.push_back(std::make_shared<PauseHook>(pause));
  const auto wait = flags.Ms("export_ms", 0);
  const auto serving = [wait, model_dir](const std::string& name) {
    return [wait, dir = StrCat(model_dir, "/export/", name), name](Graph& graph) {
      for (const auto& entry : std::filesystem::directory_iterator(dir)) {
        if (entry.path().filename().string().starts_with("temp-")) Say("exporting " + name);
      }
      std::this_thread::sleep_for(wait);
      return std::vector<Output>{ops::Placeholder(graph, DType::kFloat32, Shape{-1}, "x")};
    };
  };
  spec.exporters.push_back(std::make_shared<estimator::FinalExporter>("final", serving("final")));
  if (flags.Text("exporter") == "latest") {
    spec.exporters.push_back(std::make_shared<estimator::LatestExporter>("latest", serving("latest"), 2));
  }
  if (flags.Text("exporter") == "throws") spec.exporters.push_back(std::make_shared<FailingExporter>());
  return spec;
}

int Run(const Flags& flags) {
  estimator::RunConfig config{.model_dir = flags.Text("model_dir")};
  config.save_checkpoints_steps = flags.Integer("save_steps", 20);
  config.keep_checkpoint_max = 0;
  config.experimental_max_worker_delay = std::chrono::seconds(0);
  config.session_creation_timeout = flags.Seconds("patience_s", 100);
  config.session_config.connect_timeout = flags.Seconds("patience_s", 100);
  int task = 0;
  estimator::Estimator model([&task](const estimator::ModelFnArgs& args) { return Model(args, task); }, config);
  task = IndexOf(model.role());
  const auto result = estimator::TrainAndEvaluate(model,
                                                  {.input_fn = [] { return Labelled(4).Repeat(); },
                                                   .max_steps = flags.Integer("max_steps", 1'000'000),
                                                   .hooks = {std::make_shared<AckHook>(flags.Ms("pause_ms", 5))},
                                                   .saving_listeners = {std::make_shared<SavedListener>()}},
                                                  EvalSpecOf(flags, config.model_dir));
  if (result) {
    Say(StrCat("result ", static_cast<int64_t>(result->first.at("global_step")), " ", result->second.size()));
  } else {
    Say("ended");
  }
  return 0;
}

}  // namespace
}  // namespace cohort::testing

int main(int argc, char** argv) {
  try {
    cohort::RegisterAll();
    return cohort::testing::Run(cohort::testing::Flags(argc, argv));
  } catch (const std::exception&) {
    std::cerr << "estimator_task: " << cohort::Status::FromCurrentException().ToString() << std::endl;
    return 1;
  }
}
