#include "examples/recommender/clicks.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

namespace examples {
namespace {

using namespace cohort;

constexpr int kTrainFiles = 4;
constexpr int kUsers = 300;
constexpr int kFilmsOfAKind = 50;
constexpr const char* kKinds[] = {"comedy", "drama", "horror", "western", "musical"};
constexpr const char* kCities[] = {"Ankara", "Berlin", "Beijing", "Bogota", "Lagos", "Oslo"};

std::string Film(size_t kind, int number) { return std::string(kKinds[kind]) + " " + std::to_string(number); }

// What a user likes, and where and how old the user is, follows from the number of the user.
struct User {
  explicit User(int64_t number)
      : kind(static_cast<size_t>(number * 7 % 5)),
        city(kCities[number * 11 % 6]),
        age(static_cast<int>(15 + number * 13 % 60)) {}
  size_t kind;
  const char* city;
  int age;
};

void WriteFile(const std::string& path, unsigned seed) {
  std::mt19937 bits(seed);
  const auto below = [&](int n) { return static_cast<int>(bits() % static_cast<unsigned>(n)); };
  const std::string unfinished = path + ".part";
  std::ofstream out(unfinished);
  out << "user,city,item,watched_1,watched_2,watched_3,watched_4,watched_5,age,clicked\n";
  for (int64_t line = 0; line < kClicksOfAFile; ++line) {
    const int64_t number = below(kUsers);
    const User user(number);
    const auto kind = static_cast<size_t>(below(5));
    out << number << ',' << user.city << ',' << Film(kind, below(kFilmsOfAKind));
    const int seen = below(kWatched + 1);
    for (int i = 0; i < kWatched; ++i) {
      const size_t seen_kind = below(10) < 8 ? user.kind : static_cast<size_t>(below(5));
      out << ',' << (i < seen ? Film(seen_kind, below(kFilmsOfAKind)) : std::string());
    }
    // Old users click less often, whatever the film.
    const double chance = (kind == user.kind ? 0.85 : 0.1) * (user.age > 50 ? 0.7 : 1.0);
    out << ',' << user.age << ',' << (below(1000) < 1000 * chance ? 1 : 0) << '\n';
  }
  out.close();
  if (!out) throw InternalError("[recommender] cannot write " + unfinished);
  std::filesystem::rename(unfinished, path);
}

}  // namespace

ClickFiles MakeClicks(const std::string& folder, bool writes) {
  ClickFiles files;
  for (int i = 0; i < kTrainFiles; ++i) files.train.push_back(folder + "/clicks-" + std::to_string(i) + ".csv");
  files.test = folder + "/clicks-test.csv";
  if (!writes) return files;
  std::filesystem::create_directories(folder);
  unsigned seed = 1;
  for (const std::string& path : files.train) {
    if (!std::filesystem::exists(path)) WriteFile(path, seed);
    ++seed;
  }
  if (!std::filesystem::exists(files.test)) WriteFile(files.test, seed);
  return files;
}

std::vector<std::string> Films() {
  std::vector<std::string> films;
  for (size_t kind = 0; kind < 5; ++kind) {
    for (int number = 0; number < kFilmsOfAKind; ++number) films.push_back(Film(kind, number));
  }
  return films;
}

data::Dataset ReadClicks(const std::vector<std::string>& files) {
  const Tensor none = Tensor::Scalar("");
  std::vector<data::CsvColumn> columns = {{DType::kInt64}, {DType::kString}, {DType::kString}};
  for (int64_t i = 0; i < kWatched; ++i) columns.push_back({DType::kString, none});
  columns.push_back({DType::kFloat32});
  columns.push_back({DType::kFloat32});
  const auto example = [](Graph&, const std::vector<Output>& line) {
    const auto vector = [](const Output& scalar) { return ops::Reshape(scalar, {1}); };
    const std::vector<Output> watched(line.begin() + 3, line.begin() + 3 + kWatched);
    return std::vector<Output>{
        vector(line[0]),           vector(line[1]), vector(line[2]), ops::Pack(watched), vector(line[3 + kWatched]),
        vector(line[4 + kWatched])};
  };
  return data::CsvDataset(files, columns, {.header = true}).Map(example);
}

}  // namespace examples
