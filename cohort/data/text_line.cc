#include "cohort/core/str_cat.h"
#include "cohort/data/buffered_input.h"
#include "cohort/data/description.h"
#include "cohort/data/file_format.h"
#include "cohort/data/readers.h"

namespace cohort::data {
namespace {

class LineReader : public FileReader {
 public:
  LineReader(const std::string& path, Compression compression) : file_(path, compression) {}
  bool Next(Element* out) override {
    std::string line;
    if (!file_.ReadLine(&line)) return false;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    out->assign(1, Tensor::Scalar(std::move(line)));
    return true;
  }
  void Save(WireWriter* out) const override { out->Varint(static_cast<uint64_t>(file_.offset())); }
  void Restore(WireReader* in) override { file_.SkipTo(static_cast<int64_t>(in->Varint(uint64_t{1} << 62))); }

 private:
  BufferedInput file_;
};

class TextLineFormat : public FileFormat {
 public:
  explicit TextLineFormat(Compression compression) : compression_(compression) {}
  std::string kind() const override { return "TextLine"; }
  std::string Parameters() const override { return std::string(CompressionName(compression_)); }
  const ElementSpec& spec() const override { return spec_; }
  std::unique_ptr<FileReader> Open(const std::string& path) const override {
    return std::make_unique<LineReader>(path, compression_);
  }
  void Write(DescriptionWriter* out) const override { out->Int(static_cast<int64_t>(compression_)); }

 private:
  const Compression compression_;
  const ElementSpec spec_{{DType::kString, Shape()}};
};

}  // namespace

Dataset TextLineDataset(const Dataset& files, Compression compression) {
  return Dataset(MakeReader(files.node(), std::make_shared<TextLineFormat>(compression)));
}
Dataset TextLineDataset(const std::vector<std::string>& files, Compression compression) {
  return TextLineDataset(FileNames(files), compression);
}

std::shared_ptr<const FileFormat> ReadTextLineFormat(DescriptionReader& in) {
  return std::make_shared<TextLineFormat>(static_cast<Compression>(in.Int(0, 2)));
}

}  // namespace cohort::data
