// Batches: the input of Fit, Evaluate and Predict for one epoch after another, converted to the dtypes and shapes that
// the model takes. Internal to keras/.
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
#include "cohort/keras/training/remote_step.h"

namespace cohort::keras {

// The options for cutting, shuffling and dividing the data.
struct BatchOptions {
  const char* caller = "fit";  // the function that error messages name
  int64_t batch_size = 32;     // if the data are tensors
  bool shuffle = false;        // if the data are tensors: shuffle all examples in each epoch
  int64_t seed = 0;
  int64_t first_pass = 0;       // number of the first epoch's pass over the data; the order of a shuffle depends on it
  int64_t steps_per_epoch = 0;  // 0: until the data end
  // True: each epoch begins at the start of the data, also with steps_per_epoch. So evaluations take the same examples
  // each time.
  bool starts_over = false;
  std::map<int64_t, double> class_weight;          // an example's weight is multiplied by that of its class
  const distribute::Strategy* strategy = nullptr;  // its processes divide the data; null: this process has all data
  data::AutoShardPolicy auto_shard = data::AutoShardPolicy::kAuto;
};

// The inputs and the number of targets that a model takes from the data. 0 targets: the data are for Predict.
struct BatchTargets {
  std::vector<LayerInput> inputs;
  size_t targets = 0;
};

// Returns shapes and dtypes of the data's components. Dimension 0 is the batch and is unknown. Throws
// InvalidArgumentError for data without examples, tensors of different lengths, and elements that are not batches.
data::ElementSpec SpecOfData(const ModelData& data, const char* caller);

// The batches of one data set. A thread of the iterator prepares batches before the steps need them. The function of
// Trainer that makes a Batches, such as Fit, owns it. Only the thread that runs this function uses it.
class Batches {
 public:
  using Parts = distribute::PerReplica<std::vector<Tensor>>;

  // Throws InvalidArgumentError if the data are empty; if the number, dtypes or shapes of their components do not fit
  // `wanted`; if batch_size is not positive; or if a dataset repeats endlessly and steps_per_epoch is 0.
  Batches(const ModelData& data, const BatchTargets& wanted, const BatchOptions& options);

  // Returns the dataset of global batches that several processes divide among them; every process must describe the
  // same data. Returns null if there is one process, or if each process reads data of its own.
  const data::Dataset* common_data() const { return common_ ? &*common_ : nullptr; }
  // Gives the chief's seeds to shuffles without a seed. Call it before the first batch. All processes make the call
  // together.
  void ShareSeeds();
  // Returns the specs of the targets after conversion: integers are int64, floats are float32.
  const std::vector<data::TensorSpec>& y_specs() const { return y_specs_; }
  // Returns the number of batches of an epoch. Returns 0 as long as the number is not known: it may become known only
  // when the first epoch ends.
  int64_t steps() const;
  // Returns the time that Next and Peek have waited for data so far.
  std::chrono::nanoseconds waited() const { return waited_; }
  // Returns the batch that the next call of Next will give. If there are several processes, returns only the part of
  // this process's first replica in it. Throws InvalidArgumentError if the data have no batch.
  std::vector<Tensor> Peek();

  // With a ParameterServerStrategy: returns what the workers read themselves. Each of them has all batches, again and
  // again, in an order of its own if the data are shuffled (but a dataset's shuffle with a seed has the same order
  // everywhere). If starts_over, all have one order, and the number of batches must be known or infinite. Returns null,
  // and logs the reason once, if the data need this process; then Next gives the batches.
  const WorkerBatches* of_workers();
  // Returns how many steps the workers make in this epoch with of_workers(). If starts_over, and the data are known to
  // have fewer batches than steps_per_epoch, it is that number, and a line of the log says so.
  int64_t steps_of_workers() const;

  // Begins an epoch. If steps_per_epoch is given, starts_over is false and data are left, the epoch begins where the
  // last epoch stopped. Otherwise it begins at the start of the data.
  void StartEpoch();
  // Replaces *parts by the parts of this process's replicas in the next global batch. Without a strategy there is one
  // part, the whole batch. A part has inputs, targets and weights [batch] (ones if none are given). Returns false at
  // the end of the epoch. Logs a warning if the data ended before steps_per_epoch. Throws InvalidArgumentError if the
  // data have no batch at all.
  bool Next(Parts* parts);

  // Sets *parts to what the next call of Next will give, in the same memory, and returns true, if the batch is ready.
  // Otherwise, or if there are several processes, returns false. Does not wait.
  bool PeekReady(Parts* parts);

  // Returns the position in the data, as bytes. Call it between two batches of an epoch or between epochs. Throws
  // FailedPreconditionError between Peek and Next, except before the first batch.
  std::string Save();
  // Goes to a position that Save has returned, in this process or in an earlier one. Throws InvalidArgumentError if the
  // data are not described in the same way as when Save was called, and DataLossError for damaged bytes.
  void Restore(std::string_view position);

 private:
  // `repeats`: the dataset begins again at its end.
  data::Dataset Prepared(const ModelData& data, const BatchOptions& options, const data::ElementSpec& spec,
                         bool repeats = false);
  // The dataset depends on the number of passes that were begun before, so that a further call of Fit, or a restored
  // one, continues with other orders.
  data::Dataset DatasetOfWorker(int worker);
  // Returns this process's part of a dataset of global batches. Sets per_step_, the number of elements of this part
  // that a step takes.
  data::Dataset PartHere(const data::Dataset& dataset, data::AutoShardPolicy policy);
  // Gets the parts of the next step, which may have been peeked. Returns false at the end of this process's data.
  bool NextParts(Parts* parts);
  // Sets *parts to the next parts of the iterator, and makes the iterator if there is none. If the data end before the
  // last part, the missing parts have no rows. Returns false if there is no part at all.
  bool TakeParts(Parts* parts);
  // Returns parts without rows, by the dataset's spec.
  Parts PartsWithoutRows() const;
  // Returns true if the epoch continues. `has_parts` says if this process has data for the next step. If processes have
  // data of their own, the epoch continues as long as one of them has data. A process without data then gets *parts
  // without rows. If processes divide common batches, throws if only some of them have data.
  bool GoesOn(bool has_parts, Parts* parts);
  void AddWeights(Parts* parts);
  // Adds the weights, and gives each replica its rows.
  void Complete(Parts* parts);
  [[noreturn]] void FailOfNoData() const;

  const BatchTargets wanted_;
  const BatchOptions options_;
  const ModelData data_;
  data::ElementSpec spec_;  // of data_
  std::optional<WorkerBatches> of_workers_;
  bool asked_workers_ = false;  // of_workers was called
  std::vector<data::TensorSpec> y_specs_;
  bool weighted_ = false;
  bool agrees_ = false;  // true: the processes must ask each other in each step if the epoch continues (GoesOn)
  int per_step_ = 1;     // elements of a step: 1, or with several processes the number of replicas here
  std::optional<data::Dataset> common_;
  std::optional<data::Dataset> dataset_;
  std::unique_ptr<data::Iterator> iterator_;
  std::optional<Parts> peeked_;
  int64_t next_pass_ = 0;   // number of the next pass over the data; the order of a shuffle depends on it
  bool has_data_ = false;   // true after the first batch
  int64_t step_ = 0;        // in this epoch
  int64_t from_pass_ = 0;   // batches taken from the current iterator
  int64_t pass_steps_ = 0;  // batches of a whole pass; 0: not known yet
  std::chrono::nanoseconds waited_{0};
  Tensor ones_;
};

}  // namespace cohort::keras
