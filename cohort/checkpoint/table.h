// The file format of a checkpoint's index: LevelDB's sorted table. Keys have no sequence numbers. Tables are written
// without compression; blocks that are packed with Snappy can be read. See docs/formats.md.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cohort {

using TableEntries = std::vector<std::pair<std::string, std::string>>;

// Returns the bytes of a table. Requires: keys are strictly increasing, byte by byte.
std::string EncodeTable(const TableEntries& entries);

// Throws DataLossError that names `file_name` and the offset if the bytes are not one complete, undamaged table, or if
// its entries have more than 64 times the bytes of the file (and more than 64 MiB).
TableEntries DecodeTable(const std::string& bytes, const std::string& file_name);

}  // namespace cohort
