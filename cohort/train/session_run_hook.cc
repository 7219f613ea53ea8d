#include "cohort/train/session_run_hook.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <typeinfo>

namespace cohort::train {

std::string SessionRunHook::name() const {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status), &std::free);
  std::string full = status == 0 ? readable.get() : typeid(*this).name();
  const size_t scope = full.rfind("::");
  return scope == std::string::npos ? full : full.substr(scope + 2);
}

}  // namespace cohort::train
