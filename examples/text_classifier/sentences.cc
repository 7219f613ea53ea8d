#include "examples/text_classifier/sentences.h"

#include <array>
#include <random>
#include <string>
#include <vector>

namespace examples {
namespace {

using Words = std::vector<std::string>;

const Words kSubjects = {"The film",   "This movie", "Her new film", "The story",
                         "The acting", "The ending", "The music"};
const Words kTimes = {"last night", "again", "on a plane", "with my family", "in a small cinema", "for the first time"};
const std::array<Words, 2> kVerdicts = {
    Words{"was boring", "felt far too long", "was a waste of time", "made no sense", "was badly written", "was awful"},
    Words{"was wonderful", "moved me", "was great fun", "kept me awake", "was beautifully made", "was brilliant"}};
// "not" turns a verdict around, so that a single word does not tell all.
const std::array<Words, 2> kTurned = {Words{"was not funny at all", "did not move me"},
                                      Words{"was not boring at all", "did not feel too long"}};
const std::array<Words, 2> kAdvices = {Words{"Avoid it", "I walked out", "Never again", "I want my money back"},
                                       Words{"See it", "I cried", "I will watch it twice", "Ten out of ten"}};

}  // namespace

Sentences MakeSentences(int count, int seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const auto one_of = [&](const Words& words) { return words[below(words.size())]; };
  Sentences made = {cohort::Tensor(cohort::DType::kString, cohort::Shape{count}),
                    cohort::Tensor(cohort::DType::kInt32, cohort::Shape{count})};
  for (int i = 0; i < count; ++i) {
    const size_t mood = below(2);
    std::string text = one_of(kSubjects) + " " + one_of(below(4) == 0 ? kTurned[mood] : kVerdicts[mood]);
    if (below(2) == 0) text += ", I saw it " + one_of(kTimes);
    text += below(3) == 0 ? "!" : ".";
    if (below(2) == 0) text += " " + one_of(kAdvices[mood]) + "!";
    made.texts.data<std::string>()[i] = text;
    made.labels.data<int32_t>()[i] = static_cast<int32_t>(below(50) == 0 ? 1 - mood : mood);
  }
  return made;
}

}  // namespace examples
