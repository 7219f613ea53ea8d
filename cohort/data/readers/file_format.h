// FileFormat: how a file stores the elements of a dataset. MakeReader makes the stage that reads one file after another
// in a format.
#pragma once

#include <memory>
#include <string>

#include "cohort/data/stages/stage.h"

namespace cohort::data {

// Reads one open file. Owned by the stage's iterator. Not thread-safe.
class FileReader {
 public:
  virtual ~FileReader() = default;
  // Replaces *out by the next element. Returns false at the end of the file. If it throws InvalidArgumentError, the
  // next call continues after the wrong element; after other errors the file cannot be read further.
  virtual bool Next(Element* out) = 0;
  // Writes the offset of the next element in the unpacked file, and whatever else Restore needs.
  virtual void Save(WireWriter* out) const = 0;
  // Requires: the reader is new.
  virtual void Restore(WireReader* in) = 0;
};

// A format with its parameters. Immutable and thread-safe. Owned by the stage.
class FileFormat {
 public:
  virtual ~FileFormat() = default;
  virtual std::string kind() const = 0;  // the name of the stage
  virtual std::string Parameters() const = 0;
  virtual const ElementSpec& spec() const = 0;
  virtual std::unique_ptr<FileReader> Open(const std::string& path) const = 0;
  virtual void Write(DescriptionWriter* out) const = 0;
};

// Returns a stage that yields the elements of the files that `files` names (string scalars). Throws
// InvalidArgumentError if `files` has another spec.
NodePtr MakeReader(NodePtr files, std::shared_ptr<const FileFormat> format);
// Returns true if MakeReader has made the stage, so that its input is file names.
bool IsReader(const DatasetNode& node);

// Each reads the parameters that the Write of the format has written.
class DescriptionReader;
std::shared_ptr<const FileFormat> ReadTextLineFormat(DescriptionReader& in);
std::shared_ptr<const FileFormat> ReadTFRecordFormat(DescriptionReader& in);
std::shared_ptr<const FileFormat> ReadCsvFormat(DescriptionReader& in);

}  // namespace cohort::data
