// Texts and decisions about drivers and cards that cannot be used.
#include "cohort/backends/cuda/card_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace cohort::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

DriverFacts Good() {
  DriverFacts facts;
  facts.exists = true;
  facts.looked_at = "/proc/driver/nvidia/version";
  facts.cuda = 13000;
  facts.version = "580.65.06";
  facts.cards = 2;
  return facts;
}

TEST(ProblemOfDriverTest, AGoodDriverHasNone) { EXPECT_EQ(ProblemOfDriver(Good()), ""); }

TEST(ProblemOfDriverTest, AMissingDriverIsNamedWithThePlaceWhereItWouldBe) {
  DriverFacts facts = Good();
  facts.exists = false;
  facts.cuda = 0;
  EXPECT_THAT(ProblemOfDriver(facts), AllOf(HasSubstr("driver 580 or later; got none"),
                                            HasSubstr("/proc/driver/nvidia/version"), HasSubstr("install it")));
}

TEST(ProblemOfDriverTest, AnOldDriverIsNamedWithBothVersions) {
  DriverFacts facts = Good();
  facts.cuda = 12020;
  facts.version = "535.104.05";
  facts.cards = 0;
  EXPECT_THAT(ProblemOfDriver(facts),
              AllOf(HasSubstr("driver 580 or later, which has CUDA 13.0"), HasSubstr("got driver 535.104.05"),
                    HasSubstr("which has CUDA 12.2"), HasSubstr("install a newer driver")));
}

TEST(ProblemOfDriverTest, ADriverWithoutItsLibraryIsNamed) {
  DriverFacts facts = Good();
  facts.cuda = 0;
  EXPECT_THAT(ProblemOfDriver(facts), AllOf(HasSubstr("580.65.06"), HasSubstr("libcuda.so.1 cannot be opened")));
}

TEST(ProblemOfDriverTest, WithoutACardTheVariableIsNamed) {
  DriverFacts facts = Good();
  facts.cards = 0;
  facts.listing = "no CUDA-capable device is detected (cudaErrorNoDevice)";
  EXPECT_THAT(ProblemOfDriver(facts), AllOf(HasSubstr("at least one card"), HasSubstr("cudaErrorNoDevice"),
                                            Not(HasSubstr("CUDA_VISIBLE_DEVICES"))));
  facts.visible = "abc";
  EXPECT_THAT(ProblemOfDriver(facts),
              AllOf(HasSubstr("CUDA_VISIBLE_DEVICES"), HasSubstr("got 'abc'"), HasSubstr("cudaErrorNoDevice"),
                    HasSubstr("correct the variable (nvidia-smi -L")));
  facts.visible = "7";
  EXPECT_THAT(ProblemOfDriver(facts), HasSubstr("got '7', of which the driver knows no card (no CUDA"));
  facts.visible = "0, 1,1";
  EXPECT_THAT(ProblemOfDriver(facts),
              HasSubstr("got '0, 1,1', of which the driver knows no card, because '1' is there twice (no CUDA"));
  for (const char* hides : {"", "-1", "-1,0"}) {
    facts.visible = hides;
    EXPECT_EQ(ProblemOfDriver(facts), "CUDA_VISIBLE_DEVICES is '" + std::string(hides) + "', which hides all cards");
  }
}

TEST(VisibleDevicesTest, EntriesThatTheDriverDoesNotKnowAreAWarning) {
  EXPECT_EQ(ProblemOfVisibleDevices(std::nullopt, 1), "");
  EXPECT_EQ(ProblemOfVisibleDevices("0", 1), "");
  EXPECT_EQ(ProblemOfVisibleDevices("1, GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", 2), "");
  EXPECT_EQ(ProblemOfVisibleDevices("0,-1,1", 1), "");  // -1 hides what follows
  EXPECT_THAT(ProblemOfVisibleDevices("0,7,1", 1),
              AllOf(HasSubstr("got '0,7,1', of whose 3 entries the driver takes the first 1"), HasSubstr("card '7'")));
}

TEST(ArchitecturesTest, CodeRunsOnItsCardsAndOnLaterOnesThroughTheDriver) {
  EXPECT_TRUE(HasCodeFor("90", 9, 0));
  EXPECT_TRUE(HasCodeFor("90", 10, 0));  // translated by the driver
  EXPECT_FALSE(HasCodeFor("90", 8, 9));
  EXPECT_TRUE(HasCodeFor("80-real", 8, 6));
  EXPECT_FALSE(HasCodeFor("80-real", 9, 0));
  EXPECT_FALSE(HasCodeFor("86-real", 8, 0));
  EXPECT_TRUE(HasCodeFor("80-real,90-virtual", 12, 0));
  EXPECT_FALSE(HasCodeFor("80-real,90-virtual", 7, 5));
  EXPECT_TRUE(HasCodeFor("90a", 9, 0));
  EXPECT_FALSE(HasCodeFor("90a", 10, 0));
  EXPECT_TRUE(HasCodeFor("100f", 10, 3));
  EXPECT_FALSE(HasCodeFor("100f", 12, 0));
  EXPECT_TRUE(HasCodeFor("native", 7, 5));
  EXPECT_THAT(ProblemOfArchitecture("90", 8, 6), AllOf(HasSubstr("CMAKE_CUDA_ARCHITECTURES is 90"),
                                                       HasSubstr("capability 8.6"), HasSubstr("ARCHITECTURES=86")));
  EXPECT_EQ(ProblemOfArchitecture("80,90", 8, 6), "");
}

// After these, driver_types.h says, the process must be terminated and relaunched.
TEST(FaultOfTest, ErrorsThatStayAreKnown) {
  for (const char* name :
       {"cudaErrorIllegalAddress", "cudaErrorLaunchTimeout", "cudaErrorAssert", "cudaErrorHardwareStackError",
        "cudaErrorIllegalInstruction", "cudaErrorMisalignedAddress", "cudaErrorInvalidAddressSpace",
        "cudaErrorInvalidPc", "cudaErrorLaunchFailure", "cudaErrorTensorMemoryLeak", "cudaErrorMpsClientTerminated"}) {
    EXPECT_EQ(FaultOf(name), CardFault::kBroken) << name;
  }
  for (const char* name :
       {"cudaErrorContained", "cudaErrorExternalDevice", "cudaErrorECCUncorrectable", "cudaErrorNvlinkUncorrectable"}) {
    EXPECT_EQ(FaultOf(name), CardFault::kFaulty) << name;
  }
}

TEST(FaultOfTest, ErrorsOfACardThatCannotBeUsedAreKnown) {
  const std::pair<const char*, CardFault> table[] = {
      {"cudaErrorMemoryAllocation", CardFault::kOutOfMemory},
      {"cudaErrorNoKernelImageForDevice", CardFault::kNoCode},
      {"cudaErrorUnsupportedPtxVersion", CardFault::kNoCode},
      {"cudaErrorJitCompilationDisabled", CardFault::kNoCode},
      {"cudaErrorDevicesUnavailable", CardFault::kNotAvailable},
      {"cudaErrorSystemNotReady", CardFault::kNotReady},
      {"cudaErrorSystemDriverMismatch", CardFault::kNotReady},
      {"cudaErrorMpsServerNotReady", CardFault::kNotReady},
      {"cudaErrorInvalidValue", CardFault::kOther},
      {"cudaErrorStreamCaptureInvalidated", CardFault::kOther},
      {"cudaErrorNotReady", CardFault::kOther},
      {"", CardFault::kOther},
  };
  for (const auto& [name, fault] : table) EXPECT_EQ(FaultOf(name), fault) << name;
}

TEST(CardErrorTest, SaysWhatTheUserCanDo) {
  const auto error = [](CardFault fault) { return CardError(fault, "cudaCall", 3, "the driver's text"); };
  EXPECT_EQ(error(CardFault::kOther).message(), "[cuda] cudaCall on card 3: the driver's text");
  EXPECT_EQ(CardError(CardFault::kOther, "cudaCall", -1, "text").message(), "[cuda] cudaCall: text");
  EXPECT_EQ(error(CardFault::kOutOfMemory).code(), Code::kResourceExhausted);
  EXPECT_EQ(error(CardFault::kNoCode).code(), Code::kFailedPrecondition);
  EXPECT_THAT(error(CardFault::kNoCode).message(), HasSubstr("-DCMAKE_CUDA_ARCHITECTURES"));
  EXPECT_THAT(error(CardFault::kNotAvailable).message(), HasSubstr("another process uses the card alone"));
  EXPECT_EQ(error(CardFault::kNotReady).code(), Code::kFailedPrecondition);
  EXPECT_THAT(error(CardFault::kNotReady).message(), HasSubstr("whether the services run"));
  EXPECT_EQ(error(CardFault::kFaulty).code(), Code::kInternal);
  EXPECT_THAT(error(CardFault::kFaulty).message(), AllOf(HasSubstr("may be damaged"), HasSubstr("last checkpoint")));
  EXPECT_EQ(error(CardFault::kBroken).code(), Code::kInternal);
  EXPECT_THAT(error(CardFault::kBroken).message(),
              AllOf(HasSubstr("start the program again, from its last checkpoint"), HasSubstr("CUDA_LAUNCH_BLOCKING")));
}

}  // namespace
}  // namespace cohort::cuda
