// JSON with errors that a person can place. Internal: includes nlohmann/json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace cohort::cluster_internal {

// Throws InvalidArgumentError, its text starting with "[source] ", for text that is not JSON (line, column,
// an excerpt with a caret below the place) and for an object that has a key twice (TF_CONFIG with two
// "worker" lists).
nlohmann::json ParseJson(std::string_view text, std::string_view source);

// "a string", "a list", ... for errors.
std::string JsonKind(const nlohmann::json& value);
// The value as JSON, cut to some 60 characters.
std::string JsonExcerpt(const nlohmann::json& value);

}  // namespace cohort::cluster_internal
