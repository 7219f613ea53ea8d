// FileFormat: how the elements of a dataset stand in a file. The stage that reads one file after another is made of it.
#pragma once

#include <memory>
#include <string>

#include "cohort/data/stages/stage.h"

namespace cohort::data {

// One open file. Not thread-safe.
class FileReader {
 public:
  virtual ~FileReader() = default;
  virtual bool Next(Element* out) = 0;
  // Where the next element begins, in bytes of the unpacked file, and what else Seek needs.
  virtual void Save(WireWriter* out) const = 0;
  virtual void Restore(WireReader* in) = 0;
};

// Immutable, thread-safe.
class FileFormat {
 public:
  virtual ~FileFormat() = default;
  virtual std::string kind() const = 0;  // the stage's
  virtual std::string Parameters() const = 0;
  virtual const ElementSpec& spec() const = 0;
  virtual std::unique_ptr<FileReader> Open(const std::string& path) const = 0;
  virtual void Write(DescriptionWriter* out) const = 0;
};

// Elements of the files that `files` (string scalars) names. Throws InvalidArgumentError for another spec.
NodePtr MakeReader(NodePtr files, std::shared_ptr<const FileFormat> format);
// Whether MakeReader has made the stage: its input is names of files.
bool IsReader(const DatasetNode& node);

// By the name of a FileFormat's kind and what its Write wrote.
class DescriptionReader;
std::shared_ptr<const FileFormat> ReadTextLineFormat(DescriptionReader& in);
std::shared_ptr<const FileFormat> ReadTFRecordFormat(DescriptionReader& in);
std::shared_ptr<const FileFormat> ReadCsvFormat(DescriptionReader& in);

}  // namespace cohort::data
