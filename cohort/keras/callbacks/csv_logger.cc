#include <algorithm>
#include <cerrno>
#include <fstream>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/callbacks/monitor.h"

namespace cohort::keras {
namespace {

class CsvCallback final : public Callback {
 public:
  CsvCallback(std::string filename, std::string separator, bool append)
      : filename_(std::move(filename)), separator_(std::move(separator)), append_(append) {}

  void OnTrainBegin() override {
    if (!host().is_chief()) return;
    names_.clear();
    needs_header_ = !append_ || !FileExists(filename_) || ReadFile(filename_).empty();
    errno = 0;
    file_.open(filename_, append_ ? std::ios::app | std::ios::binary : std::ios::trunc | std::ios::binary);
    Check();
  }

  void OnEpochEnd(int epoch, Logs& logs) override {
    if (!host().is_chief()) return;
    if (names_.empty()) ChooseColumns(logs);
    std::vector<std::string> row = {std::to_string(epoch)};
    for (const std::string& name : names_) {
      const std::optional<double> value = FindLog(logs, name);
      row.push_back(value ? PythonNumber(*value) : "NA");
    }
    Write(row);
  }

  void OnTrainEnd(const Logs&) override { file_.close(); }

 private:
  // The columns of the first epoch, and those of a validation that may begin later.
  void ChooseColumns(const Logs& logs) {
    bool validates = false;
    for (const auto& [name, value] : logs) {
      names_.push_back(name);
      validates |= name.rfind("val_", 0) == 0;
    }
    std::sort(names_.begin(), names_.end());
    if (!validates) {
      const std::vector<std::string> trained = names_;
      for (const std::string& name : trained) names_.push_back("val_" + name);
    }
    if (!needs_header_) return;
    std::vector<std::string> header = {"epoch"};
    header.insert(header.end(), names_.begin(), names_.end());
    Write(header);
  }

  void Write(const std::vector<std::string>& cells) {
    errno = 0;
    file_ << StrJoin(cells, separator_.c_str()) << "\r\n" << std::flush;
    Check();
  }

  void Check() const {
    if (file_.good()) return;
    ThrowErrno(errno == 0 ? EIO : errno, StrCat("[keras/callbacks] CSVLogger cannot write '", filename_, "'"));
  }

  const std::string filename_;
  const std::string separator_;
  const bool append_;
  std::ofstream file_;
  bool needs_header_ = true;
  std::vector<std::string> names_;
};

}  // namespace

CallbackPtr CSVLogger(const std::string& filename, const std::string& separator, bool append) {
  return std::make_shared<CsvCallback>(filename, separator, append);
}

}  // namespace cohort::keras
