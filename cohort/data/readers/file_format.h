// FileFormat: how a file stores the elements of a dataset. MakeReader makes the stage that reads one file after another
// in a format.
#pragma once

#include <memory>
#include <string>

#include "cohort/data/stages/stage.h"

namespace cohort::data {

// Reads one open file. The iterator of the reader's stage owns it; the destructor closes the file. Not thread-safe.
class FileReader {
 public:
  virtual ~FileReader() = default;
  // Replaces *out by the next element. Returns false at the end of the file. If it throws InvalidArgumentError, the
  // next call continues after the wrong element; after any other error this reader cannot be used further.
  virtual bool Next(Element* out) = 0;
  // Writes the offset of the next element in the unpacked file, and all other data that Restore needs.
  virtual void Save(WireWriter* out) const = 0;
  // Goes to a saved position in the same file. Requires: Open has just made the reader.
  virtual void Restore(WireReader* in) = 0;
};

// A format with its parameters. Stages share ownership of it through shared_ptr. Immutable and thread-safe.
class FileFormat {
 public:
  virtual ~FileFormat() = default;
  virtual std::string kind() const = 0;        // the name of the stage
  virtual std::string Parameters() const = 0;  // see DatasetNode::Parameters
  virtual const ElementSpec& spec() const = 0;
  // Opens a file. Throws the errors of core/file.h.
  virtual std::unique_ptr<FileReader> Open(const std::string& path) const = 0;
  // Writes the parameters for the Read function of the format (below).
  virtual void Write(DescriptionWriter* out) const = 0;
};

// Returns a stage that yields the elements of the files that `files` names (string scalars). Throws
// InvalidArgumentError if `files` has another spec.
NodePtr MakeReader(NodePtr files, std::shared_ptr<const FileFormat> format);
// Returns true if MakeReader has made the stage, so that its input is file names.
bool IsReader(const DatasetNode& node);

// Each of these functions reads the parameters that FileFormat::Write has written, and returns the format.
class DescriptionReader;
std::shared_ptr<const FileFormat> ReadTextLineFormat(DescriptionReader& in);
std::shared_ptr<const FileFormat> ReadTFRecordFormat(DescriptionReader& in);
std::shared_ptr<const FileFormat> ReadCsvFormat(DescriptionReader& in);

}  // namespace cohort::data
