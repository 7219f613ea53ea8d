// CsvDataset: CSV files as RFC 4180 defines them, with TensorFlow's rules for defaults and missing values. CsvFormat
// has the options. CsvReader splits a file into records and fields (ReadRecord), and converts each wanted field to the
// dtype of its column (Convert). After an invalid line it continues with the next line.
#include <algorithm>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/nearest_names.h"
#include "cohort/core/text/number_text.h"
#include "cohort/data/description.h"
#include "cohort/data/readers/buffered_input.h"
#include "cohort/data/readers/file_format.h"
#include "cohort/data/readers/readers.h"

namespace cohort::data {
namespace {

// A line of delimiters has as many fields as bytes, and a field takes 32 bytes of memory. This is the most columns that
// the description of a dataset may have, too.
constexpr size_t kMaxFields = 1 << 20;
constexpr size_t kCheckEvery = 1 << 16;  // bytes of a field

template <typename T>
bool ParseScalar(const std::string& text, Tensor* out) {
  const std::optional<T> value = ParseNumber<T>(text);
  if (value) *out = Tensor::Scalar(*value);
  return value.has_value();
}

bool ParseField(const std::string& text, DType dtype, Tensor* out) {
  if (dtype == DType::kString) {
    *out = Tensor::Scalar(text);
    return true;
  }
  switch (dtype) {
    case DType::kFloat32: return ParseScalar<float>(text, out);
    case DType::kFloat64: return ParseScalar<double>(text, out);
    case DType::kInt32: return ParseScalar<int32_t>(text, out);
    default: return ParseScalar<int64_t>(text, out);
  }
}

class CsvFormat : public FileFormat {
 public:
  CsvFormat(std::vector<CsvColumn> columns, const CsvOptions& options)
      : columns_(std::move(columns)), options_(options) {
    for (const CsvColumn& column : columns_) spec_.push_back({column.dtype, Shape()});
  }
  std::string kind() const override { return "Csv"; }
  std::string Parameters() const override {
    return StrCat(columns_.size(), " columns", options_.header ? ", header" : "", ", '", options_.delimiter, "'",
                  options_.compression == Compression::kNone ? "" : ", ", CompressionName(options_.compression));
  }
  const ElementSpec& spec() const override { return spec_; }
  std::unique_ptr<FileReader> Open(const std::string& path) const override;
  void Write(DescriptionWriter* out) const override {
    out->Int(static_cast<int64_t>(columns_.size()));
    for (const CsvColumn& column : columns_) {
      out->Int(static_cast<int64_t>(column.dtype));
      out->Int(column.default_value ? 1 : 0);
      if (column.default_value) out->TensorReference(*column.default_value);
    }
    out->Int(options_.header ? 1 : 0);
    out->Int(options_.delimiter);
    out->Int(options_.use_quotes ? 1 : 0);
    out->String(options_.na_value);
    out->Int(static_cast<int64_t>(options_.select_columns.size()));
    for (const int column : options_.select_columns) out->Int(column);
    out->Int(static_cast<int64_t>(options_.compression));
    out->Int(has_names() ? 1 : 0);
    for (const CsvColumn& column : columns_) {
      if (has_names()) out->String(column.name);
    }
  }
  // Returns whether the columns are found by their names.
  bool has_names() const { return !columns_[0].name.empty(); }
  const std::vector<CsvColumn>& columns() const { return columns_; }
  const CsvOptions& options() const { return options_; }

 private:
  const std::vector<CsvColumn> columns_;
  const CsvOptions options_;
  ElementSpec spec_;
};

class CsvReader : public FileReader {
 public:
  CsvReader(const CsvFormat& format, const std::string& path)
      : format_(format), options_(format.options()), file_(path, options_.compression) {
    const std::vector<int>& selected = options_.select_columns;
    for (size_t i = 0; i < format_.columns().size(); ++i) {
      places_.push_back(selected.empty() ? i : static_cast<size_t>(selected[i]));
    }
    least_fields_ = places_.back() + 1;
    if (options_.header) ReadRecord();
    if (format_.has_names()) FindNames();
  }
  bool Next(Element* out) override {
    do {
      line_ = next_line_;
      if (!ReadRecord()) return false;
    } while (!HasOneColumn() && fields_.size() == 1 && fields_[0].empty());  // a blank line
    const std::vector<CsvColumn>& columns = format_.columns();
    const bool all = options_.select_columns.empty();  // and no other fields
    if (fields_.size() < least_fields_ || (all && fields_.size() > least_fields_)) {
      throw InvalidArgumentError(
          StrCat("[data] expected ", all ? "" : "at least ", least_fields_, " fields; got ", fields_.size(), Where()));
    }
    Element element(columns.size());
    for (size_t i = 0; i < columns.size(); ++i) element[i] = Convert(fields_[places_[i]], columns[i], places_[i]);
    *out = std::move(element);
    return true;
  }
  void Save(WireWriter* out) const override {
    out->Varint(static_cast<uint64_t>(file_.offset()));
    out->Varint(static_cast<uint64_t>(next_line_));
  }
  void Restore(WireReader* in) override {
    file_.SkipTo(static_cast<int64_t>(in->Varint(uint64_t{1} << 62)));
    next_line_ = static_cast<int64_t>(in->Varint());
  }

 private:
  // Returns whether a blank line may be a record: an empty field.
  bool HasOneColumn() const { return least_fields_ == 1 && options_.select_columns.empty(); }
  // Looks for the columns in the first line, which is in fields_.
  void FindNames() {
    for (size_t i = 0; i < places_.size(); ++i) {
      const std::string& name = format_.columns()[i].name;
      const auto found = std::find(fields_.begin(), fields_.end(), name);
      if (found == fields_.end() || std::find(found + 1, fields_.end(), name) != fields_.end()) {
        throw InvalidArgumentError(StrCat("[data] expected one column '", name, "' in the first line of ", file_.path(),
                                          "; its columns are: ", StrJoin(fields_, ", "), DidYouMean(name, fields_)));
      }
      places_[i] = static_cast<size_t>(found - fields_.begin());
    }
    least_fields_ = fields_.size();
  }
  std::string Where() const { return StrCat("; line ", line_, " of ", file_.path()); }

  Tensor Convert(const std::string& field, const CsvColumn& column, size_t at) const {
    if (field.empty() || field == options_.na_value) {
      if (column.default_value) return *column.default_value;
      throw InvalidArgumentError(
          StrCat("[data] expected a value, as column ", at, " has no default; got an empty field", Where()));
    }
    Tensor value;
    if (ParseField(field, column.dtype, &value)) return value;
    throw InvalidArgumentError(
        StrCat("[data] expected a valid ", column.dtype, " in column ", at, "; got '", field, "'", Where()));
  }

  // Replaces fields_ by the fields of the next record. Returns false at the end of the file.
  bool ReadRecord() {
    fields_.clear();
    record_start_ = file_.offset();
    if (file_.Peek() < 0) return false;
    for (bool more = true; more;) {
      if (fields_.size() == kMaxFields) FailLine("expected at most 2^20 fields; got more");
      fields_.emplace_back();
      if (file_.offset() == 0) PassOverMark(&fields_.back());
      const bool quoted = options_.use_quotes && file_.Peek() == '"';
      more = quoted ? ReadQuoted(&fields_.back()) : ReadPlain(&fields_.back());
    }
    return true;
  }
  // Passes over the mark of UTF-8, with which some programs begin a file. Other bytes are the begin of the field.
  void PassOverMark(std::string* field) {
    constexpr std::string_view kMark = "\xef\xbb\xbf";
    for (const char byte : kMark) {
      if (file_.Peek() != static_cast<unsigned char>(byte)) break;
      field->push_back(static_cast<char>(file_.Get()));
    }
    if (*field == kMark) field->clear();
  }
  // Returns true if a delimiter has ended the field, and false if the record has ended.
  bool ReadPlain(std::string* field) {
    for (;;) {
      const int byte = file_.Get();
      if (byte == static_cast<unsigned char>(options_.delimiter)) return true;
      if (byte < 0 || EndsLine(byte)) return false;
      if (byte == '"' && options_.use_quotes) {
        FailLine("expected quotes around a whole field only; got one within an unquoted field");
      }
      Append(byte, field);
    }
  }
  // Bytes of a compressed file are counted, because few can unpack to very many.
  void Append(int byte, std::string* field) const {
    field->push_back(static_cast<char>(byte));
    if (field->size() % kCheckEvery == 0) CheckRecordBytes();
  }
  void CheckRecordBytes() const {
    file_.CheckValueBytes(static_cast<uint64_t>(file_.offset() - record_start_), "a CSV record", record_start_);
  }
  bool ReadQuoted(std::string* field) {
    file_.Get();
    for (;;) {
      int byte = file_.Get();
      if (byte < 0) FailLine("expected the quote that ends a field; got the end of the file");
      if (byte == '\n') ++next_line_;
      if (byte != '"' || file_.Peek() == '"') {
        if (byte == '"') file_.Get();
        Append(byte, field);
        continue;
      }
      byte = file_.Get();
      if (byte == static_cast<unsigned char>(options_.delimiter)) return true;
      if (byte < 0 || EndsLine(byte)) return false;
      FailLine("expected a delimiter or the end of the line after a quoted field; got something else");
    }
  }
  bool EndsLine(int byte) {
    if (byte == '\r' && file_.Peek() == '\n') byte = file_.Get();
    if (byte != '\n') return false;
    ++next_line_;
    return true;
  }
  [[noreturn]] void FailLine(const char* message) {
    file_.SkipLine();
    ++next_line_;
    throw InvalidArgumentError(StrCat("[data] ", message, Where()));
  }

  const CsvFormat& format_;
  const CsvOptions& options_;
  BufferedInput file_;
  std::vector<std::string> fields_;
  std::vector<size_t> places_;  // of the columns among the fields
  size_t least_fields_ = 0;     // of a record
  int64_t record_start_ = 0;    // offset of the current record
  int64_t line_ = 1;            // line in which the current record begins
  int64_t next_line_ = 1;       // line in which the next record begins
};

std::unique_ptr<FileReader> CsvFormat::Open(const std::string& path) const {
  return std::make_unique<CsvReader>(*this, path);
}

bool IsCsvType(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt32 || dtype == DType::kInt64 ||
         dtype == DType::kString;
}

void CheckNames(const std::vector<CsvColumn>& columns, const CsvOptions& options) {
  const auto has_name = [](const CsvColumn& column) { return !column.name.empty(); };
  const auto named = std::count_if(columns.begin(), columns.end(), has_name);
  if (named == 0) return;
  if (static_cast<size_t>(named) < columns.size()) {
    throw InvalidArgumentError(
        StrCat("[data] expected names for all ", columns.size(), " CSV columns, or for none; got ", named));
  }
  if (options.header && options.select_columns.empty()) return;
  throw InvalidArgumentError(
      "[data] expected CsvOptions::header and no select_columns, because the columns have names, which are looked for "
      "in the first line of each file");
}

std::shared_ptr<const CsvFormat> MakeCsvFormat(std::vector<CsvColumn> columns, const CsvOptions& options) {
  if (columns.empty()) throw InvalidArgumentError("[data] expected one CSV column at least; got none");
  for (size_t i = 0; i < columns.size(); ++i) {
    const CsvColumn& column = columns[i];
    if (!IsCsvType(column.dtype)) {
      throw InvalidArgumentError(StrCat("[data] expected float32, float64, int32, int64 or string for CSV column ", i,
                                        "; got ", column.dtype));
    }
    if (column.default_value) CheckElement({*column.default_value}, {{column.dtype, Shape()}});
  }
  CheckNames(columns, options);
  const std::vector<int>& selected = options.select_columns;
  bool ascending = selected.empty() || (selected.size() == columns.size() && selected.front() >= 0);
  for (size_t i = 1; i < selected.size(); ++i) ascending = ascending && selected[i - 1] < selected[i];
  if (!ascending) {
    throw InvalidArgumentError(StrCat("[data] expected ascending indices of ", columns.size(),
                                      " columns to select; got ", StrJoin(selected, ", ")));
  }
  return std::make_shared<CsvFormat>(std::move(columns), options);
}

}  // namespace

Dataset CsvDataset(const Dataset& files, std::vector<CsvColumn> columns, const CsvOptions& options) {
  return Dataset(MakeReader(files.node(), MakeCsvFormat(std::move(columns), options)));
}
Dataset CsvDataset(const std::vector<std::string>& files, std::vector<CsvColumn> columns, const CsvOptions& options) {
  return CsvDataset(FileNames(files), std::move(columns), options);
}

std::shared_ptr<const FileFormat> ReadCsvFormat(DescriptionReader& in) {
  std::vector<CsvColumn> columns;
  for (int64_t left = in.Int(1, kMaxFields); left > 0; --left) {
    CsvColumn& column = columns.emplace_back();
    column.dtype = static_cast<DType>(in.Int(0, 100));
    if (in.Bool()) column.default_value = in.TensorReference();
  }
  CsvOptions options;
  options.header = in.Bool();
  options.delimiter = static_cast<char>(in.Int(-128, 127));
  options.use_quotes = in.Bool();
  options.na_value = in.String();
  for (int64_t left = in.Int(0, kMaxFields); left > 0; --left) {
    options.select_columns.push_back(static_cast<int>(in.Int(0, 1 << 30)));
  }
  options.compression = static_cast<Compression>(in.Int(0, 2));
  if (in.Bool()) {
    for (CsvColumn& column : columns) column.name = in.String();
  }
  return MakeCsvFormat(std::move(columns), options);
}

}  // namespace cohort::data
