include(GNUInstallDirs)

# The modules that read bytes from files or from peers. For the fuzz targets (tests/fuzz) their objects count which branches
# were taken, so that the fuzzer sees which inputs are new. Other programs with these objects run as they do without.
set(COHORT_FUZZED_MODULES core proto graph ops cluster_spec cluster collective data checkpoint summary keras_files)

# cohort_module(NAME SOURCES a.cc ... TESTS a_test.cc ... DEPS cohort_core ... PRIVATE_DEPS ...)
#
# Adds the static library `cohort_<NAME>`. If the module has tests, also adds the test program `<NAME>_test`, which ctest
# runs. Every *_test.cc of a module's folder has to be listed.
function(cohort_module NAME)
  cmake_parse_arguments(M "" "" "SOURCES;TESTS;DEPS;PRIVATE_DEPS;TEST_DEPS" ${ARGN})
  set(lib cohort_${NAME})
  add_library(${lib} STATIC ${M_SOURCES})
  add_library(cohort::${NAME} ALIAS ${lib})
  target_include_directories(${lib} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${lib} PUBLIC cxx_std_20)
  target_link_libraries(${lib} PUBLIC ${M_DEPS} PRIVATE ${M_PRIVATE_DEPS} $<BUILD_INTERFACE:cohort_build_options>)
  if(COHORT_BUILD_FUZZERS AND NAME IN_LIST COHORT_FUZZED_MODULES)
    target_compile_options(${lib} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  set_property(GLOBAL APPEND PROPERTY COHORT_LIBRARIES ${lib})
  if(COHORT_BUILD_TESTS AND M_TESTS)
    cohort_test(${NAME}_test SOURCES ${M_TESTS} DEPS ${lib} ${M_TEST_DEPS} ${M_PRIVATE_DEPS})
  endif()
endfunction()

# Builds the test programs that run in one process. The sanitizer presets build and run them.
add_custom_target(in_process_tests)

# cohort_test(NAME SOURCES a_test.cc ... DEPS ... [LABELS ...] [TIMEOUT seconds] [SHOWS_SKIPS])
# SHOWS_SKIPS: some cases need rights that not every user has. If one is skipped, ctest reports the test as skipped.
function(cohort_test NAME)
  cmake_parse_arguments(T "SHOWS_SKIPS" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 600)
  endif()
  if(NOT T_LABELS)
    set(T_LABELS unit)
  endif()
  add_executable(${NAME} ${T_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${T_DEPS} GTest::gmock_main cohort_build_options)
  # The presets release, asan and tsan compile several sources together, which takes a third less time than five at a
  # time. The preset dev compiles each alone, so that a changed test builds soon.
  set_target_properties(${NAME} PROPERTIES UNITY_BUILD_BATCH_SIZE 12)
  # Tests spend their time in the libraries, so their own code is not optimised, and builds sooner. In the archive of
  # ./dev gpu-pack it is to be small.
  if(COHORT_GPU_PROGRAMS)
    target_compile_options(${NAME} PRIVATE -Os)
  elseif(COHORT_SANITIZE)
    target_compile_options(${NAME} PRIVATE -O0)
  else()
    target_compile_options(${NAME} PRIVATE $<$<CONFIG:Release>:-O0>)
  endif()
  set(runner)
  if(T_SHOWS_SKIPS)
    set(runner bash ${PROJECT_SOURCE_DIR}/cmake/show_skips.sh)
  endif()
  add_test(NAME ${NAME} COMMAND ${runner} $<TARGET_FILE:${NAME}> WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
  if(T_LABELS MATCHES "^(unit|.*inprocess)$")
    add_dependencies(in_process_tests ${NAME})
  endif()
  set_tests_properties(${NAME} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}" SKIP_RETURN_CODE 77)
endfunction()
