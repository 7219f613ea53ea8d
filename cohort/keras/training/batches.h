// Batches: the input of Fit, Evaluate and Predict, epoch after epoch, in the dtypes and shapes that a model takes.
// Internal to keras/.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/distribute/strategy.h"
#include "cohort/keras/layers/layer.h"
#include "cohort/keras/training/model_data.h"

namespace cohort::keras {

struct BatchOptions {
  const char* caller = "fit";  // in messages
  int64_t batch_size = 32;     // of tensors
  bool shuffle = false;        // tensors: all of them, in another order each epoch
  int64_t seed = 0;
  int64_t first_pass = 0;                          // what the first epoch's order follows from
  int64_t steps_per_epoch = 0;                     // 0: all there are
  bool starts_over = false;                        // each epoch, also with steps_per_epoch
  std::map<int64_t, double> class_weight;          // multiplied into the weights of the examples
  const distribute::Strategy* strategy = nullptr;  // whose processes share the data; null: this process has it all
  data::AutoShardPolicy auto_shard = data::AutoShardPolicy::kAuto;
};

// What a model wants: inputs, and how many targets (0: it predicts).
struct BatchTargets {
  std::vector<LayerInput> inputs;
  size_t targets = 0;
};

// Shapes and dtypes of the data's components, batch dimension first and unknown. Throws InvalidArgumentError for data
// without examples, tensors of different lengths, elements that are no batches.
data::ElementSpec SpecOfData(const ModelData& data, const char* caller);

// One data set in use. A thread prepares batches ahead of the step.
class Batches {
 public:
  using Parts = distribute::PerReplica<std::vector<Tensor>>;

  // Throws InvalidArgumentError, with both shapes, for data that does not fit the inputs.
  Batches(const ModelData& data, const BatchTargets& wanted, const BatchOptions& options);

  // The global batches that several processes divide among them: they have to describe the same data. Null if there is
  // one process, or if each process reads data of its own.
  const data::Dataset* common_data() const { return common_ ? &*common_ : nullptr; }
  // Gives shuffles without a seed the chief's seeds, before the first batch. All processes make the call together.
  void ShareSeeds();
  // Of the targets, converted: integers are int64, floats float32.
  const std::vector<data::TensorSpec>& y_specs() const { return y_specs_; }
  // Batches an epoch; 0 where that is not known before the first one has ended.
  int64_t steps() const;
  // How long its callers have waited for data so far, as measured.
  std::chrono::nanoseconds waited() const { return waited_; }
  // Returns the first batch; with several processes the part of this one's first replica in it.
  std::vector<Tensor> Peek();

  // Begins an epoch: from the start of the data, or where the last epoch stopped if steps_per_epoch is given and it
  // does not start over.
  void StartEpoch();
  // Replaces *parts by the parts of this process's replicas in the next global batch (or by the whole batch alone, if
  // there is no strategy): inputs, targets, weights [batch] (ones if none are given). Returns false at the end of the
  // epoch; with a warning if the data ended before steps_per_epoch.
  bool Next(Parts* parts);

  // Where the data stands between two batches of an epoch, or between epochs, as bytes. Not to be called between Peek
  // and Next.
  std::string Save();
  // Goes there; the data has to be described as it was when it was saved, also in another process. Throws
  // InvalidArgumentError where it is not, DataLossError for damaged bytes.
  void Restore(std::string_view position);

 private:
  data::Dataset Prepared(const ModelData& data, const BatchOptions& options, const data::ElementSpec& spec);
  // Returns this process's part of a dataset of global batches, in elements of which each step takes per_step_.
  data::Dataset PartHere(const data::Dataset& dataset, data::AutoShardPolicy policy);
  // The parts of the next step, peeked or taken. False at the end of this process's data.
  bool NextParts(Parts* parts);
  // From the iterator, which is made if there is none. Parts may lack rows, but not all of them.
  bool TakeParts(Parts* parts);
  // Parts without rows, by the dataset's spec.
  Parts PartsWithoutRows() const;
  // Agrees with the other processes on whether the epoch goes on.
  bool GoesOn(bool has_parts, Parts* parts);
  void AddWeights(Parts* parts);
  [[noreturn]] void FailOfNoData() const;

  const BatchTargets wanted_;
  const BatchOptions options_;
  std::vector<data::TensorSpec> y_specs_;
  bool weighted_ = false;
  bool agrees_ = false;  // processes cannot know by themselves when the data of all ends
  int per_step_ = 1;     // elements of a step: one global batch, or, with several processes, one part a replica here
  std::optional<data::Dataset> common_;
  std::optional<data::Dataset> dataset_;
  std::unique_ptr<data::Iterator> iterator_;
  std::optional<Parts> peeked_;
  int64_t next_pass_ = 0;   // what a shuffle takes its order from
  bool has_data_ = false;   // something has been taken
  int64_t step_ = 0;        // in this epoch
  int64_t from_pass_ = 0;   // batches taken from the iterator
  int64_t pass_steps_ = 0;  // batches of a whole pass, once known
  std::chrono::nanoseconds waited_{0};
  Tensor ones_;
};

}  // namespace cohort::keras
