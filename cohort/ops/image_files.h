// Ops that read files and the images in them, for datasets of image files and for programs that get images as bytes.
// They run on the host on every device, and have no gradient. Without a graph, cohort/core/images/ has the same
// functions.
#pragma once

#include "cohort/core/export.h"
#include "cohort/core/images/jpeg.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// Returns the bytes of the file `filename` (string []) as string []. The task that runs the node reads its own file
// system. A file that is not there fails the step with NotFoundError.
COHORT_EXPORT Output ReadFile(Output filename, const NodeName& name = "");

// Each of the next three returns the image in `contents` (string [], the bytes of a file) as uint8
// [rows, columns, channels]. `channels` is 0 (as in the file), 1 (grey), 3 (red, green, blue), or 4 (with opacity; PNG
// only). The sizes are known when the node runs. Bytes that cannot be read fail the step; images::DecodeJpeg and
// images::DecodePng say how. As in TensorFlow each reads files of both formats; the name says what is expected.
COHORT_EXPORT Output DecodeImage(Output contents, int channels = 0, const NodeName& name = "");
COHORT_EXPORT Output DecodePng(Output contents, int channels = 0, const NodeName& name = "");
// The options are for JPEG files. With a `ratio` other than 1 a PNG file fails the step.
COHORT_EXPORT Output DecodeJpeg(Output contents, const images::JpegReadOptions& options = {},
                                const NodeName& name = "");

// Returns `image`, which is uint8 [rows, columns, channels], as the bytes of a file (string []). See images::EncodeJpeg
// and images::EncodePng.
COHORT_EXPORT Output EncodeJpeg(Output image, const images::JpegWriteOptions& options = {}, const NodeName& name = "");
COHORT_EXPORT Output EncodePng(Output image, int compression = -1, const NodeName& name = "");

}  // namespace cohort::ops
