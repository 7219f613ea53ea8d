# Finds libmicrohttpd, which serves the metrics of a task, as the target cohort_microhttpd. Debian has no config file for
# it. This file is installed with the package, whose config file includes it, too.
find_path(COHORT_MICROHTTPD_INCLUDE_DIR microhttpd.h)
find_library(COHORT_MICROHTTPD_LIBRARY microhttpd)
mark_as_advanced(COHORT_MICROHTTPD_INCLUDE_DIR COHORT_MICROHTTPD_LIBRARY)
if(NOT COHORT_MICROHTTPD_INCLUDE_DIR OR NOT COHORT_MICROHTTPD_LIBRARY)
  message(FATAL_ERROR "libmicrohttpd (microhttpd.h, libmicrohttpd) was not found; on Debian: apt-get install "
    "libmicrohttpd-dev")
endif()
if(NOT TARGET cohort_microhttpd)
  add_library(cohort_microhttpd INTERFACE IMPORTED GLOBAL)
  target_include_directories(cohort_microhttpd SYSTEM INTERFACE ${COHORT_MICROHTTPD_INCLUDE_DIR})
  target_link_libraries(cohort_microhttpd INTERFACE ${COHORT_MICROHTTPD_LIBRARY})
endif()
