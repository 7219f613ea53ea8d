// The kinds of files that inspect.h tells apart. Each function prints to `out`, problems to `err`, and
// returns whether there were none; what cannot be opened at all is thrown (cohort::Error).
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tools/cohort/inspect.h"

namespace cohort::tools {

bool InspectCheckpoint(const std::string& prefix, const InspectOptions& options, std::ostream& out, std::ostream& err);
bool InspectEvents(const std::string& path, const InspectOptions& options, std::ostream& out, std::ostream& err);
bool InspectRecords(const std::string& path, const InspectOptions& options, std::ostream& out, std::ostream& err);

// Lines of cells, printed in columns.
class TextTable {
 public:
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // A line that is not divided into columns.
  void AddLine(std::string text) { rows_.push_back({std::move(text)}); }
  void Print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Without bytes that would disturb a terminal.
std::string Printable(const std::string& text);

}  // namespace cohort::tools
