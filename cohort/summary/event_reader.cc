#include "cohort/summary/event_reader.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/proto/event.pb.h"
#include "cohort/proto/tensor_proto.h"

namespace cohort {
namespace {

constexpr char kScalarPlugin[] = "scalars";

HistogramData DecodeHistogram(const proto::HistogramProto& in) {
  HistogramData out{in.min(), in.max(), in.num(), in.sum(), in.sum_squares(), {}, {}};
  out.limits.assign(in.bucket_limit().begin(), in.bucket_limit().end());
  out.counts.assign(in.bucket().begin(), in.bucket().end());
  return out;
}

void ReadTensor(const proto::TensorProto& in, TensorBudget& budget, SummaryValue* out) {
  out->kind = SummaryValue::Kind::kTensor;
  try {
    out->tensor = FromProto(in, budget);
  } catch (const InvalidArgumentError&) {  // a dtype that we lack, or damaged: the tag is listed without its value
    return;
  }
  if (out->tensor.dtype() == DType::kFloat32 && out->tensor.shape().IsScalar() &&
      (out->plugin_name.empty() || out->plugin_name == kScalarPlugin)) {
    out->kind = SummaryValue::Kind::kScalar;
    out->scalar = out->tensor.scalar<float>();
  }
}

SummaryValue DecodeValue(const proto::Summary::Value& in, TensorBudget& budget) {
  SummaryValue out;
  out.tag = in.tag();
  out.plugin_name = in.metadata().plugin_data().plugin_name();
  switch (in.value_case()) {
    case proto::Summary::Value::kSimpleValue:
      out.kind = SummaryValue::Kind::kScalar;
      out.scalar = in.simple_value();
      break;
    case proto::Summary::Value::kHisto:
      out.kind = SummaryValue::Kind::kHistogram;
      out.histogram = DecodeHistogram(in.histo());
      break;
    case proto::Summary::Value::kTensor: ReadTensor(in.tensor(), budget, &out); break;
    case proto::Summary::Value::kImage:
      out.kind = SummaryValue::Kind::kImage;
      out.encoded = in.image().encoded_image_string();
      break;
    case proto::Summary::Value::kAudio:
      out.kind = SummaryValue::Kind::kAudio;
      out.encoded = in.audio().encoded_audio_string();
      break;
    default: break;
  }
  return out;
}

void ReadWhat(const proto::Event& in, Event* out) {
  const auto set = [out](Event::Kind kind, const std::string& bytes) {
    out->kind = kind;
    out->bytes = bytes;
  };
  switch (in.what_case()) {
    case proto::Event::kFileVersion: return set(Event::Kind::kFileVersion, in.file_version());
    case proto::Event::kGraphDef: return set(Event::Kind::kGraph, in.graph_def());
    case proto::Event::kMetaGraphDef: return set(Event::Kind::kMetaGraph, in.meta_graph_def());
    case proto::Event::kLogMessage: return set(Event::Kind::kLogMessage, in.log_message().message());
    case proto::Event::kTaggedRunMetadata:
      return set(Event::Kind::kRunMetadata, in.tagged_run_metadata().run_metadata());
    case proto::Event::kSummary: {
      out->kind = Event::Kind::kSummary;
      TensorBudget budget;
      for (const proto::Summary::Value& value : in.summary().value()) out->values.push_back(DecodeValue(value, budget));
      return;
    }
    case proto::Event::kSessionLog:
      set(Event::Kind::kSessionLog, in.session_log().msg());
      out->session_status = in.session_log().status();
      out->checkpoint_path = in.session_log().checkpoint_path();
      return;
    default: return;
  }
}

}  // namespace

RecordReader::Outcome EventReader::Read(Event* event) {
  const int64_t offset = reader_.offset();
  std::string payload;
  const RecordReader::Outcome outcome = reader_.Read(&payload);
  if (outcome != RecordReader::Outcome::kRecord) return outcome;
  proto::Event message;
  if (!message.ParseFromString(payload)) {
    throw DataLossError(StrCat("[summary] the record at offset ", offset, " of ", reader_.path(), " (", payload.size(),
                               " bytes) is no Event"));
  }
  *event = Event();
  event->wall_time = message.wall_time();
  event->step = message.step();
  ReadWhat(message, event);
  return outcome;
}

}  // namespace cohort
