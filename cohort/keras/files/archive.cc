// ModelArchive, by libzip, which works on bytes in memory. Pack makes the archive of three members. Reader checks the
// size of each member before it reads the member, because a damaged file may claim any size.
#include "cohort/keras/files/archive.h"

#include <zip.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"

namespace cohort::keras {
namespace {

using Json = nlohmann::json;

constexpr char kMetadata[] = "metadata.json";
constexpr char kConfig[] = "config.json";
constexpr char kWeights[] = "model.weights.h5";
constexpr std::string_view kAssets = "assets/";
constexpr std::string_view kVocabulary = "/vocabulary.txt";
constexpr int kMajorVersion = 3;
// Deflate cannot compress by more. A member that claims a larger ratio is damaged.
constexpr uint64_t kLargestRatio = 1100;
// The texts are small. The weights are bounded by the size of the file, because weights hardly become smaller.
constexpr uint64_t kMostMetadata = uint64_t{1} << 20;
constexpr uint64_t kMostConfig = uint64_t{64} << 20;  // if the file is small; vocabularies make it large
constexpr uint64_t kMostConfigPerByte = 16;
constexpr uint64_t kMostWeights = uint64_t{256} << 20;  // if the file is small
constexpr uint64_t kMostWeightsPerByte = 64;

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
template <typename T>
using Owned = std::unique_ptr<T, Discard>;

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d@%H:%M:%S", &parts);
  return text;
}

// Returns a source for libzip that reads `bytes`, which the caller keeps.
Owned<zip_source_t> SourceOf(std::string_view bytes) {
  zip_error_t error;
  zip_error_init(&error);
  Owned<zip_source_t> source(zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error));
  if (source != nullptr) return source;
  throw ResourceExhaustedError(StrCat("[keras/archive] cannot hold an archive: ", zip_error_strerror(&error)));
}

void AddMember(zip_t* archive, const char* name, std::string_view bytes) {
  Owned<zip_source_t> source = SourceOf(bytes);
  const zip_int64_t index = zip_file_add(archive, name, source.get(), ZIP_FL_ENC_UTF_8);
  if (index < 0) throw InternalError(StrCat("[keras/archive] cannot add ", name, ": ", zip_strerror(archive)));
  static_cast<void>(source.release());  // it belongs to the archive now
  // It is not compressed, as in Keras: weights hardly become smaller.
  zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
}

// The bytes of an archive with these members.
std::string Pack(const std::array<std::pair<const char*, std::string_view>, 3>& members) {
  zip_error_t error;
  zip_error_init(&error);
  Owned<zip_source_t> source = SourceOf({});
  zip_source_keep(source.get());
  zip_t* opened = zip_open_from_source(source.get(), ZIP_TRUNCATE, &error);
  if (opened == nullptr) {
    zip_source_free(source.get());
    throw InternalError(StrCat("[keras/archive] cannot begin an archive: ", zip_error_strerror(&error)));
  }
  Owned<zip_t> archive(opened);
  for (const auto& [name, bytes] : members) AddMember(archive.get(), name, bytes);
  if (zip_close(archive.get()) != 0) {
    throw InternalError(StrCat("[keras/archive] cannot write an archive: ", zip_strerror(archive.get())));
  }
  static_cast<void>(archive.release());
  zip_stat_t stat;
  if (zip_source_stat(source.get(), &stat) != 0 || zip_source_open(source.get()) != 0) {
    throw InternalError("[keras/archive] cannot read back an archive");
  }
  std::string bytes(stat.size, '\0');
  const zip_int64_t got = zip_source_read(source.get(), bytes.data(), bytes.size());
  zip_source_close(source.get());
  if (got != static_cast<zip_int64_t>(bytes.size())) {
    throw InternalError("[keras/archive] cannot read back an archive");
  }
  return bytes;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), bytes_(ReadFile(path)) {
    // The library reads an empty file as an archive without members.
    if (bytes_.empty()) FailArchive("it is empty");
    zip_error_t error;
    zip_error_init(&error);
    Owned<zip_source_t> source = SourceOf(bytes_);
    archive_.reset(zip_open_from_source(source.get(), ZIP_RDONLY | ZIP_CHECKCONS, &error));
    if (archive_ == nullptr) FailArchive(zip_error_strerror(&error));
    static_cast<void>(source.release());
  }

  // Returns the bytes of a member. Throws DataLossError if it has more than `most` bytes.
  std::string Member(const char* name, uint64_t most) const {
    zip_stat_t stat;
    if (zip_stat(archive_.get(), name, 0, &stat) != 0) {
      throw InvalidArgumentError(StrCat("[keras/archive] expected a .keras file with the members ", kMetadata, ", ",
                                        kConfig, " and ", kWeights, "; '", path_, "' has no ", name));
    }
    // Other methods may ask for much memory before the first byte.
    const bool is_known = (stat.valid & ZIP_STAT_COMP_METHOD) != 0 &&
                          (stat.comp_method == ZIP_CM_STORE || stat.comp_method == ZIP_CM_DEFLATE);
    if (!is_known) Fail(name, "it is neither stored nor packed with deflate");
    if (stat.size > stat.comp_size * kLargestRatio + 1024) Fail(name, "its size is not to be believed");
    if (stat.size > most) Fail(name, "it is larger than such a member can be");
    const Owned<zip_file_t> file(zip_fopen(archive_.get(), name, 0));
    if (file == nullptr) Fail(name, zip_strerror(archive_.get()));
    std::string bytes(stat.size, '\0');
    size_t done = 0;
    while (done < bytes.size()) {
      const zip_int64_t got = zip_fread(file.get(), bytes.data() + done, bytes.size() - done);
      if (got <= 0) Fail(name, zip_error_strerror(zip_file_get_error(file.get())));
      done += static_cast<size_t>(got);
    }
    // Reads once more at the end, because the library then compares the checksum.
    char rest;
    if (zip_fread(file.get(), &rest, 1) != 0) Fail(name, zip_error_strerror(zip_file_get_error(file.get())));
    return bytes;
  }

  // Returns the vocabularies below assets/, by their paths there. Throws DataLossError if all together have more bytes
  // than texts can have.
  std::map<std::string, std::string> Assets() const {
    std::map<std::string, std::string> assets;
    uint64_t left = MostConfig();
    const zip_int64_t members = zip_get_num_entries(archive_.get(), 0);
    for (zip_int64_t i = 0; i < members; ++i) {
      const char* name = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(i), 0);
      const std::string_view path = name == nullptr ? std::string_view() : std::string_view(name);
      if (!path.starts_with(kAssets) || !path.ends_with(kVocabulary)) continue;
      std::string& text = assets[std::string(path.substr(kAssets.size()))] = Member(name, left);
      left -= text.size();
    }
    return assets;
  }

  uint64_t MostConfig() const { return std::max<uint64_t>(kMostConfig, bytes_.size() * kMostConfigPerByte); }
  uint64_t MostWeights() const { return std::max<uint64_t>(kMostWeights, bytes_.size() * kMostWeightsPerByte); }

 private:
  [[noreturn]] void FailArchive(const char* what) const {
    throw DataLossError(StrCat("[keras/archive] expected a .keras file (a zip archive); got '", path_, "' of ",
                               bytes_.size(), " bytes, which is none, or truncated or damaged: ", what));
  }
  [[noreturn]] void Fail(const char* name, const char* what) const {
    throw DataLossError(
        StrCat("[keras/archive] expected to read ", name, " of '", path_, "', which is damaged: ", what));
  }

  const std::string path_;
  const std::string bytes_;
  Owned<zip_t> archive_;
};

// The library reads and prints values in values by recursion, so their depth is bounded while it reads.
Json ParseMetadata(const std::string& text, const std::string& path) {
  static constexpr int kDeepest = 16;
  const auto check = [&path](int depth, Json::parse_event_t, const Json&) {
    if (depth <= kDeepest) return true;
    throw DataLossError(StrCat("[keras/archive] expected ", kMetadata, " with values in at most ", kDeepest,
                               " others in '", path, "'; got more"));
  };
  return Json::parse(text, check, false);
}

}  // namespace

void WriteModelArchive(const std::string& path, const ModelArchive& archive) {
  const Json metadata = {{"keras_version", archive.keras_version},
                         {"date_saved", archive.date_saved.empty() ? Now() : archive.date_saved}};
  const std::string metadata_text = metadata.dump();
  WriteFileAtomically(path,
                      Pack({{{kMetadata, metadata_text}, {kConfig, archive.config}, {kWeights, archive.weights}}}));
}

ModelArchive ReadModelArchive(const std::string& path) {
  const Reader reader(path);
  const Json metadata = ParseMetadata(reader.Member(kMetadata, kMostMetadata), path);
  if (!metadata.is_object() || !metadata.contains("keras_version") || !metadata.at("keras_version").is_string()) {
    throw DataLossError(StrCat("[keras/archive] expected ", kMetadata, " with a keras_version in '", path, "'; got ",
                               metadata.is_discarded() ? "no JSON" : metadata.dump()));
  }
  ModelArchive archive;
  archive.keras_version = metadata.at("keras_version");
  if (metadata.contains("date_saved") && metadata.at("date_saved").is_string()) {
    archive.date_saved = metadata.at("date_saved");
  }
  if (std::atoi(archive.keras_version.c_str()) > kMajorVersion) {
    throw UnimplementedError(StrCat("[keras/archive] expected a file of Keras ", kMajorVersion, "; '", path,
                                    "' is of version ", archive.keras_version,
                                    "; save it with Keras 3, or use a later version of this library"));
  }
  archive.config = reader.Member(kConfig, reader.MostConfig());
  archive.weights = reader.Member(kWeights, reader.MostWeights());
  archive.assets = reader.Assets();
  return archive;
}

}  // namespace cohort::keras
