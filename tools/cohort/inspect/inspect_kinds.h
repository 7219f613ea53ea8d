// One function for each kind of file that `cohort inspect` knows. Each function prints to `out`, and problems to `err`.
// It returns whether there were no problems. It throws Error if the file cannot be opened.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tools/cohort/inspect/inspect.h"

namespace cohort::tools {

bool InspectCheckpoint(const std::string& prefix, const InspectOptions& options, std::ostream& out, std::ostream& err);
bool InspectEvents(const std::string& path, const InspectOptions& options, std::ostream& out, std::ostream& err);
bool InspectRecords(const std::string& path, const InspectOptions& options, std::ostream& out, std::ostream& err);

// `dir` is the folder of a SavedModel. Lists its signatures and its values.
bool InspectSavedModel(const std::string& dir, const InspectOptions& options, std::ostream& out, std::ostream& err);

// Collects rows of cells, and prints them in columns.
class TextTable {
 public:
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Adds a line that is not divided into columns.
  void AddLine(std::string text) { rows_.push_back({std::move(text)}); }
  void Print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Returns `text` without bytes that would disturb a terminal.
std::string Printable(const std::string& text);

}  // namespace cohort::tools
