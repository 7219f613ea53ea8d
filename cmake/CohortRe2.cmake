# Finds RE2, the regular expressions of the ops on strings, as the target cohort_re2. Debian has no config file for it.
# This file is installed with the package, whose config file includes it, too.
find_path(COHORT_RE2_INCLUDE_DIR re2/re2.h)
find_library(COHORT_RE2_LIBRARY re2)
mark_as_advanced(COHORT_RE2_INCLUDE_DIR COHORT_RE2_LIBRARY)
if(NOT COHORT_RE2_INCLUDE_DIR OR NOT COHORT_RE2_LIBRARY)
  message(FATAL_ERROR "RE2 (re2/re2.h, libre2) was not found; on Debian: apt-get install libre2-dev")
endif()
if(NOT TARGET cohort_re2)
  add_library(cohort_re2 INTERFACE IMPORTED GLOBAL)
  target_include_directories(cohort_re2 SYSTEM INTERFACE ${COHORT_RE2_INCLUDE_DIR})
  target_link_libraries(cohort_re2 INTERFACE ${COHORT_RE2_LIBRARY})
endif()
