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
  // Throws InvalidArgumentError, with both shapes, for data that does not fit the inputs.
  Batches(const ModelData& data, const BatchTargets& wanted, const BatchOptions& options);

  // Whether batches are the global ones, which all processes read alike; else they are this process's parts.
  bool whole() const { return whole_; }
  // What all processes read alike; null where each reads files of its own.
  const data::Dataset* whole_data() const { return whole_ ? &*dataset_ : nullptr; }
  // Of the targets, converted: integers are int64, floats float32.
  const std::vector<data::TensorSpec>& y_specs() const { return y_specs_; }
  // Batches an epoch; 0 where that is not known before the first one has ended.
  int64_t steps() const;
  // How long its callers have waited for data so far, as measured.
  std::chrono::nanoseconds waited() const { return waited_; }
  // The first batch, as Next will give it.
  std::vector<Tensor> Peek();

  // Begins an epoch: from the start of the data, or where the last epoch stopped if steps_per_epoch is given and it
  // does not start over.
  void StartEpoch();
  // The next batch: inputs, targets, weights [batch] (ones where none are given). False at the end of the epoch; with a
  // warning where the data ended before steps_per_epoch.
  bool Next(std::vector<Tensor>* batch);

  // Where the data stands between two batches of an epoch, or between epochs, as bytes. Not to be called between Peek
  // and Next.
  std::string Save();
  // Goes there; the data has to be described as it was when it was saved, also in another process. Throws
  // InvalidArgumentError where it is not, DataLossError for damaged bytes.
  void Restore(std::string_view position);

 private:
  data::Dataset Prepared(const ModelData& data, const BatchOptions& options, const data::ElementSpec& spec);
  // This process's part of a dataset of global batches.
  data::Dataset Shared(const data::Dataset& dataset);
  bool NextElement(std::vector<Tensor>* element);
  // From the iterator, which is made where there is none.
  bool TakeElement(std::vector<Tensor>* element);
  // Agrees with the other processes on whether the epoch goes on.
  bool GoesOn(bool has_element, std::vector<Tensor>* element);
  void AddWeights(std::vector<Tensor>* batch);

  const BatchTargets wanted_;
  const BatchOptions options_;
  std::vector<data::TensorSpec> y_specs_;
  bool weighted_ = false;
  bool whole_ = true;
  bool agrees_ = false;  // processes cannot know by themselves when the data of all ends
  std::optional<data::Dataset> dataset_;
  std::unique_ptr<data::Iterator> iterator_;
  std::optional<std::vector<Tensor>> peeked_;
  int64_t next_pass_ = 0;   // what a shuffle takes its order from
  bool has_data_ = false;   // something has been taken
  int64_t step_ = 0;        // in this epoch
  int64_t from_pass_ = 0;   // batches taken from the iterator
  int64_t pass_steps_ = 0;  // batches of a whole pass, once known
  std::chrono::nanoseconds waited_{0};
  Tensor ones_;
};

}  // namespace cohort::keras
