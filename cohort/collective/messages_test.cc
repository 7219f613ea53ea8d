#include "cohort/collective/messages.h"

#include <gtest/gtest.h>

#include "cohort/core/error.h"

namespace cohort::collective {
namespace {

const CallSignature kSignature = {CallKind::kReduceScatter, ReduceOp::kMax, Algorithm::kDirect, 3,
                                  DType::kBfloat16,         Shape{4, 0, 7}};

TEST(MessagesTest, JoinComesBack) {
  JoinMessage join;
  join.group = {-5, 1LL << 40};
  join.task = "/job:worker/replica:0/task:1";
  join.host = "4f1c/net:[4026531840]";
  join.members = {"a", "b"};
  Shape partly = Shape::UnknownDims(2);
  partly.set_dim(1, 3);
  join.schedule = {{7, "grads/w", kSignature},
                   {-1, "x", {CallKind::kBroadcast, {}, {}, 1, DType::kInt64, Shape::UnknownRank()}},
                   {8, "", {CallKind::kAllGather, {}, {}, 0, DType::kFloat32, partly}}};
  join.algorithm = Algorithm::kGloo;
  join.endpoints = {std::string("\0\x01", 2), ""};
  const JoinMessage back = DecodeJoin(EncodeJoin(join));
  EXPECT_EQ(back.group, join.group);
  EXPECT_EQ(back.task, join.task);
  EXPECT_EQ(back.host, join.host);
  EXPECT_EQ(back.members, join.members);
  EXPECT_EQ(back.schedule, join.schedule);
  EXPECT_EQ(back.algorithm, join.algorithm);
  EXPECT_EQ(back.endpoints, join.endpoints);
}

TEST(MessagesTest, DataComesBack) {
  const DataMessage data = {{1, 2}, {3, 4}, 5, 6, 7, kSignature, 1ULL << 63};
  const Message message = EncodeData(data, Tensor::Vector<float>({1, 2}));
  EXPECT_EQ(message.tensors.at(0).ToVector<float>(), (std::vector<float>{1, 2}));
  const DataMessage back = DecodeData(message);
  EXPECT_EQ(back.group, data.group);
  EXPECT_EQ(back.call, data.call);
  EXPECT_EQ(back.from, 5);
  EXPECT_EQ(back.to, 6);
  EXPECT_EQ(back.sequence, 7);
  EXPECT_EQ(back.signature, kSignature);
  EXPECT_EQ(back.schedule_fingerprint, 1ULL << 63);
}

TEST(MessagesTest, ScheduleComesBack) {
  for (const bool agreed : {false, true}) {
    const ScheduleMessage schedule = {{1, -2}, 3, 4, ~0ULL, 5, agreed, {{7, "w", kSignature}, {9, "", kSignature}}};
    const ScheduleMessage back = DecodeSchedule(EncodeSchedule(schedule));
    EXPECT_EQ(back.group, schedule.group);
    EXPECT_EQ(back.from, 3);
    EXPECT_EQ(back.to, 4);
    EXPECT_EQ(back.ours, ~0ULL);
    EXPECT_EQ(back.theirs, 5u);
    EXPECT_EQ(back.agreed, agreed);
    EXPECT_EQ(back.entries, schedule.entries);
  }
}

TEST(MessagesTest, AbortLeaveAndFarewellComeBack) {
  EXPECT_EQ(DecodeFarewell(EncodeFarewell({{-1, 2}})).group, (GroupRef{-1, 2}));
  const AbortMessage abort = DecodeAbort(EncodeAbort({{1, 2}, Status(Code::kUnavailable, "gone")}));
  EXPECT_EQ(abort.why.code(), Code::kUnavailable);
  EXPECT_EQ(abort.why.message(), "gone");
  EXPECT_EQ(abort.group, (GroupRef{1, 2}));
  const LeaveMessage leave = DecodeLeave(EncodeLeave({{3, 4}, Status(Code::kInvalidArgument, "bad")}));
  EXPECT_EQ(leave.group, (GroupRef{3, 4}));
  EXPECT_EQ(leave.failed_before.ToString(), "InvalidArgument: bad");
  EXPECT_TRUE(DecodeLeave(EncodeLeave({{3, 4}, Status()})).failed_before.ok());
}

// Every header that is cut short, and some with one byte changed: an error or another value, never more.
TEST(MessagesTest, DamagedHeadersAreRefused) {
  const DataMessage data = {{1, 2}, {3, 4}, 5, 6, 7, kSignature, 1ULL << 63};
  JoinMessage join;
  join.task = "t";
  join.host = "h";
  join.members = {"a"};
  join.schedule = {{7, "w", kSignature}};
  const auto decode = [](const Message& message) {
    switch (static_cast<Kind>(message.kind)) {
      case Kind::kJoin: DecodeJoin(message); return;
      case Kind::kData: DecodeData(message); return;
      case Kind::kAbort: DecodeAbort(message); return;
      case Kind::kLeave: DecodeLeave(message); return;
      case Kind::kFarewell: DecodeFarewell(message); return;
      case Kind::kSchedule: DecodeSchedule(message); return;
    }
  };
  for (const Message& whole :
       {EncodeJoin(join), EncodeData(data, Tensor::Scalar(1)), EncodeAbort({{1, 2}, Status(Code::kAborted, "why")}),
        EncodeLeave({{1, 2}, Status(Code::kUnavailable, "gone")}), EncodeFarewell({{1, 2}}),
        EncodeSchedule({{1, 2}, 3, 4, 5, 6, false, {{7, "w", kSignature}}})}) {
    EXPECT_NO_THROW(decode(whole));
    for (size_t length = 0; length < whole.header.size(); ++length) {
      Message cut = whole;
      cut.header.resize(length);
      EXPECT_THROW(decode(cut), DataLossError) << "kind " << whole.kind << " cut at " << length;
      for (const unsigned char byte : {0x00, 0x7f, 0x80, 0xff}) {
        Message spoilt = whole;
        spoilt.header[length] = static_cast<char>(byte);
        try {
          decode(spoilt);
        } catch (const Error&) {
        }
      }
    }
    Message longer = whole;
    longer.header += 'x';
    EXPECT_THROW(decode(longer), DataLossError);
    Message tensors = whole;
    tensors.tensors.push_back(Tensor::Scalar(1));
    EXPECT_THROW(decode(tensors), DataLossError);
  }
}

}  // namespace
}  // namespace cohort::collective
