// Parses JSON with errors that say where the mistake is. Internal: includes nlohmann/json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace cohort::cluster_internal {

// Returns the parsed text. Throws InvalidArgumentError, which begins with "[source] ", if the text is not JSON (with
// line, column, and a mark below the place), if an object has a key twice, or if more than 32 lists and objects are in
// one another.
nlohmann::json ParseJson(std::string_view text, std::string_view source);

// Returns "a string", "a list", ... for error messages.
std::string JsonKind(const nlohmann::json& value);
// Returns the value as JSON, cut to about 60 characters.
std::string JsonExcerpt(const nlohmann::json& value);

}  // namespace cohort::cluster_internal
