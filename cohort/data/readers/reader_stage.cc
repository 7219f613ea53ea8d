// The stage that reads one file after another.
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/readers/file_format.h"
#include "cohort/data/readers/readers.h"
#include "cohort/data/stages/stages.h"
#include "cohort/data/stages/unary_stage.h"

namespace cohort::data {
namespace {

class ReaderIterator : public UnaryIterator {
 public:
  ReaderIterator(NodePtr node, StagePtr files, const FileFormat& format)
      : UnaryIterator(std::move(node), std::move(files)), format_(format) {}
  bool Next(Element* out) override {
    for (;;) {
      if (reader_ != nullptr && node_->Guard([&] { return ReadOne(out); })) return true;
      reader_.reset();
      Element name;
      if (!input_->Next(&name)) return false;
      node_->Guard([&] {
        path_ = name.at(0).scalar<std::string>();
        reader_ = format_.Open(path_);
      });
    }
  }
  void Save(WireWriter* out) override {
    out->Varint(reader_ != nullptr ? 1 : 0);
    if (reader_ != nullptr) {
      out->String(path_);
      reader_->Save(out);
    }
    input_->Save(out);
  }
  void Restore(WireReader* in) override {
    if (in->Varint(1) != 0) {
      path_ = in->String();
      node_->Guard([&] {
        reader_ = format_.Open(path_);
        reader_->Restore(in);
      });
    }
    input_->Restore(in);
  }

 private:
  bool ReadOne(Element* out) {
    try {
      return reader_->Next(out);
    } catch (const InvalidArgumentError&) {  // one element is wrong; the file continues after it
      throw;
    } catch (...) {
      reader_.reset();
      throw;
    }
  }

  const FileFormat& format_;  // the node's
  std::string path_;
  std::unique_ptr<FileReader> reader_;
};

class ReaderNode : public DatasetNode {
 public:
  ReaderNode(NodePtr files, std::shared_ptr<const FileFormat> format)
      : DatasetNode({std::move(files)}, format->spec()), format_(std::move(format)) {}
  std::string kind() const override { return format_->kind(); }
  std::string Parameters() const override { return format_->Parameters(); }
  int64_t Cardinality() const override { return input()->Cardinality() == 0 ? 0 : kUnknownCardinality; }
  void Write(DescriptionWriter* out) const override { format_->Write(out); }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override { return MakeReader(inputs.at(0), format_); }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    return std::make_unique<ReaderIterator>(shared_from_this(), input()->MakeIterator(context), *format_);
  }

 private:
  const std::shared_ptr<const FileFormat> format_;
};

}  // namespace

NodePtr MakeReader(NodePtr files, std::shared_ptr<const FileFormat> format) {
  const ElementSpec expected{{DType::kString, Shape()}};
  if (!IsCompatible(files->spec(), expected)) {
    throw InvalidArgumentError(StrCat("[data] expected names of files, ", ToString(expected), ", for ", format->kind(),
                                      "; got ", ToString(files->spec()), " from ", files->ToString()));
  }
  return std::make_shared<ReaderNode>(std::move(files), std::move(format));
}

bool IsReader(const DatasetNode& node) { return dynamic_cast<const ReaderNode*>(&node) != nullptr; }

}  // namespace cohort::data
