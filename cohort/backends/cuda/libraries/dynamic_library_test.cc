#include "cohort/backends/cuda/libraries/dynamic_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/libraries/blas.h"
#include "cohort/backends/cuda/libraries/dnn.h"
#include "cohort/backends/cuda/libraries/library_requests.h"
#include "cohort/backends/cuda/libraries/nccl.h"
#include "cohort/backends/cuda/libraries/nvrtc.h"
#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort::cuda {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A library that every process here has: that of the mathematical functions.
std::string PathOfLibm() {
  Dl_info info = {};
  double (*cosine)(double) = &std::cos;
  EXPECT_NE(dladdr(reinterpret_cast<void*>(cosine), &info), 0);
  return fs::canonical(info.dli_fname).string();
}

// A folder that ends with the test.
class DynamicLibraryTest : public ::testing::Test {
 protected:
  DynamicLibraryTest() : folder_(fs::path(::testing::TempDir()) / ("dynamic_library_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~DynamicLibraryTest() override { fs::remove_all(folder_); }
  // Makes a library appear under another path: that of the mathematical functions if none is named.
  void Put(const fs::path& path, const std::string& library = PathOfLibm()) {
    fs::create_directories((folder_ / path).parent_path());
    fs::create_symlink(library, folder_ / path);
  }
  std::string folder() const { return folder_.string(); }

 private:
  const fs::path folder_;
};

// Sets a variable of the environment as long as the object lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST_F(DynamicLibraryTest, OpensTheFirstUsableFileAndGivesItsFunctions) {
  Put("second/libfake.so.9");
  const DynamicLibrary library =
      DynamicLibrary::Open({"fake 9", {"libfake.so.9"}, {}}, {folder() + "/first", folder() + "/second"});
  EXPECT_EQ(library.path(), folder() + "/second/libfake.so.9");
  EXPECT_DOUBLE_EQ(library.Get<double(double)>("cbrt")(27.0), 3.0);
  EXPECT_EQ(library.Find<void()>("no_such_function"), nullptr);
  EXPECT_THAT(ErrorOf([&] { library.Get<void()>("no_such_function"); }),
              AllOf(HasSubstr("no_such_function in fake 9"), HasSubstr("second/libfake.so.9")));
}

TEST_F(DynamicLibraryTest, AsksTheLoaderLast) {
  const DynamicLibrary library = DynamicLibrary::Open({"mathematics", {"libm.so.6"}, {}}, {folder()});
  EXPECT_EQ(library.path(), "libm.so.6");
}

TEST_F(DynamicLibraryTest, AMissingLibraryIsNamedWithThePathsThatWereTried) {
  const auto open = [&] { DynamicLibrary::Open({"fake 9", {"libfake.so.9", "libfake.so"}, {}}, {folder()}); };
  EXPECT_THROW(open(), FailedPreconditionError);
  EXPECT_THAT(
      ErrorOf(open),
      AllOf(HasSubstr("expected fake 9; got no usable file"), HasSubstr(folder() + "/libfake.so.9 (no such file)"),
            HasSubstr("libfake.so.9 by the system's loader ("), HasSubstr(folder() + "/libfake.so (no such file)"),
            HasSubstr("COHORT_CUDA_LIBRARY_PATH")));
}

TEST_F(DynamicLibraryTest, AnotherVersionIsPassedOverAndNamed) {
  Put("old/libfake.so.8");
  const LibraryRequest request = {"fake 9", {"libfake.so.9", "libfake.so.8"}, [](const DynamicLibrary& library) {
                                    return library.path().ends_with(".8") ? "its version is 8.1.0" : "";
                                  }};
  const auto open = [&] { DynamicLibrary::Open(request, {folder() + "/old", folder() + "/new"}); };
  EXPECT_THAT(ErrorOf(open), HasSubstr(folder() + "/old/libfake.so.8 (its version is 8.1.0)"));
  Put("new/libfake.so.9");
  EXPECT_EQ(DynamicLibrary::Open(request, {folder() + "/old", folder() + "/new"}).path(),
            folder() + "/new/libfake.so.9");
}

// The first statement of a test that needs the stand-ins for NVIDIA's libraries, which are in the build's folder.
#define NEEDS_STUBS() \
  if (access(STUB_8907, R_OK) != 0) GTEST_SKIP() << "this is not the machine of the build"

// Returns the request with file names that no installed library has, so that the system's loader finds none.
LibraryRequest WithOtherFiles(LibraryRequest request) {
  for (std::string& file : request.files) file.insert(0, "stub_");
  return request;
}

TEST_F(DynamicLibraryTest, LibrariesOfAnotherMajorVersionAreRefusedAndNamed) {
  NEEDS_STUBS();
  Put("old/stub_libcudnn.so.8", STUB_8907);
  EXPECT_THAT(ErrorOf([&] { DynamicLibrary::Open(WithOtherFiles(CudnnRequest(9)), {folder() + "/old"}); }),
              AllOf(HasSubstr("expected cuDNN 9"), HasSubstr("old/stub_libcudnn.so.8 (its version is 8.9.7)")));
  Put("old/stub_libcublasLt.so.12", STUB_120100);
  EXPECT_THAT(ErrorOf([&] { DynamicLibrary::Open(WithOtherFiles(CublasLtRequest(13)), {folder() + "/old"}); }),
              AllOf(HasSubstr("expected cuBLASLt 13"), HasSubstr("stub_libcublasLt.so.12 (its version is 12.1.0)")));
  Put("old/stub_libnvrtc.so.12", STUB_120100);
  EXPECT_THAT(ErrorOf([&] { DynamicLibrary::Open(WithOtherFiles(NvrtcRequest(13)), {folder() + "/old"}); }),
              AllOf(HasSubstr("expected NVRTC 13"), HasSubstr("old/stub_libnvrtc.so.12 (its version is 12.1)")));
  Put("new/stub_libnvrtc.so.13", STUB_130000);
  EXPECT_EQ(DynamicLibrary::Open(WithOtherFiles(NvrtcRequest(13)), {folder() + "/old", folder() + "/new"}).path(),
            folder() + "/new/stub_libnvrtc.so.13");
  Put("liar/stub_libcudnn.so.9", STUB_8907);  // the name says 9
  Put("new/stub_libcudnn.so.9", STUB_90200);
  EXPECT_EQ(DynamicLibrary::Open(WithOtherFiles(CudnnRequest(9)), {folder() + "/liar", folder() + "/new"}).path(),
            folder() + "/new/stub_libcudnn.so.9");
  Put("other/stub_libcudnn.so.9");  // another library
  EXPECT_THAT(ErrorOf([&] { DynamicLibrary::Open(WithOtherFiles(CudnnRequest(9)), {folder() + "/other"}); }),
              HasSubstr("other/stub_libcudnn.so.9 (it has no function cudnnGetVersion)"));
}

// What a step hears if its library lacks a function that we call.
class LibraryWithoutEntryPointTest : public DynamicLibraryTest {
 protected:
  // Puts a library that has no function but that for its version where `call` finds it, and expects its error.
  void Expect(const std::string& file, const char* stub, const std::string& library, const std::string& function,
              const std::function<void()>& call) {
    Put(file, stub);
    const Variable path("COHORT_CUDA_LIBRARY_PATH", folder());
    EXPECT_THAT(ErrorOf(call), AllOf(HasSubstr("FailedPrecondition"), HasSubstr("expected the function " + function),
                                     HasSubstr("in " + library), HasSubstr(folder() + "/" + file),
                                     HasSubstr("COHORT_CUDA_LIBRARY_PATH")));
  }
};

TEST_F(LibraryWithoutEntryPointTest, Nvrtc) {
  NEEDS_STUBS();
  Expect("libnvrtc.so.13", STUB_130000, "NVRTC 13", "nvrtc", [] { CompileWithNvrtc("", "kernel", 9, 0); });
}

TEST_F(LibraryWithoutEntryPointTest, CublasLtCudnnAndNccl) {
  NEEDS_STUBS();
  // The sources that call them need headers of NVIDIA's.
  if (LookForDriverOfMachine() == DriverSigns::kNotBuilt) GTEST_SKIP() << "this build has no CUDA";
  Expect("libcublasLt.so.13", STUB_130000, "cuBLASLt 13", "cublasLt", [] { MakeBlas()->Candidates(0, GemmSpec(), 1); });
  Expect("libcudnn.so.9", STUB_90200, "cuDNN 9", "cudnn",
         [] { MakeDnn()->Candidates(0, ConvolutionPart::kOutput, DnnConvolution(), 1); });
  Expect("libnccl.so.2", STUB_22907, "NCCL 2", "nccl", [] { MakeNccl()->UniqueId(); });
}

TEST_F(DynamicLibraryTest, AFileThatIsNoLibraryIsNamed) {
  fs::create_directories(folder() + "/broken");
  FILE* file = fopen((folder() + "/broken/libfake.so.9").c_str(), "w");
  ASSERT_NE(file, nullptr);
  fputs("this is no library", file);
  fclose(file);
  EXPECT_THAT(ErrorOf([&] {
                DynamicLibrary::Open({"fake 9", {"libfake.so.9"}, {}}, {folder() + "/broken"});
              }),
              HasSubstr("/broken/libfake.so.9 ("));
}

TEST_F(DynamicLibraryTest, FoldersComeFromTheVariableTheToolkitAndPythonInThisOrder) {
  for (const char* package : {"cublas", "cudnn"}) {
    fs::create_directories(folder() + "/venv/lib/python3.11/site-packages/nvidia/" + package + "/lib");
  }
  fs::create_directories(folder() + "/toolkit/lib64");
  const Variable path("COHORT_CUDA_LIBRARY_PATH", folder() + "/one::" + folder() + "/two");
  const Variable toolkit("CUDA_HOME", folder() + "/toolkit");
  const Variable environment("VIRTUAL_ENV", folder() + "/venv");
  std::vector<std::string> folders = CudaLibraryFolders();
  ASSERT_GE(folders.size(), 5u);
  folders.resize(5);
  EXPECT_THAT(folders, ElementsAre(folder() + "/one", folder() + "/two", folder() + "/toolkit/lib64",
                                   folder() + "/venv/lib/python3.11/site-packages/nvidia/cublas/lib",
                                   folder() + "/venv/lib/python3.11/site-packages/nvidia/cudnn/lib"));
  const Variable none("CUDA_HOME", folder() + "/nowhere");
  EXPECT_THAT(CudaLibraryFolders(), Not(Contains(folder() + "/nowhere/lib64")));
}

TEST_F(DynamicLibraryTest, PythonOfThePathShowsItsPackages) {
  const std::string lib = "/lib/python3.12/site-packages/nvidia/nccl/lib";
  for (const char* root : {"/with", "/without"}) fs::create_directories(folder() + root + lib);
  for (const char* root : {"/with", "/without"}) fs::create_directories(folder() + root + "/bin");
  fs::create_symlink("/usr/bin/env", folder() + "/with/bin/python3");
  const Variable path("PATH", folder() + "/without/bin:" + folder() + "/with/bin");
  EXPECT_THAT(CudaLibraryFolders(),
              AllOf(Contains(folder() + "/with" + lib), Not(Contains(folder() + "/without" + lib))));
  const Variable active("VIRTUAL_ENV", folder() + "/with");
  std::vector<std::string> folders = CudaLibraryFolders();
  EXPECT_EQ(std::count(folders.begin(), folders.end(), folder() + "/with" + lib), 1);
}

// As NVRTC does with the file of its functions: the system's loader does not know the folder.
TEST_F(DynamicLibraryTest, ANeighbourIsFoundByItsBareNameAfterwards) {
  NEEDS_STUBS();
  Put("beside/stub_libnvrtc.so.13", STUB_130000);
  Put("beside/stub_neighbour.so.1", STUB_NEIGHBOUR);
  const DynamicLibrary library = DynamicLibrary::Open(WithOtherFiles(NvrtcRequest(13)), {folder() + "/beside"});
  library.OpenNeighbour("no_such_file.so.1");
  EXPECT_EQ(dlopen("stub_neighbour.so.1", RTLD_NOW), nullptr);
  library.OpenNeighbour("stub_neighbour.so.1");
  EXPECT_NE(dlopen("stub_neighbour.so.1", RTLD_NOW), nullptr);
}

TEST_F(DynamicLibraryTest, AnNcclThatTellsNoVersionIsNamedWithItsPath) {
  Put("libnccl-of-the-test.so");  // the machine may have the real one
  LibraryRequest request = NcclRequest();
  request.files = {"libnccl-of-the-test.so"};
  EXPECT_THAT(
      MessageOf<FailedPreconditionError>([&] { DynamicLibrary::Open(request, {folder()}); }),
      AllOf(HasSubstr("NCCL 2"), HasSubstr(folder() + "/libnccl-of-the-test.so"), HasSubstr("it tells no version")));
}

TEST(NcclVersionTest, OnlyNccl2From218CanBeUsed) {
  EXPECT_EQ(WhyNcclIsUnusable(21801), "");
  EXPECT_EQ(WhyNcclIsUnusable(22907), "");
  EXPECT_EQ(WhyNcclIsUnusable(21705), "its version is 2.17.5; 2.18.1 or a later NCCL 2 is needed");
  EXPECT_EQ(WhyNcclIsUnusable(30001), "its version is 3.0.1; 2.18.1 or a later NCCL 2 is needed");
}

}  // namespace
}  // namespace cohort::cuda
