// Batches. The constructor makes one dataset of the data: it batches and shuffles tensors, checks and converts dtypes
// and shapes in a Map (Prepared), divides batches among processes (PartHere), and prefetches. Next takes the parts of
// one step from the iterator. With several processes it then agrees with the others on whether the epoch continues
// (GoesOn).
#include "cohort/keras/training/batches.h"

#include <algorithm>
#include <atomic>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/wire.h"
#include "cohort/data/drawn_seeds.h"
#include "cohort/data/graph_iterator.h"
#include "cohort/data/serialize.h"
#include "cohort/distribute/input.h"
#include "cohort/distribute/worker_meeting.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"

namespace cohort::keras {
namespace {

// The number of batches that are prepared while a step runs.
constexpr int64_t kAhead = 2;
constexpr uint64_t kPositionVersion = 2;
// The differences between the seeds of the shuffles of two workers, and of two passes that a worker begins.
constexpr uint64_t kBetweenWorkers = 0x9e3779b97f4a7c15;
constexpr uint64_t kBetweenPasses = 0xd1b54a32d192ed03;

// Returns a WorkerBatches::id that no other data have.
int64_t NewId() {
  static std::atomic<int64_t> made{0};
  return ++made;
}

Shape WithOpenBatch(Shape shape) {
  shape.set_dim(0, Shape::kUnknownDim);
  return shape;
}

std::vector<Tensor> AllTensors(const ModelData& data) {
  std::vector<Tensor> all = data.x();
  all.insert(all.end(), data.y().begin(), data.y().end());
  if (data.sample_weight().defined()) all.push_back(data.sample_weight());
  return all;
}

bool IsNumber(DType dtype) { return IsFloating(dtype) || IsInteger(dtype) || dtype == DType::kBool; }

// As in Keras, a shape [batch] is accepted for [batch, 1], and the reverse.
bool Reshapable(const Shape& from, const Shape& to) {
  const Shape& longer = from.rank() > to.rank() ? from : to;
  const Shape& shorter = from.rank() > to.rank() ? to : from;
  return longer.rank() == shorter.rank() + 1 && longer.dim(longer.rank() - 1) == 1 &&
         longer.Sub(0, shorter.rank()).IsCompatibleWith(shorter);
}

void CheckInput(const data::TensorSpec& given, const LayerInput& wanted, size_t index, const char* caller) {
  const bool fits =
      !given.shape.has_rank() || given.shape.IsCompatibleWith(wanted.shape) || Reshapable(given.shape, wanted.shape);
  if (fits && (wanted.dtype == DType::kString ? given.dtype == DType::kString : IsNumber(given.dtype))) return;
  const std::string kind = wanted.dtype == DType::kString ? "strings" : StrCat("numbers, converted to ", wanted.dtype);
  throw InvalidArgumentError(
      StrCat("[keras/", caller, "] expected data of shape ", wanted.shape, " for input ", index, " of the model (",
             kind, "); got ", given.dtype, given.shape,
             given.shape.rank() == wanted.shape.rank() - 1 ? "; is the data not in batches?" : ""));
}

Output Converted(Output value, DType dtype, const Shape& shape) {
  if (value.dtype() != dtype) value = ops::Cast(value, dtype);
  if (shape.has_rank() && value.shape().has_rank() && shape.rank() != value.shape().rank()) {
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
    value = ops::Reshape(value, dims);
  }
  return value;
}

}  // namespace

data::ElementSpec SpecOfData(const ModelData& data, const char* caller) {
  if (data.empty()) throw InvalidArgumentError(StrCat("[keras/", caller, "] expected data; got none"));
  data::ElementSpec spec;
  if (data.dataset()) {
    spec = data.dataset()->element_spec();
    for (data::TensorSpec& component : spec) {
      if (component.shape.rank() == 0) {
        throw InvalidArgumentError(StrCat("[keras/", caller, "] expected a dataset of batches; its elements are ",
                                          ToString(data.dataset()->element_spec()), "; call Batch() on it"));
      }
      if (component.shape.has_rank()) component.shape = WithOpenBatch(component.shape);
    }
    return spec;
  }
  const std::vector<Tensor> tensors = AllTensors(data);
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.shape().rank() == 0) {
      throw InvalidArgumentError(StrCat("[keras/", caller, "] expected tensors [examples, ...]; got ",
                                        tensor.defined() ? tensor.shape().ToString() : "one without a value"));
    }
    if (tensor.shape().dim(0) != tensors[0].shape().dim(0)) {
      throw InvalidArgumentError(StrCat("[keras/", caller, "] expected as many targets and weights as inputs; got ",
                                        tensors[0].shape().dim(0), " and ", tensor.shape().dim(0), " examples (shapes ",
                                        tensors[0].shape(), " and ", tensor.shape(), ")"));
    }
    spec.push_back({tensor.dtype(), WithOpenBatch(tensor.shape())});
  }
  if (tensors[0].shape().dim(0) == 0) {
    throw InvalidArgumentError(
        StrCat("[keras/", caller, "] expected at least one example; got data of shape ", tensors[0].shape()));
  }
  return spec;
}

Batches::Batches(const ModelData& data, const BatchTargets& wanted, const BatchOptions& options)
    : wanted_(wanted), options_(options), data_(data), next_pass_(options.first_pass) {
  if (options.batch_size <= 0) {
    throw InvalidArgumentError(
        StrCat("[keras/", options.caller, "] expected batch_size > 0; got ", options.batch_size));
  }
  spec_ = SpecOfData(data, options.caller);
  const data::ElementSpec& spec = spec_;
  const size_t inputs = wanted.inputs.size();
  const size_t least = inputs + wanted.targets;
  if (spec.size() < least || (wanted.targets > 0 && spec.size() > least + 1)) {
    throw InvalidArgumentError(StrCat("[keras/", options.caller, "] expected data of ", inputs, " inputs, ",
                                      wanted.targets, " targets and possibly weights; got ", spec.size(),
                                      " components: ", ToString(spec)));
  }
  for (size_t i = 0; i < inputs; ++i) CheckInput(spec[i], wanted.inputs[i], i, options.caller);
  for (size_t i = inputs; i < least; ++i) {
    if (!IsNumber(spec[i].dtype)) {
      throw InvalidArgumentError(
          StrCat("[keras/", options.caller, "] expected numbers as targets; got ", spec[i].dtype, spec[i].shape));
    }
    y_specs_.push_back({IsFloating(spec[i].dtype) ? DType::kFloat32 : DType::kInt64, spec[i].shape});
  }
  weighted_ = wanted.targets > 0 && (spec.size() > least || !options.class_weight.empty());
  dataset_ = Prepared(data, options, spec);
  const int64_t cardinality = dataset_->Cardinality();
  const bool several = options.strategy != nullptr && options.strategy->num_workers() > 1;
  agrees_ = several && (!common_ || cardinality == data::kUnknownCardinality);
  if (cardinality == 0) FailOfNoData();
  if (cardinality > 0) pass_steps_ = (cardinality + per_step_ - 1) / per_step_;
  if (cardinality == data::kInfiniteCardinality && options.steps_per_epoch == 0) {
    throw InvalidArgumentError(StrCat("[keras/", options.caller,
                                      "] expected steps_per_epoch (or validation_steps) for "
                                      "a dataset that repeats endlessly: ",
                                      dataset_->ToString()));
  }
}

data::Dataset Batches::Prepared(const ModelData& data, const BatchOptions& options, const data::ElementSpec& spec,
                                bool repeats) {
  std::optional<data::Dataset> dataset = data.dataset();
  if (dataset) {
    dataset = PartHere(*dataset, options.auto_shard);
  } else {
    const std::vector<Tensor> tensors = AllTensors(data);
    dataset = data::Dataset::FromTensorSlices(tensors);
    if (options.shuffle) dataset = dataset->Shuffle(tensors[0].shape().dim(0), options.seed);
    dataset = PartHere(dataset->Batch(options.batch_size), data::AutoShardPolicy::kData);
  }
  if (repeats && dataset->Cardinality() != data::kInfiniteCardinality) dataset = dataset->Repeat();
  const size_t inputs = wanted_.inputs.size();
  const size_t least = inputs + wanted_.targets;
  bool converts = spec.size() != least + (weighted_ ? 1 : 0) || !options.class_weight.empty();
  for (size_t i = 0; i < spec.size() && i < least; ++i) {
    const DType dtype = i < inputs ? wanted_.inputs[i].dtype : y_specs_[i - inputs].dtype;
    const bool same_rank = i >= inputs || spec[i].shape.rank() == wanted_.inputs[i].shape.rank();
    converts = converts || spec[i].dtype != dtype || !same_rank;
  }
  if (weighted_ && spec.size() > least) converts = converts || spec[least].dtype != DType::kFloat32;
  if (!converts) return dataset->Prefetch(kAhead * per_step_);
  const auto convert = [this, inputs, least, &options](Graph&, const std::vector<Output>& args) {
    std::vector<Output> results;
    for (size_t i = 0; i < inputs; ++i) {
      results.push_back(Converted(args[i], wanted_.inputs[i].dtype, wanted_.inputs[i].shape));
    }
    for (size_t i = inputs; i < least; ++i) {
      results.push_back(Converted(args[i], y_specs_[i - inputs].dtype, Shape::UnknownRank()));
    }
    if (!weighted_) return results;
    Output weights;
    if (args.size() > least) weights = Converted(args[least], DType::kFloat32, Shape::UnknownRank());
    if (!options.class_weight.empty()) {
      const Output classes = ClassWeights(options.class_weight, args[inputs]);
      weights = weights.valid() ? ops::Mul(weights, classes) : classes;
    }
    results.push_back(weights);
    return results;
  };
  return dataset->Map(convert).Prefetch(kAhead * per_step_);
}

data::Dataset Batches::DatasetOfWorker(int worker) {
  uint64_t shift = 0;
  if (!options_.starts_over) {
    shift = static_cast<uint64_t>(worker) * kBetweenWorkers +
            static_cast<uint64_t>(std::max<int64_t>(0, next_pass_ - 1)) * kBetweenPasses;
  }
  BatchOptions own = options_;
  own.seed = static_cast<int64_t>(static_cast<uint64_t>(own.seed) + shift);
  const data::Dataset dataset = Prepared(data_, own, spec_, /*repeats=*/true);
  std::vector<uint64_t> seeds = data::DrawnSeeds(dataset);
  for (uint64_t& seed : seeds) seed += shift;
  return data::WithDrawnSeeds(dataset, seeds);
}

const WorkerBatches* Batches::of_workers() {
  if (asked_workers_) return of_workers_ ? &*of_workers_ : nullptr;
  asked_workers_ = true;
  if (options_.strategy == nullptr || options_.strategy->closure_workers().empty()) return nullptr;
  if (options_.starts_over && dataset_->Cardinality() == data::kUnknownCardinality) {
    LogInfo("keras", options_.caller, ": this process reads the data and sends each batch to a worker, because the ",
            "number of batches is not known, and each is evaluated once");
    return nullptr;
  }
  const data::Dataset first = DatasetOfWorker(0);
  try {
    data::Serialize(first, data::kMaxGraphSourceBytes);
  } catch (const Error& error) {
    LogInfo("keras", options_.caller, ": this process reads the data and sends each batch to a worker, because the ",
            "workers cannot read them: ", error.what());
    return nullptr;
  }
  WorkerBatches& mine = of_workers_.emplace();
  mine.id = NewId();
  mine.spec = first.element_spec();
  for (data::TensorSpec& component : mine.spec) {
    if (component.shape.has_rank() && component.shape.rank() > 0) component.shape = WithOpenBatch(component.shape);
  }
  mine.weighted = weighted_;
  mine.dataset = [this](int worker) { return DatasetOfWorker(worker); };
  return &mine;
}

data::Dataset Batches::PartHere(const data::Dataset& dataset, data::AutoShardPolicy policy) {
  const distribute::Strategy* strategy = options_.strategy;
  if (strategy == nullptr) return dataset;
  // If there is one process, each step takes a whole batch, as on one device, and its replicas take their rows of it.
  if (strategy->num_workers() == 1) return data::AutoShard(dataset, 1, 0, policy);
  per_step_ = strategy->num_local_replicas();
  const distribute::InputPart part = distribute::PartOfProcess(*strategy, dataset, policy);
  if (part.of_common_batches) common_ = dataset;
  return part.dataset;
}

void Batches::ShareSeeds() {
  if (options_.strategy == nullptr || (!common_ && options_.auto_shard == data::AutoShardPolicy::kOff)) return;
  dataset_ = distribute::WithSeedsOfChief(*options_.strategy, *dataset_);
}

bool Batches::GoesOn(bool has_parts, Parts* parts) {
  if (!agrees_) return has_parts;
  distribute::WorkerMeeting& meeting = options_.strategy->meeting();
  if (common_) {
    meeting.ExpectAgreement(StrCat("[keras/", options_.caller, "] expected the same data at all workers"),
                            {{StrCat("batch ", step_ + 1), has_parts ? "is there" : "is beyond the end"}});
    return has_parts;
  }
  if (!meeting.Any(has_parts)) return false;
  if (!has_parts) *parts = PartsWithoutRows();  // this process takes part without examples
  return true;
}

int64_t Batches::steps_of_workers() const {
  if (!options_.starts_over || pass_steps_ == 0 || steps() <= pass_steps_) return steps();
  LogWarning("keras", options_.caller, ": the input has ", pass_steps_, " batches, fewer than the ", steps(),
             " steps that were asked for: each is evaluated once");
  return pass_steps_;
}

int64_t Batches::steps() const {
  if (options_.steps_per_epoch > 0) return options_.steps_per_epoch;
  return pass_steps_;
}

bool Batches::NextParts(Parts* parts) {
  if (!peeked_) return TakeParts(parts);
  *parts = std::move(*peeked_);
  peeked_.reset();
  return true;
}

bool Batches::TakeParts(Parts* parts) {
  const auto begin = std::chrono::steady_clock::now();
  if (!iterator_) iterator_ = dataset_->MakeIterator({.epoch = next_pass_++});
  parts->assign(static_cast<size_t>(per_step_), {});
  bool has_parts = false;
  for (std::vector<Tensor>& part : *parts) {
    if (iterator_->Next(&part)) {
      has_parts = true;
    } else {
      part.clear();
    }
  }
  waited_ += std::chrono::steady_clock::now() - begin;
  if (!has_parts) return false;
  distribute::FillWithoutRows(parts, dataset_->element_spec(), StrCat("[keras/", options_.caller, "]"));
  return true;
}

Batches::Parts Batches::PartsWithoutRows() const {
  Parts parts(static_cast<size_t>(per_step_));
  distribute::FillWithoutRows(&parts, dataset_->element_spec(), StrCat("[keras/", options_.caller, "]"));
  return parts;
}

void Batches::FailOfNoData() const {
  throw InvalidArgumentError(StrCat("[keras/", options_.caller,
                                    "] expected at least one batch; the dataset is empty: ", dataset_->ToString()));
}

std::vector<Tensor> Batches::Peek() {
  Parts first;
  if (peeked_ || TakeParts(&first)) {
    if (!peeked_) peeked_ = std::move(first);
    first = *peeked_;
  } else if (!common_ && agrees_) {  // others may have data, and this process takes part without
    first = PartsWithoutRows();
  } else {
    FailOfNoData();
  }
  AddWeights(&first);
  return first.front();
}

void Batches::StartEpoch() {
  step_ = 0;
  if (of_workers() != nullptr) {
    ++next_pass_;
    return;
  }
  const bool goes_on =
      !options_.starts_over && options_.steps_per_epoch > 0 && (pass_steps_ == 0 || from_pass_ < pass_steps_);
  const bool unused = iterator_ != nullptr && from_pass_ == 0;
  if (iterator_ != nullptr && (goes_on || unused)) return;
  from_pass_ = 0;
  iterator_ = nullptr;
}

bool Batches::Next(Parts* parts) {
  if (options_.steps_per_epoch > 0 && step_ == options_.steps_per_epoch) return false;
  if (!GoesOn(NextParts(parts), parts)) {
    if (!has_data_) FailOfNoData();
    if (options_.steps_per_epoch > 0) {
      LogWarning("keras", "the input ran out of data after ", step_, " of ", options_.steps_per_epoch,
                 " steps of this epoch: give at least steps_per_epoch * epochs batches, for instance with Repeat() on "
                 "the dataset");
    }
    pass_steps_ = from_pass_;
    return false;
  }
  has_data_ = true;
  ++step_;
  ++from_pass_;
  Complete(parts);
  return true;
}

void Batches::Complete(Parts* parts) {
  AddWeights(parts);
  const distribute::Strategy* strategy = options_.strategy;
  if (strategy != nullptr && strategy->num_workers() == 1) {
    *parts = distribute::RowsOfReplicas(*strategy, parts->front());
  }
}

bool Batches::PeekReady(Parts* parts) {
  if (agrees_ || per_step_ != 1 || peeked_ || iterator_ == nullptr) return false;
  if (options_.steps_per_epoch > 0 && step_ == options_.steps_per_epoch) return false;
  parts->assign(1, {});
  if (!iterator_->PeekReady(&parts->front())) return false;
  Complete(parts);
  return true;
}

std::string Batches::Save() {
  // A batch is peeked only before the first one of a Fit. Then the position is the begin of the pass.
  const bool unused = peeked_.has_value() && from_pass_ == 0;
  if (peeked_ && !unused)
    throw FailedPreconditionError("[keras/fit] expected the position of the data between two batches");
  WireWriter out;
  out.Varint(kPositionVersion);
  for (const int64_t count : {unused ? next_pass_ - 1 : next_pass_, step_, from_pass_, pass_steps_})
    out.Fixed64(static_cast<uint64_t>(count));
  out.Varint(has_data_ ? 1 : 0);
  // Later epochs begin with these seeds, even if this process has drawn others.
  const std::vector<uint64_t> seeds = data::DrawnSeeds(*dataset_);
  out.Varint(seeds.size());
  for (const uint64_t seed : seeds) out.Fixed64(seed);
  out.String(iterator_ != nullptr && !unused ? iterator_->Save() : "");
  return out.Take();
}

void Batches::Restore(std::string_view position) {
  WireReader in(position);
  const uint64_t version = in.Varint();
  if (version != kPositionVersion) {
    throw InvalidArgumentError(
        StrCat("[keras/fit] expected a position of version ", kPositionVersion, "; got version ", version));
  }
  for (int64_t* count : {&next_pass_, &step_, &from_pass_, &pass_steps_}) *count = static_cast<int64_t>(in.Fixed64());
  has_data_ = in.Varint(1) != 0;
  std::vector<uint64_t> seeds;
  for (uint64_t left = in.Varint(); left > 0; --left) seeds.push_back(in.Fixed64());
  const std::string_view of_iterator = in.View();
  in.ExpectEnd();
  if (of_workers_) of_workers_->id = NewId();  // the orders of the workers depend on next_pass_
  dataset_ = data::WithDrawnSeeds(*dataset_, seeds);
  peeked_.reset();
  iterator_ = nullptr;
  if (of_iterator.empty()) return;
  iterator_ = dataset_->MakeIterator();
  iterator_->Restore(of_iterator);
}

void Batches::AddWeights(Parts* parts) {
  if (weighted_ || wanted_.targets == 0) return;
  for (std::vector<Tensor>& part : *parts) {
    const int64_t size = part[0].shape().dim(0);
    if (!ones_.defined() || ones_.num_elements() < size) {
      ones_ = Tensor(DType::kFloat32, Shape{size});
      std::fill_n(ones_.data<float>(), size, 1.0f);
    }
    part.push_back(ones_.Slice(0, size));
  }
}

}  // namespace cohort::keras
