# ctest runs this script. It installs Cohort (WAY=installed, WAY=shared) or uses its source folder (WAY=subdirectory),
# builds the consumer project with it in the folder WORK, and runs the program.
set(arguments -G Ninja -S ${COHORT_SOURCE}/tests/consumer -B ${WORK}/build
  -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
file(REMOVE_RECURSE ${WORK})

if(NOT WAY STREQUAL subdirectory)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${COHORT_BUILD} --prefix ${WORK}/prefix
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB_RECURSE private ${WORK}/prefix/include/*_internal.h ${WORK}/prefix/include/*.pb.h)
  if(private)
    message(FATAL_ERROR "internal headers were installed: ${private}")
  endif()
  execute_process(COMMAND ${WORK}/prefix/bin/cohort --version OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB_RECURSE documents ${WORK}/prefix/share/doc/*/docs/architecture.md
    ${WORK}/prefix/share/doc/*/examples/ps_worker/main.cc)
  list(LENGTH documents count)
  if(NOT count EQUAL 2)
    message(FATAL_ERROR "expected docs/architecture.md and examples/ps_worker/main.cc to be installed; got: ${documents}")
  endif()
  list(APPEND arguments -D CMAKE_PREFIX_PATH=${WORK}/prefix -D CMAKE_BUILD_TYPE=${BUILD_TYPE})
else()
  # The whole library is compiled again, in the quickest way: with the build type in which no kernel is optimized, but
  # without debug information. It is built without CUDA, which no other test does on a machine with the toolkit.
  list(APPEND arguments -D COHORT_SOURCE_DIR=${COHORT_SOURCE} -D CMAKE_UNITY_BUILD=ON -D COHORT_WITH_CUDA=OFF
    -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG=-O0)
endif()

if(WAY STREQUAL shared)
  set(program ${COHORT_SOURCE}/tests/consumer/shared/main.cc)
  list(APPEND arguments -D COHORT=cohort::cohort_shared)
  set(expected "^graph 1, model 1, memory 1\nInvalidArgumentError\nCodedError<kNotFound>\n$")
  execute_process(COMMAND python3 -B ${COHORT_SOURCE}/tests/consumer/shared/exported_symbols.py ${WORK}/prefix
    COMMAND_ERROR_IS_FATAL ANY)
else()
  # The consumer runs the first program of the README.
  file(READ ${COHORT_SOURCE}/README.md readme)
  string(FIND "${readme}" "```cpp\n" start)
  string(SUBSTRING "${readme}" ${start} -1 readme)
  string(FIND "${readme}" "\n```\n" end)
  math(EXPR length "${end} - 6")
  string(SUBSTRING "${readme}" 7 ${length} text)
  set(program ${WORK}/readme.cc)
  file(WRITE ${program} "${text}\n")
  set(expected "^w [12]\\.?[0-9]*, b [01]\\.?[0-9]*, loss [0-9.e-]+\n$")
endif()
list(APPEND arguments -D PROGRAM=${program})

execute_process(COMMAND ${CMAKE_COMMAND} ${arguments} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build --target consumer COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${WORK}/build/consumer OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed MATCHES "${expected}")
  message(FATAL_ERROR "the consumer printed '${printed}', which is not '${expected}'")
endif()
