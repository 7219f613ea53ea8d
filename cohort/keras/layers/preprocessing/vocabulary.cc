#include "cohort/keras/layers/preprocessing/vocabulary.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "cohort/core/dtype.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::keras {
namespace {

// Calls `read` with the component of each element.
void ForEachElement(const data::Dataset& data, int component, const std::function<void(const Tensor&)>& read) {
  const auto components = static_cast<int>(data.element_spec().size());
  if (component < 0 || component >= components) {
    throw InvalidArgumentError(StrCat("[keras/learn] expected a component in [0, ", components, "); got ", component));
  }
  if (data.Cardinality() == data::kInfiniteCardinality) {
    throw InvalidArgumentError(
        StrCat("[keras/learn] expected a dataset that ends; got ", data.ToString(), "; call Take() on it"));
  }
  const std::unique_ptr<data::Iterator> iterator = data.MakeIterator();
  std::vector<Tensor> element;
  while (iterator->Next(&element)) read(element[static_cast<size_t>(component)]);
}

template <typename T>
class TokenCounts {
 public:
  void Add(const Tensor& data) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (data.dtype() == DType::kString) return AddValues<std::string>(data);
    } else {
      if (data.dtype() == DType::kInt64) return AddValues<int64_t>(data);
      if (data.dtype() == DType::kInt32) return AddValues<int32_t>(data);
    }
    throw InvalidArgumentError(StrCat("[keras/learn] expected ",
                                      std::is_same_v<T, std::string> ? "strings" : "integers", "; got ", data.dtype()));
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
  template <typename Element>
  void AddValues(const Tensor& data) {
    const Element* values = data.data<Element>();
    for (int64_t i = 0; i < data.num_elements(); ++i) ++counts_[values[i]];
  }

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
