# Finds FarmHash, whose Fingerprint64 puts strings into buckets as TensorFlow does, as the target cohort_farmhash. Debian
# has no config file for it. This file is installed with the package, whose config file includes it, too.
find_path(COHORT_FARMHASH_INCLUDE_DIR farmhash.h)
find_library(COHORT_FARMHASH_LIBRARY farmhash)
mark_as_advanced(COHORT_FARMHASH_INCLUDE_DIR COHORT_FARMHASH_LIBRARY)
if(NOT COHORT_FARMHASH_INCLUDE_DIR OR NOT COHORT_FARMHASH_LIBRARY)
  message(FATAL_ERROR "FarmHash (farmhash.h, libfarmhash) was not found; on Debian: apt-get install libfarmhash-dev")
endif()
if(NOT TARGET cohort_farmhash)
  add_library(cohort_farmhash INTERFACE IMPORTED GLOBAL)
  target_include_directories(cohort_farmhash SYSTEM INTERFACE ${COHORT_FARMHASH_INCLUDE_DIR})
  target_link_libraries(cohort_farmhash INTERFACE ${COHORT_FARMHASH_LIBRARY})
endif()
