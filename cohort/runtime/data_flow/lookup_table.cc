#include "cohort/runtime/data_flow/lookup_table.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/number_text.h"

namespace cohort {
namespace {

template <typename T>
struct KeyType {
  using Type = T;
};
template <>
struct KeyType<std::string> {
  using Type = std::string_view;  // of the string in the tensor of keys
};

// Returns whether element i of `a` is element j of `b`. Requires: both have the same dtype.
bool AreSame(const Tensor& a, int64_t i, const Tensor& b, int64_t j) {
  if (a.dtype() == DType::kString) return a.data<std::string>()[i] == b.data<std::string>()[j];
  const size_t size = DTypeSize(a.dtype());
  return std::memcmp(static_cast<const char*>(a.raw_data()) + size * static_cast<size_t>(i),
                     static_cast<const char*>(b.raw_data()) + size * static_cast<size_t>(j), size) == 0;
}

template <typename T>
class ContentsOf final : public LookupTable::Contents {
 public:
  ContentsOf(const std::string& table, const Tensor& all_keys, const Tensor& all_values) {
    keys = all_keys.Clone();
    values = all_values.Clone();
    places_.reserve(static_cast<size_t>(keys.num_elements()));
    const T* key = keys.data<T>();
    for (int64_t i = 0; i < keys.num_elements(); ++i) {
      const auto [place, added] = places_.emplace(key[i], i);
      if (added || AreSame(values, place->second, values, i)) continue;
      throw InvalidArgumentError(StrCat("[table] the key \"", key[i], "\" of the table '", table, "' occurs at ",
                                        place->second, " and at ", i, ", counted from 0, with different values"));
    }
  }
  int64_t size() const override { return static_cast<int64_t>(places_.size()); }
  void FindPlaces(const Tensor& wanted, int64_t* places) const override {
    const T* key = wanted.data<T>();
    for (int64_t i = 0; i < wanted.num_elements(); ++i) {
      const auto found = places_.find(key[i]);
      places[i] = found == places_.end() ? -1 : found->second;
    }
  }

 private:
  std::unordered_map<typename KeyType<T>::Type, int64_t> places_;
};

std::shared_ptr<LookupTable::Contents> MakeContents(const std::string& table, const Tensor& keys,
                                                    const Tensor& values) {
  switch (keys.dtype()) {
    case DType::kString: return std::make_shared<ContentsOf<std::string>>(table, keys, values);
    case DType::kInt64: return std::make_shared<ContentsOf<int64_t>>(table, keys, values);
    case DType::kInt32: return std::make_shared<ContentsOf<int32_t>>(table, keys, values);
    default: throw InvalidArgumentError(StrCat("[table] expected keys of int32, int64 or string; got ", keys.dtype()));
  }
}

// Returns whether both have the same keys with the same values, in any order.
bool AreSame(const LookupTable::Contents& a, const LookupTable::Contents& b) {
  if (a.size() != b.size()) return false;
  std::vector<int64_t> places(static_cast<size_t>(a.keys.num_elements()));
  b.FindPlaces(a.keys, places.data());
  for (int64_t i = 0; i < a.keys.num_elements(); ++i) {
    const int64_t place = places[static_cast<size_t>(i)];
    if (place < 0 || !AreSame(a.values, i, b.values, place)) return false;
  }
  return true;
}

void CopyElement(const Tensor& from, int64_t i, Tensor& to, int64_t j) {
  if (from.dtype() == DType::kString) {
    to.data<std::string>()[j] = from.data<std::string>()[i];
    return;
  }
  const size_t size = DTypeSize(from.dtype());
  std::memcpy(static_cast<char*>(to.raw_data()) + size * static_cast<size_t>(j),
              static_cast<const char*>(from.raw_data()) + size * static_cast<size_t>(i), size);
}

// Splits a line of a table's file into columns.
class TableLine {
 public:
  TableLine(const TableFile& file, std::string_view line, int64_t number) : file_(file), line_(line), number_(number) {}

  // Writes column `index` as element `i` of `out`.
  void Write(int64_t index, int64_t offset, int64_t i, Tensor& out) const {
    switch (out.dtype()) {
      case DType::kString: out.data<std::string>()[i] = std::string(Text(index, offset)); return;
      case DType::kInt64: out.data<int64_t>()[i] = Number<int64_t>(index, offset); return;
      case DType::kInt32: out.data<int32_t>()[i] = Number<int32_t>(index, offset); return;
      case DType::kFloat32: out.data<float>()[i] = Number<float>(index, offset); return;
      default: throw InvalidArgumentError(StrCat("[table] a file cannot give keys or values of ", out.dtype()));
    }
  }

 private:
  std::string Text(int64_t index, int64_t offset) const {
    if (index == -1) {
      int64_t shifted = 0;
      if (__builtin_add_overflow(number_, offset, &shifted)) Fail(StrCat("has no number with the offset ", offset));
      return std::to_string(shifted);
    }
    if (index == -2) return std::string(line_);
    std::string_view rest = line_;
    for (int64_t column = 0;; ++column) {
      const size_t end = file_.delimiter.empty() ? std::string_view::npos : rest.find(file_.delimiter);
      if (column == index) return std::string(rest.substr(0, end));
      if (end == std::string_view::npos) Fail(StrCat("has no column ", index));
      rest.remove_prefix(end + file_.delimiter.size());
    }
  }
  template <typename T>
  T Number(int64_t index, int64_t offset) const {
    const std::string text = Text(index, offset);
    const std::optional<T> number = ParseNumber<T>(text);
    if (!number.has_value()) Fail(StrCat("has \"", text, "\", which is no number of dtype ", kDTypeOf<T>));
    return *number;
  }
  [[noreturn]] void Fail(const std::string& what) const {
    throw InvalidArgumentError(StrCat("[table] line ", number_ + 1, " of ", file_.path, " ", what));
  }

  const TableFile& file_;
  const std::string_view line_;
  const int64_t number_;
};

}  // namespace

LookupTable::LookupTable(std::string name, DType key_dtype, DType value_dtype, bool starts_empty)
    : name_(std::move(name)), key_dtype_(key_dtype), value_dtype_(value_dtype) {
  if (IsHandle(value_dtype)) throw InvalidArgumentError(StrCat("[table] a table has no values of ", value_dtype));
  if (starts_empty) contents_ = MakeContents(name_, Tensor(key_dtype, Shape{0}), Tensor(value_dtype, Shape{0}));
}

std::string LookupTable::Describe() const { return StrCat("table '", name_, "'"); }

void LookupTable::CheckDTypes(DType key_dtype, DType value_dtype) const {
  if (key_dtype == key_dtype_ && value_dtype == value_dtype_) return;
  throw FailedPreconditionError(StrCat("[table] the table '", name_, "' has keys of ", key_dtype_, " and values of ",
                                       value_dtype_, "; a node expects ", key_dtype, " and ", value_dtype));
}

std::shared_ptr<const LookupTable::Contents> LookupTable::Made(const Tensor& keys, const Tensor& values) const {
  if (keys.dtype() != key_dtype_ || values.dtype() != value_dtype_ || keys.shape().rank() != 1 ||
      values.shape() != keys.shape()) {
    throw InvalidArgumentError(StrCat("[table] expected a vector of keys of ", key_dtype_, " and as many values of ",
                                      value_dtype_, " for the table '", name_, "'; got ", keys.dtype(), keys.shape(),
                                      " and ", values.dtype(), values.shape()));
  }
  return MakeContents(name_, keys, values);
}

void LookupTable::Initialize(const Tensor& keys, const Tensor& values) {
  std::shared_ptr<const Contents> made = Made(keys, values);
  MutexLock lock(mu_);
  if (contents_ != nullptr && !AreSame(*contents_, *made)) {
    throw FailedPreconditionError(StrCat("[table] the table '", name_, "' has ", contents_->size(),
                                         " keys already, and an initializer has other keys or values (", made->size(),
                                         " keys); give one of the two tables another shared_name"));
  }
  contents_ = std::move(made);
}

void LookupTable::Replace(const Tensor& keys, const Tensor& values) {
  std::shared_ptr<const Contents> made = Made(keys, values);
  MutexLock lock(mu_);
  contents_ = std::move(made);
}

std::shared_ptr<const LookupTable::Contents> LookupTable::contents() const {
  MutexLock lock(mu_);
  if (contents_ == nullptr) {
    throw FailedPreconditionError(
        StrCat("[table] the table '", name_, "' has no contents; its initializer did not run"));
  }
  return contents_;
}

Tensor LookupTable::Find(const Tensor& keys, const Tensor& default_value) const {
  if (keys.dtype() != key_dtype_ || default_value.dtype() != value_dtype_ || default_value.shape().rank() != 0) {
    throw InvalidArgumentError(StrCat("[table] expected keys of ", key_dtype_, " and a scalar default of ",
                                      value_dtype_, " for the table '", name_, "'; got ", keys.dtype(), " and ",
                                      default_value.dtype(), default_value.shape()));
  }
  const std::shared_ptr<const Contents> now = contents();
  std::vector<int64_t> places(static_cast<size_t>(keys.num_elements()));
  now->FindPlaces(keys, places.data());
  Tensor found(value_dtype_, keys.shape());
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    const int64_t place = places[static_cast<size_t>(i)];
    CopyElement(place < 0 ? default_value : now->values, std::max<int64_t>(place, 0), found, i);
  }
  return found;
}

int64_t LookupTable::size() const { return contents()->size(); }

std::pair<Tensor, Tensor> ReadTableFile(const TableFile& file, DType key_dtype, DType value_dtype) {
  const std::string text = ReadFile(file.path);
  std::vector<std::string_view> lines;
  std::string_view rest = text;
  while (!rest.empty() && (file.vocab_size < 0 || static_cast<int64_t>(lines.size()) < file.vocab_size)) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
  }
  const auto count = static_cast<int64_t>(lines.size());
  if (count < file.vocab_size) {
    throw InvalidArgumentError(
        StrCat("[table] expected ", file.vocab_size, " lines in ", file.path, "; it has ", count));
  }
  std::pair<Tensor, Tensor> table = {Tensor(key_dtype, Shape{count}), Tensor(value_dtype, Shape{count})};
  for (int64_t i = 0; i < count; ++i) {
    const TableLine line(file, lines[static_cast<size_t>(i)], i);
    line.Write(file.key_index, 0, i, table.first);
    line.Write(file.value_index, file.value_index == -1 ? file.offset : 0, i, table.second);
  }
  return table;
}

}  // namespace cohort
