#include "cohort/runtime/data_flow/lookup_table.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"

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

bool SameElement(const Tensor& values, int64_t a, int64_t b) {
  if (values.dtype() == DType::kString) return values.data<std::string>()[a] == values.data<std::string>()[b];
  const size_t size = DTypeSize(values.dtype());
  const char* bytes = static_cast<const char*>(values.raw_data());
  return std::memcmp(bytes + size * static_cast<size_t>(a), bytes + size * static_cast<size_t>(b), size) == 0;
}

template <typename T>
class ContentsOf final : public LookupTable::Contents {
 public:
  ContentsOf(const Tensor& keys, const Tensor& all_values) : keys_(keys.Clone()) {
    values = all_values.Clone();
    places_.reserve(static_cast<size_t>(keys_.num_elements()));
    const T* key = keys_.data<T>();
    for (int64_t i = 0; i < keys_.num_elements(); ++i) {
      const auto [place, added] = places_.emplace(key[i], i);
      if (added || SameElement(values, place->second, i)) continue;
      throw InvalidArgumentError(StrCat("[table] the key \"", key[i], "\" occurs twice, with different values"));
    }
  }
  int64_t size() const override { return static_cast<int64_t>(places_.size()); }
  void FindPlaces(const Tensor& keys, int64_t* places) const override {
    const T* key = keys.data<T>();
    for (int64_t i = 0; i < keys.num_elements(); ++i) {
      const auto found = places_.find(key[i]);
      places[i] = found == places_.end() ? -1 : found->second;
    }
  }

 private:
  const Tensor keys_;
  std::unordered_map<typename KeyType<T>::Type, int64_t> places_;
};

std::shared_ptr<LookupTable::Contents> MakeContents(const Tensor& keys, const Tensor& values) {
  switch (keys.dtype()) {
    case DType::kString: return std::make_shared<ContentsOf<std::string>>(keys, values);
    case DType::kInt64: return std::make_shared<ContentsOf<int64_t>>(keys, values);
    case DType::kInt32: return std::make_shared<ContentsOf<int32_t>>(keys, values);
    default: throw InvalidArgumentError(StrCat("[table] expected keys of int32, int64 or string; got ", keys.dtype()));
  }
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
    if (index == -1) return std::to_string(number_ + offset);
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
    T number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      Fail(StrCat("has \"", text, "\", which is no number"));
    return number;
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
  if (starts_empty) contents_ = MakeContents(Tensor(key_dtype, Shape{0}), Tensor(value_dtype, Shape{0}));
}

std::string LookupTable::Describe() const { return StrCat("table '", name_, "'"); }

void LookupTable::CheckDTypes(DType key_dtype, DType value_dtype) const {
  if (key_dtype == key_dtype_ && value_dtype == value_dtype_) return;
  throw FailedPreconditionError(StrCat("[table] the table '", name_, "' has keys of ", key_dtype_, " and values of ",
                                       value_dtype_, "; a node expects ", key_dtype, " and ", value_dtype));
}

void LookupTable::Replace(const Tensor& keys, const Tensor& values) {
  if (keys.dtype() != key_dtype_ || values.dtype() != value_dtype_ || keys.shape().rank() != 1 ||
      values.shape() != keys.shape()) {
    throw InvalidArgumentError(StrCat("[table] expected a vector of keys of ", key_dtype_, " and as many values of ",
                                      value_dtype_, " for the table '", name_, "'; got ", keys.dtype(), keys.shape(),
                                      " and ", values.dtype(), values.shape()));
  }
  std::shared_ptr<const Contents> made = MakeContents(keys, values);
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
