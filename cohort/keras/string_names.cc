#include "cohort/keras/string_names.h"

#include <cctype>

#include "cohort/core/str_cat.h"

namespace cohort::keras {
namespace {

bool Upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool Lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }
char ToLower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

std::string SnakeCase(const std::string& class_name) {
  std::string snake;
  for (size_t i = 0; i < class_name.size(); ++i) {
    const char c = class_name[i];
    const bool after_lower = i > 0 && Lower(class_name[i - 1]);
    // The last capital of a run begins a word: "ABCThing" is "abc_thing".
    const bool word_begins = i > 0 && i + 1 < class_name.size() && class_name[i - 1] != '_' && Lower(class_name[i + 1]);
    if (Upper(c) && (after_lower || word_begins)) snake += '_';
    snake += ToLower(c);
  }
  return snake;
}

std::string LayerPlaces::Next(const std::string& class_name) {
  const std::string snake = SnakeCase(class_name);
  const int number = numbers_[snake]++;
  return StrCat("layers/", snake, number > 0 ? StrCat("_", number) : "");
}

}  // namespace cohort::keras
