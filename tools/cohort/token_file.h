// TokenFile: the file by which the user of a launch can ask its tasks, although the launch has a token of its own.
#pragma once

#include <string>

namespace cohort::tools {

// A file with one line, the token, that only this user can read: launch-PID.token in $XDG_RUNTIME_DIR/cohort, or else
// in $XDG_CONFIG_HOME/cohort or ~/.config/cohort. The launcher owns it; the destructor removes it. The constructor also
// removes the files of launches that were killed.
class TokenFile {
 public:
  // If the token is "" or the file cannot be made, path() is "".
  explicit TokenFile(const std::string& token);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace cohort::tools
