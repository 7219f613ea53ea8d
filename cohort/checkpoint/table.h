// The sorted string table that a checkpoint's index file is: LevelDB's table format, with the keys as they
// are (no sequence numbers) and no compression when written. Snappy blocks are read. See docs/formats.md.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cohort {

using TableEntries = std::vector<std::pair<std::string, std::string>>;

// The bytes of a table. Keys are strictly increasing (bytewise), which the caller vouches for.
std::string EncodeTable(const TableEntries& entries);

// Throws DataLossError that names `file_name` and the place for bytes that are no whole, sound table.
TableEntries DecodeTable(const std::string& bytes, const std::string& file_name);

}  // namespace cohort
