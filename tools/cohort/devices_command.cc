#include <CLI/CLI.hpp>
#include <iostream>

#include "cohort/device/logical_devices.h"
#include "cohort/registration.h"
#include "tools/cohort/command.h"

namespace cohort::tools {

int DevicesCommand(const Arguments& arguments) {
  CLI::App app("Lists the devices of this machine that programs can use.", "cohort devices");
  app.set_help_flag("-h,--help", "Print this text");
  app.footer("The log, on stderr, says why a card is not listed.");
  if (const auto done = ParseFlags(&app, arguments.flags)) return *done;
  for (const config::PhysicalDevice& device : config::ListPhysicalDevices()) {
    const config::DeviceDetails details = config::GetDeviceDetails(device);
    std::cout << device.name;
    if (!details.device_name.empty()) std::cout << ": " << details.device_name;
    if (details.memory_bytes > 0) std::cout << ", " << (details.memory_bytes >> 20) << " MiB";
    if (details.compute_capability[0] > 0) {
      std::cout << ", compute capability " << details.compute_capability[0] << "." << details.compute_capability[1];
    }
    std::cout << "\n";
  }
  return 0;
}

}  // namespace cohort::tools
