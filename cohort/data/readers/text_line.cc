#include "cohort/core/str_cat.h"
#include "cohort/data/readers/buffered_input.h"
#include "cohort/data/readers/readers.h"
#include "cohort/data/readers/string_format.h"

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

std::shared_ptr<const FileFormat> MakeLineFormat(Compression compression) {
  return std::make_shared<StringFormat<LineReader>>("TextLine", compression);
}

}  // namespace

Dataset TextLineDataset(const Dataset& files, Compression compression) {
  return Dataset(MakeReader(files.node(), MakeLineFormat(compression)));
}
Dataset TextLineDataset(const std::vector<std::string>& files, Compression compression) {
  return TextLineDataset(FileNames(files), compression);
}

std::shared_ptr<const FileFormat> ReadTextLineFormat(DescriptionReader& in) {
  return MakeLineFormat(static_cast<Compression>(in.Int(0, 2)));
}

}  // namespace cohort::data
