#include "cohort/backends/cuda/kernels/strided_copy.h"

#include "cohort/backends/cuda/kernels/strided_copy.cu.h"

namespace cohort::cuda {

void CopyStrided(const CudaCall& call, StridedLayout layout, const Tensor& source, int64_t from, Tensor& target,
                 int64_t to) {
  if (layout.elements() == 0) return;
  const auto element = static_cast<int64_t>(DTypeSize(source.dtype()));
  StridedCopyArgs args;
  args.from = static_cast<const char*>(source.raw_data()) + from * element;
  args.to = static_cast<char*>(target.raw_data()) + to * element;
  args.pieces = layout.elements();
  args.rank = static_cast<int>(layout.rank());
  const bool tiles = layout.PrepareTiles();
  // If both sides are contiguous along the last dimension, a piece is as much of it as all addresses and steps allow.
  const auto last = static_cast<size_t>(args.rank) - 1;
  const bool runs = args.rank > 0 && layout.dim(last).from == 1 && layout.dim(last).to == 1;
  size_t piece = static_cast<size_t>(element);
  if (runs) {
    piece = LargestMove({AddressOf(args.from), AddressOf(args.to), layout.dim(last).size * element});
    for (size_t d = 0; d < last; ++d) {
      piece = LargestMove({static_cast<int64_t>(piece), layout.dim(d).from * element, layout.dim(d).to * element});
    }
  }
  const int64_t elements_of_piece = static_cast<int64_t>(piece) / element;
  for (size_t d = 0; d < layout.rank(); ++d) {
    const StridedLayout::Dim& dim = layout.dim(d);
    if (runs && d == last) {
      args.dims[d] = {Divider(dim.size / elements_of_piece), 1, 1};
    } else {
      args.dims[d] = {Divider(dim.size), dim.from / elements_of_piece, dim.to / elements_of_piece};
    }
  }
  args.pieces /= elements_of_piece;
  args.piece_bytes = piece;
  tiles ? LaunchTransposedCopy(call.driver(), call.stream(), args)
        : LaunchStridedCopy(call.driver(), call.stream(), args);
}

}  // namespace cohort::cuda
