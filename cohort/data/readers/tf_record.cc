#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/record_io.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/readers/buffered_input.h"
#include "cohort/data/readers/readers.h"
#include "cohort/data/readers/string_format.h"

namespace cohort::data {
namespace {

constexpr size_t kPieceBytes = 16 << 20;  // read in pieces, because a damaged length may be huge

class PayloadReader : public FileReader {
 public:
  PayloadReader(const std::string& path, Compression compression) : file_(path, compression) {}
  bool Next(Element* out) override {
    const int64_t start = file_.offset();
    char header[kRecordHeaderBytes];
    const size_t count = file_.Read(header);
    if (count == 0) return false;
    if (count < sizeof(header)) FailTruncated(start);
    const uint64_t length = DecodeRecordLength({header, sizeof(header)}, file_.path(), start);
    if (length > std::numeric_limits<int64_t>::max() - kRecordFooterBytes) FailTruncated(start);
    file_.CheckValueBytes(length, "a record", start);
    std::string payload;
    for (uint64_t left = length + kRecordFooterBytes; left > 0;) {
      const size_t at = payload.size();
      const auto piece = static_cast<size_t>(std::min<uint64_t>(left, kPieceBytes));
      payload.resize(at + piece);
      if (file_.Read({payload.data() + at, piece}) < piece) FailTruncated(start);
      left -= piece;
    }
    CheckRecordPayload(payload, file_.path(), start);
    payload.resize(length);
    out->assign(1, Tensor::Scalar(std::move(payload)));
    return true;
  }
  void Save(WireWriter* out) const override { out->Varint(static_cast<uint64_t>(file_.offset())); }
  void Restore(WireReader* in) override { file_.SkipTo(static_cast<int64_t>(in->Varint(uint64_t{1} << 62))); }

 private:
  [[noreturn]] void FailTruncated(int64_t start) const {
    throw DataLossError(StrCat("[data] expected a whole record at offset ", start, " of ", file_.path(),
                               "; the file ends inside of it"));
  }
  BufferedInput file_;
};

std::shared_ptr<const FileFormat> MakeRecordFormat(Compression compression) {
  return std::make_shared<StringFormat<PayloadReader>>("TFRecord", compression);
}

}  // namespace

Dataset TFRecordDataset(const Dataset& files, Compression compression) {
  return Dataset(MakeReader(files.node(), MakeRecordFormat(compression)));
}
Dataset TFRecordDataset(const std::vector<std::string>& files, Compression compression) {
  return TFRecordDataset(FileNames(files), compression);
}

std::shared_ptr<const FileFormat> ReadTFRecordFormat(DescriptionReader& in) {
  return MakeRecordFormat(static_cast<Compression>(in.Int(0, 2)));
}

}  // namespace cohort::data
