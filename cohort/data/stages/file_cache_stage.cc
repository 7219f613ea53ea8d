// Cache in a file, `<filename>.cache`. The file consists of records (core/record_io.h): a header, one record for each
// element, and the count; docs/formats.md has the bytes. CacheWriter writes a temporary file while it yields the
// input's elements, and renames the file at the end of the first complete pass. CacheReader reads a complete file.
#include <unistd.h>

#include <atomic>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/record_io.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/element_codec.h"
#include "cohort/data/stages/counted_iterator.h"
#include "cohort/data/stages/stages.h"

namespace cohort::data {
namespace {

constexpr char kMagic[] = "cohort.cache.1";

std::string HeaderOf(const DatasetNode& node) {
  WireWriter out;
  out.String(kMagic);
  out.String(node.input()->ToString());
  WriteSpec(node.spec(), &out);
  return out.Take();
}

// Several iterators may write at the same time, also in several processes. The file of the last one stays.
std::string TemporaryName(const std::string& path) {
  static std::atomic<int> counter{0};
  return StrCat(path, ".", getpid(), ".", counter++, ".partial");
}

class CacheWriter : public CountedIterator {
 public:
  CacheWriter(NodePtr node, StagePtr input, const std::string& path)
      : node_(std::move(node)), input_(std::move(input)), path_(path), temporary_(TemporaryName(path)) {}
  ~CacheWriter() override {
    if (!writer_) return;
    LogWarning("data", node_->ToString(), " was left after ", index_, " elements, before its end; ", temporary_,
               " is removed. Call Take before Cache, not after it");
    try {
      RemoveFile(temporary_);
    } catch (const Error&) {  // the destructor has no caller to report to
    }
  }
  bool Next(Element* out) override {
    if (ended_) return false;
    if (!writer_) node_->Guard([&] { Begin(); });
    if (!input_->Next(out)) {
      node_->Guard([&] { Publish(); });
      return false;
    }
    node_->Guard([&] {
      WireWriter record;
      WriteElement(*out, &record);
      writer_->Write(record.view());
    });
    ++index_;
    return true;
  }

 private:
  void Begin() {
    writer_.emplace(temporary_);
    writer_->Write(HeaderOf(*node_));
  }
  void Publish() {
    WireWriter count;
    count.Varint(index_);
    writer_->Write(count.view());
    writer_->Close();
    RenameFile(temporary_, path_);
    writer_.reset();
    ended_ = true;
    SyncDirectory(DirectoryOf(path_));
  }

  const NodePtr node_;
  const StagePtr input_;
  const std::string path_, temporary_;
  std::optional<RecordWriter> writer_;
  bool ended_ = false;
};

class CacheReader : public StageIterator {
 public:
  CacheReader(NodePtr node, const std::string& path) : node_(std::move(node)), reader_(path) {
    node_->Guard([&] {
      if (ReadRecord() != HeaderOf(*node_)) {
        throw FailedPreconditionError(StrCat("[data] expected in ", path, " what ", node_->input()->ToString(),
                                             " yields; it was cached from something else; remove it"));
      }
      next_ = ReadRecord();
    });
  }
  bool Next(Element* out) override {
    return node_->Guard([&] {
      if (ended_) return false;
      std::string following;
      const RecordReader::Outcome outcome = reader_.Read(&following);
      if (outcome == RecordReader::Outcome::kTruncated) FailTruncated();
      if (outcome == RecordReader::Outcome::kEnd) {  // `next_` is the count
        CheckCount();
        ended_ = true;
        return false;
      }
      WireReader in(next_);
      *out = ReadElement(&in);
      next_ = std::move(following);
      ++index_;
      return true;
    });
  }
  void Save(WireWriter* out) override { out->Varint(index_); }
  void Restore(WireReader* in) override {
    const uint64_t index = in->Varint();
    node_->Guard([&] {
      for (; index_ < index; ++index_) next_ = ReadRecord();
    });
  }
  bool HasSmallPosition() const override { return true; }

 private:
  std::string ReadRecord() {
    std::string record;
    if (reader_.Read(&record) != RecordReader::Outcome::kRecord) FailTruncated();
    return record;
  }
  [[noreturn]] void FailTruncated() const {
    throw DataLossError(StrCat("[data] expected another record in the cache ", reader_.path(), " at offset ",
                               reader_.offset(), "; it ends there; remove it"));
  }
  void CheckCount() {
    WireReader in(next_);
    const uint64_t count = in.Varint();
    if (count == index_ && in.AtEnd()) return;
    throw DataLossError(
        StrCat("[data] expected ", count, " elements in the cache ", reader_.path(), "; got ", index_, "; remove it"));
  }

  const NodePtr node_;
  RecordReader reader_;
  std::string next_;  // a record ahead, since the last one is the count
  bool ended_ = false;
  uint64_t index_ = 0;
};

class FileCacheNode : public DatasetNode {
 public:
  FileCacheNode(NodePtr input, const std::string& filename)
      : DatasetNode({input}, input->spec()), filename_(filename) {}
  std::string kind() const override { return "Cache"; }
  std::string Parameters() const override { return filename_; }
  int64_t Cardinality() const override { return input()->Cardinality(); }
  void Write(DescriptionWriter* out) const override { out->String(filename_); }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override { return MakeFileCache(inputs.at(0), filename_); }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    const std::string path = filename_ + ".cache";
    if (FileExists(path)) return std::make_unique<CacheReader>(shared_from_this(), path);
    IteratorContext first = context;
    first.epoch = 0;
    return std::make_unique<CacheWriter>(shared_from_this(), input()->MakeIterator(first), path);
  }

 private:
  const std::string filename_;
};

}  // namespace

NodePtr MakeFileCache(NodePtr input, const std::string& filename) {
  return std::make_shared<FileCacheNode>(std::move(input), filename);
}

}  // namespace cohort::data
