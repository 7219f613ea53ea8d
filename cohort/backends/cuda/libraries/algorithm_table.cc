#include "cohort/backends/cuda/libraries/algorithm_table.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

constexpr std::string_view kBetween = " | ";  // between the fields of a line

// Returns the words as hexadecimal numbers with colons between them. Zeros at the end are left out.
std::string TextOf(const Algorithm& algorithm) {
  size_t count = algorithm.words.size();
  while (count > 1 && algorithm.words[count - 1] == 0) --count;
  std::ostringstream text;
  text << std::hex;
  for (size_t i = 0; i < count; ++i) text << (i == 0 ? "" : ":") << algorithm.words[i];
  return text.str();
}

std::vector<std::string_view> Split(std::string_view text, std::string_view between) {
  std::vector<std::string_view> parts;
  for (size_t at = text.find(between); at != std::string_view::npos; at = text.find(between)) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + between.size());
  }
  parts.push_back(text);
  return parts;
}

// Returns nothing if the text is not what TextOf returns.
std::optional<Algorithm> AlgorithmOf(std::string_view text) {
  Algorithm algorithm;
  const std::vector<std::string_view> words = Split(text, ":");
  if (words.size() > algorithm.words.size()) return std::nullopt;
  for (size_t i = 0; i < words.size(); ++i) {
    const char* const end = words[i].data() + words[i].size();
    const auto result = std::from_chars(words[i].data(), end, algorithm.words[i], 16);
    if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  }
  return algorithm;
}

[[noreturn]] void ThrowBad(const std::string& where, std::string_view expected, std::string_view line) {
  throw InvalidArgumentError(StrCat("[cuda/libraries] expected ", expected, " in a table of algorithms; got '", line,
                                    "'; at ", where, ": mend or remove the line, or let the table be written anew"));
}

}  // namespace

std::string AlgorithmLine(const AlgorithmKey& key, const Algorithm& algorithm) {
  return StrCat(key.card, kBetween, key.library.name, " ", key.library.version, kBetween, key.call, kBetween,
                TextOf(algorithm), "\n");
}

AlgorithmTable::AlgorithmTable(const std::string& name, std::string_view text) {
  int number = 0;
  bool begun = false;
  for (std::string_view line : Split(text, "\n")) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const std::string where = StrCat(name, ":", number);
    if (line == kAlgorithmTableBegin) {
      begun = true;  // several processes that begin one file at a time may each write this line
    } else if (begun) {
      AddLine(where, line);
    } else {
      ThrowBad(where, StrCat("the line '", kAlgorithmTableBegin, "' before all others"), line);
    }
  }
}

void AlgorithmTable::AddLine(const std::string& where, std::string_view line) {
  const std::vector<std::string_view> fields = Split(line, kBetween);
  const std::vector<std::string_view> library = Split(fields.size() == 4 ? fields[1] : "", " ");
  const bool is_entry = fields.size() == 4 && library.size() == 2 && !fields[0].empty() && !fields[2].empty();
  if (!is_entry) ThrowBad(where, "CARD | LIBRARY VERSION | CALL | ALGORITHM", line);
  const std::optional<Algorithm> algorithm = AlgorithmOf(fields[3]);
  if (!algorithm) ThrowBad(where, "up to 8 hexadecimal numbers with colons between them at the end of a line", line);
  const AlgorithmKey key = {
      std::string(fields[0]), {std::string(library[0]), std::string(library[1])}, std::string(fields[2])};
  Add(key, {*algorithm, key.library.version, where});
}

void AlgorithmTable::Add(const AlgorithmKey& key, Entry entry) {
  std::map<std::string, Entry>& versions = entries_[{key.card, key.library.name, key.call}];
  if (versions.insert_or_assign(key.library.version, std::move(entry)).second) ++size_;
}

const AlgorithmTable::Entry* AlgorithmTable::Find(const AlgorithmKey& key) const {
  const auto versions = entries_.find({key.card, key.library.name, key.call});
  if (versions == entries_.end()) return nullptr;
  const auto found = versions->second.find(key.library.version);
  return found == versions->second.end() ? nullptr : &found->second;
}

const AlgorithmTable::Entry* AlgorithmTable::FindOtherVersion(const AlgorithmKey& key) const {
  const auto versions = entries_.find({key.card, key.library.name, key.call});
  if (versions == entries_.end()) return nullptr;
  for (const auto& [version, entry] : versions->second) {
    if (version != key.library.version) return &entry;
  }
  return nullptr;
}

}  // namespace cohort::cuda
