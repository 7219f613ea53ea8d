#include "cohort/keras/layers/preprocessing/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "cohort/core/dtype.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/preprocessing/text_tokens.h"
#include "cohort/ops/lookup.h"

namespace cohort::keras {
namespace {

// Calls `read` with the component of each element.
void ForEachElement(const data::Dataset& data, int component, const std::function<void(const Tensor&)>& read) {
  CheckCanBeLearned(data, component);
  const std::unique_ptr<data::Iterator> iterator = data.MakeIterator();
  std::vector<Tensor> element;
  while (iterator->Next(&element)) read(element[static_cast<size_t>(component)]);
}

// Calls use(values, number) with the values as T. Throws InvalidArgumentError for data of another dtype.
template <typename T, typename Use>
void WithValues(const Tensor& data, const Use& use) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (data.dtype() == DType::kString) return use(data.data<std::string>(), data.num_elements());
  } else {
    if (data.dtype() == DType::kInt64) return use(data.data<int64_t>(), data.num_elements());
    if (data.dtype() == DType::kInt32) return use(data.data<int32_t>(), data.num_elements());
  }
  throw InvalidArgumentError(StrCat("[keras/learn] expected ", std::is_same_v<T, std::string> ? "strings" : "integers",
                                    "; got ", data.dtype()));
}

template <typename T>
class TokenCounts {
 public:
  void Add(const Tensor& data) {
    WithValues<T>(data, [&](const auto* values, int64_t number) {
      for (int64_t i = 0; i < number; ++i) ++counts_[values[i]];
    });
  }

  std::vector<T> MostFrequent(int64_t most) && {
    if (most < 0) throw InvalidArgumentError(StrCat("[keras/learn] expected max_tokens >= 0; got ", most));
    std::vector<std::pair<T, int64_t>> all(counts_.begin(), counts_.end());
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first > b.first;
    });
    if (most > 0 && most < static_cast<int64_t>(all.size())) all.resize(static_cast<size_t>(most));
    std::vector<T> tokens;
    tokens.reserve(all.size());
    for (auto& [token, count] : all) tokens.push_back(std::move(token));
    return tokens;
  }

 private:
  std::unordered_map<T, int64_t> counts_;
};

template <typename T>
std::vector<T> Learn(const Tensor& data, const LearnOptions& options) {
  TokenCounts<T> counts;
  counts.Add(data);
  return std::move(counts).MostFrequent(options.max_tokens);
}

template <typename T>
std::vector<T> Learn(const data::Dataset& data, const LearnOptions& options) {
  TokenCounts<T> counts;
  ForEachElement(data, options.component, [&](const Tensor& element) { counts.Add(element); });
  return std::move(counts).MostFrequent(options.max_tokens);
}

// Counts the documents that have each token of a vocabulary.
template <typename T>
class DocumentCounts {
 public:
  explicit DocumentCounts(const std::vector<T>& vocabulary) : counts_(vocabulary.size()) {
    if (vocabulary.empty()) throw InvalidArgumentError("[keras/learn] expected a vocabulary; got none");
    ops::CheckVocabulary(Tensor::Vector(vocabulary));
    for (size_t i = 0; i < vocabulary.size(); ++i) places_.emplace(vocabulary[i], i);
  }

  void Add(const Tensor& data) {
    const int rank = data.shape().rank();
    const int64_t length = rank == 0 ? 1 : data.shape().dim(rank - 1);
    // Documents without tokens count, too.
    if (length == 0) documents_ += data.shape().Sub(0, rank - 1).num_elements();
    WithValues<T>(data, [&](const auto* values, int64_t number) {
      for (int64_t i = 0; i < number; ++i) {
        if (i % length == 0) ++documents_;
        const auto found = places_.find(values[i]);
        if (found == places_.end()) continue;
        Count& count = counts_[found->second];
        if (std::exchange(count.last_document, documents_) != documents_) ++count.documents;
      }
    });
  }

  std::vector<double> IdfWeights() const {
    std::vector<double> weights;
    weights.reserve(counts_.size());
    for (const Count& count : counts_) weights.push_back(IdfWeight(documents_, count.documents));
    return weights;
  }

 private:
  struct Count {
    int64_t documents = 0;
    int64_t last_document = 0;  // the number of the last document with the token, from 1 on
  };
  std::unordered_map<T, size_t> places_;
  std::vector<Count> counts_;
  int64_t documents_ = 0;
};

template <typename T>
std::vector<double> IdfWeightsOf(const Tensor& data, const std::vector<T>& vocabulary) {
  DocumentCounts<T> counts(vocabulary);
  counts.Add(data.shape().rank() == 1 ? data.Reshaped(Shape{data.shape().dim(0), 1}) : data);
  return counts.IdfWeights();
}

template <typename T>
std::vector<double> IdfWeightsOf(const data::Dataset& data, const std::vector<T>& vocabulary, int component) {
  DocumentCounts<T> counts(vocabulary);
  ForEachElement(data, component, [&](const Tensor& element) { counts.Add(element); });
  return counts.IdfWeights();
}

// Sums of the values and of their squares, around the first value of each feature, so that little is lost when the
// mean is far from 0.
class Sums {
 public:
  void Add(const Tensor& data) {
    const int rank = data.shape().rank();
    if (rank < 1) throw InvalidArgumentError("[keras/learn] expected data [examples, ..., features]; got a scalar");
    const auto features = static_cast<size_t>(data.shape().dim(rank - 1));
    if (data.num_elements() == 0) return;
    if (origin_.empty()) {
      origin_.resize(features);
      sums_.resize(features);
      squares_.resize(features);
    }
    if (features != origin_.size()) {
      throw InvalidArgumentError(StrCat("[keras/learn] expected ", origin_.size(),
                                        " features, as in the examples before; got ", data.dtype(), data.shape()));
    }
    switch (data.dtype()) {
      case DType::kFloat32: return AddValues<float>(data);
      case DType::kFloat64: return AddValues<double>(data);
      case DType::kBfloat16: return AddValues<bfloat16>(data);
      case DType::kUint8: return AddValues<uint8_t>(data);
      case DType::kInt32: return AddValues<int32_t>(data);
      case DType::kInt64: return AddValues<int64_t>(data);
      default: throw InvalidArgumentError(StrCat("[keras/learn] expected numbers; got ", data.dtype()));
    }
  }

  Moments Result() const {
    if (count_ == 0) throw InvalidArgumentError("[keras/learn] expected at least one example; got none");
    Moments moments;
    const auto n = static_cast<double>(count_);
    for (size_t f = 0; f < origin_.size(); ++f) {
      const double mean = sums_[f] / n;
      moments.mean.push_back(origin_[f] + mean);
      moments.variance.push_back(std::max(squares_[f] / n - mean * mean, 0.0));
    }
    return moments;
  }

 private:
  static float Plain(bfloat16 value) { return static_cast<float>(value); }
  template <typename T>
  static T Plain(T value) {
    return value;
  }

  template <typename T>
  void AddValues(const Tensor& data) {
    const T* values = data.data<T>();
    const size_t features = origin_.size();
    const auto rows = static_cast<size_t>(data.num_elements()) / features;
    for (size_t row = 0; row < rows; ++row) {
      for (size_t f = 0; f < features; ++f) {
        const auto value = static_cast<double>(Plain(values[row * features + f]));
        if (count_ == 0) origin_[f] = value;
        const double offset = value - origin_[f];
        sums_[f] += offset;
        squares_[f] += offset * offset;
      }
      ++count_;
    }
  }

  int64_t count_ = 0;
  std::vector<double> origin_, sums_, squares_;
};

}  // namespace

void CheckCanBeLearned(const data::Dataset& data, int component) {
  const auto components = static_cast<int>(data.element_spec().size());
  if (component < 0 || component >= components) {
    throw InvalidArgumentError(StrCat("[keras/learn] expected a component in [0, ", components, "); got ", component));
  }
  if (data.Cardinality() == data::kInfiniteCardinality) {
    throw InvalidArgumentError(
        StrCat("[keras/learn] expected a dataset that ends; got ", data.ToString(), "; call Take() on it"));
  }
}

double IdfWeight(int64_t documents, int64_t with_token) {
  return std::log(1 + static_cast<double>(documents) / static_cast<double>(1 + with_token));
}

std::vector<std::string> LearnStrings(const Tensor& data, const LearnOptions& options) {
  return Learn<std::string>(data, options);
}
std::vector<std::string> LearnStrings(const data::Dataset& data, const LearnOptions& options) {
  return Learn<std::string>(data, options);
}
std::vector<int64_t> LearnIntegers(const Tensor& data, const LearnOptions& options) {
  return Learn<int64_t>(data, options);
}
std::vector<int64_t> LearnIntegers(const data::Dataset& data, const LearnOptions& options) {
  return Learn<int64_t>(data, options);
}

std::vector<double> LearnIdfWeights(const Tensor& data, const std::vector<std::string>& vocabulary) {
  return IdfWeightsOf(data, vocabulary);
}
std::vector<double> LearnIdfWeights(const data::Dataset& data, const std::vector<std::string>& vocabulary,
                                    int component) {
  return IdfWeightsOf(data, vocabulary, component);
}
std::vector<double> LearnIdfWeights(const Tensor& data, const std::vector<int64_t>& vocabulary) {
  return IdfWeightsOf(data, vocabulary);
}
std::vector<double> LearnIdfWeights(const data::Dataset& data, const std::vector<int64_t>& vocabulary, int component) {
  return IdfWeightsOf(data, vocabulary, component);
}

Moments LearnMoments(const Tensor& data) {
  Sums sums;
  sums.Add(data);
  return sums.Result();
}
Moments LearnMoments(const data::Dataset& data, int component) {
  Sums sums;
  ForEachElement(data, component, [&](const Tensor& element) { sums.Add(element); });
  return sums.Result();
}

}  // namespace cohort::keras
