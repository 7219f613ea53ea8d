// Kernels of ops/decode.h. DecodeRaw copies the bytes of each string. DecodeCSV splits each record into fields, and
// converts those that are selected to the dtypes of their columns.
#include "cohort/ops/decode.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/number_text.h"
#include "cohort/device/kernel.h"

namespace cohort {
namespace {

class DecodeRawKernel final : public OpKernel {
 public:
  explicit DecodeRawKernel(const KernelConstruction& c)
      : out_type_(c.attr<DType>("out_type")),
        swap_(c.attr<bool>("little_endian") != (std::endian::native == std::endian::little)) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& bytes = ctx.input(0);
    const size_t size = DTypeSize(out_type_);
    const size_t length = bytes.num_elements() == 0 ? 0 : bytes.data<std::string>()[0].size();
    if (length % size != 0) {
      throw InvalidArgumentError(StrCat("expected strings whose length is a multiple of ", size, ", the size of a ",
                                        out_type_, "; got ", length));
    }
    Tensor& out = ctx.AllocateOutput(0, bytes.shape().Concat(Shape{static_cast<int64_t>(length / size)}));
    auto* to = static_cast<char*>(out.raw_data());
    for (int64_t i = 0; i < bytes.num_elements(); ++i, to += length) {
      const std::string& from = bytes.data<std::string>()[i];
      if (from.size() != length) {
        throw InvalidArgumentError(StrCat("expected strings of one length; got ", length, " bytes in string 0 and ",
                                          from.size(), " in string ", i));
      }
      Copy(from, size, to);
    }
  }

 private:
  void Copy(const std::string& from, size_t size, char* to) const {
    if (out_type_ == DType::kBool) {
      for (size_t i = 0; i < from.size(); ++i) to[i] = from[i] != 0 ? 1 : 0;
    } else if (!swap_ || size == 1) {
      std::copy(from.begin(), from.end(), to);
    } else {
      for (size_t i = 0; i < from.size(); ++i) to[i] = from[i - i % size + size - 1 - i % size];
    }
  }

  const DType out_type_;
  const bool swap_;
};

// Splits one record into fields. Line ends between fields are skipped, as TensorFlow does.
class CsvRecord {
 public:
  CsvRecord(std::string_view text, char delimiter, bool quotes, int64_t number)
      : text_(text), delimiter_(delimiter), quotes_(quotes), number_(number) {}

  // Puts the fields with the numbers `selected` into `fields`, or all fields if `selected` is empty.
  void Split(const std::vector<int64_t>& selected, std::vector<std::string>& fields) {
    fields.clear();
    int64_t count = 0;
    const auto wanted = [&] { return selected.empty() || selected[fields.size()] == count; };
    while (at_ < text_.size()) {
      if (text_[at_] == '\n' || text_[at_] == '\r') {
        ++at_;
        continue;
      }
      std::string field = quotes_ && text_[at_] == '"' ? Quoted() : Plain();
      if (wanted()) fields.push_back(std::move(field));
      ++count;
      if (!selected.empty() && fields.size() == selected.size()) return;
    }
    if (!text_.empty() && text_.back() == delimiter_ && wanted()) fields.emplace_back();
  }

 private:
  std::string Plain() {
    const size_t end = std::min(text_.find(delimiter_, at_), text_.size());
    const std::string_view field = text_.substr(at_, end - at_);
    if (field.find_first_of(quotes_ ? "\"\n\r" : "\n\r") != std::string_view::npos) {
      Fail("expected no quote and no line end in a field without quotes");
    }
    at_ = end + 1;
    return std::string(field);
  }

  std::string Quoted() {
    std::string field;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] != '"') {
        field += text_[at_];
      } else if (at_ + 1 == text_.size() || text_[at_ + 1] == delimiter_) {
        at_ += 2;
        return field;
      } else if (text_[++at_] == '"') {
        field += '"';
      } else {
        Fail("expected a further quote, a delimiter or the end after a quote in a field with quotes");
      }
    }
    Fail("expected a quote at the end of a field with quotes");
  }

  [[noreturn]] void Fail(const char* what) const {
    throw InvalidArgumentError(StrCat(what, "; got record ", number_, ": '", text_, "'"));
  }

  const std::string_view text_;
  const char delimiter_;
  const bool quotes_;
  const int64_t number_;
  size_t at_ = 0;
};

template <typename T>
bool Set(std::string_view field, Tensor& out, int64_t i) {
  const std::optional<T> value = ParseNumber<T>(field);
  if (value) out.data<T>()[i] = *value;
  return value.has_value();
}

bool SetField(const std::string& field, Tensor& out, int64_t i) {
  switch (out.dtype()) {
    case DType::kFloat32: return Set<float>(field, out, i);
    case DType::kFloat64: return Set<double>(field, out, i);
    case DType::kInt32: return Set<int32_t>(field, out, i);
    case DType::kInt64: return Set<int64_t>(field, out, i);
    default: out.data<std::string>()[i] = field; return true;
  }
}

void SetDefault(const Tensor& value, Tensor& out, int64_t i) {
  if (out.dtype() == DType::kString) {
    out.data<std::string>()[i] = value.data<std::string>()[0];
    return;
  }
  const size_t size = DTypeSize(out.dtype());
  std::memcpy(static_cast<char*>(out.raw_data()) + static_cast<size_t>(i) * size, value.raw_data(), size);
}

class DecodeCSVKernel final : public OpKernel {
 public:
  explicit DecodeCSVKernel(const KernelConstruction& c)
      : delimiter_(c.attr<std::string>("field_delim").at(0)),
        quotes_(c.attr<bool>("use_quote_delim")),
        na_value_(c.attr<std::string>("na_value")),
        selected_(c.attr<std::vector<int64_t>>("select_cols")) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& records = ctx.input(0);
    const int columns = ctx.num_outputs();
    std::vector<Tensor*> outputs;
    outputs.reserve(static_cast<size_t>(columns));
    for (int i = 0; i < columns; ++i) outputs.push_back(&ctx.AllocateOutput(i, records.shape()));
    std::vector<std::string> fields;
    for (int64_t r = 0; r < records.num_elements(); ++r) {
      CsvRecord(records.data<std::string>()[r], delimiter_, quotes_, r).Split(selected_, fields);
      if (fields.size() != outputs.size()) {
        throw InvalidArgumentError(StrCat("expected ", columns, " fields; got ", fields.size(), " in record ", r));
      }
      for (int i = 0; i < columns; ++i) {
        Convert(fields[static_cast<size_t>(i)], ctx.input(i + 1), i, r, *outputs[static_cast<size_t>(i)]);
      }
    }
  }

 private:
  void Convert(const std::string& field, const Tensor& default_value, int column, int64_t record, Tensor& out) const {
    if (field.empty() || field == na_value_) {
      if (default_value.num_elements() != 1) {
        throw InvalidArgumentError(
            StrCat("expected a value in field ", column, ", which has no default; got none in record ", record));
      }
      return SetDefault(default_value, out, record);
    }
    if (SetField(field, out, record)) return;
    throw InvalidArgumentError(
        StrCat("expected a valid ", out.dtype(), " in field ", column, "; got '", field, "' in record ", record));
  }

  const char delimiter_;
  const bool quotes_;
  const std::string na_value_;
  const std::vector<int64_t> selected_;
};

}  // namespace

void RegisterDecodeKernels(KernelRegistry& registry) {
  registry.Register<DecodeRawKernel>("DecodeRaw", "CPU");
  registry.Register<DecodeCSVKernel>("DecodeCSV", "CPU");
}

}  // namespace cohort
