// EncodeWeights and DecodeWeights, by the HDF5 library, which works on a file in memory. Groups and datasets are
// written as h5py writes them. The reader checks shapes and types before it allocates memory. HDF5 has several ways to
// name other files (external links, external storage, virtual datasets) and to name an object twice (soft and hard
// links); the reader refuses all of them, because no file of weights needs them. The library has global
// tables, so one lock guards all calls, and its messages to stderr are switched off.
#include "cohort/keras/files/weights_file.h"

#include <hdf5.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "cohort/core/bfloat16.h"
#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/weights_chunks_internal.h"

namespace cohort::keras {
namespace {

constexpr char kVariables[] = "vars";
constexpr char kIdfWeights[] = "idf_weights";
constexpr char kBfloat16[] = "bfloat16";
// All weights of a file together may be so many times larger than the file, or so large if the file is small.
// Compressed zeros, such as the slots of a new optimizer, become large.
constexpr uint64_t kLargestGrowth = 64;
constexpr uint64_t kAlwaysAllowed = uint64_t{256} << 20;

// The library has one set of global tables, and some builds of it have no locks.
Mutex& LibraryLock() {
  static Mutex lock;
  return lock;
}

// Keeps the library from writing its errors to stderr.
class Quiet {
 public:
  Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Quiet() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

// The library's innermost message of the last failure.
std::string LastError() {
  std::string text = "no reason given";
  const auto take = [](unsigned n, const H5E_error2_t* error, void* out) -> herr_t {
    if (n == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &text);
  return text;
}

// If a file is damaged, the library loses some of its own memory. When the process ends, it then prints "infinite loop
// closing library", unless its messages are off. The function that is registered here turns them off. It runs before
// the library's own end, which the library has registered at its first call.
void BeQuietAtExit() {
  static const int registered = std::atexit([] { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); });
  static_cast<void>(registered);
}

// Owns an object of the library; the destructor closes it.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  Close close_;
};

// Returns the properties of a file that exists only in memory.
Handle MemoryFile() {
  Handle properties(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  constexpr size_t kGrowth = size_t{1} << 20;
  H5Pset_fapl_core(properties.get(), kGrowth, false);
  return properties;
}

// ---- writing -----------------------------------------------------------------------------------------------------

Handle Written(hid_t id, Handle::Close close, const std::string& what) {
  if (id < 0) throw InternalError(StrCat("[keras/weights_file] cannot write ", what, ": ", LastError()));
  return Handle(id, close);
}

// Returns the type of the elements in the file. All dtypes but bool have this type in memory, too.
Handle FileType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return Handle(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
    case DType::kFloat64: return Handle(H5Tcopy(H5T_IEEE_F64LE), H5Tclose);
    case DType::kInt32: return Handle(H5Tcopy(H5T_STD_I32LE), H5Tclose);
    case DType::kInt64: return Handle(H5Tcopy(H5T_STD_I64LE), H5Tclose);
    case DType::kUint8: return Handle(H5Tcopy(H5T_STD_U8LE), H5Tclose);
    case DType::kBool: {
      // numpy's bool, which h5py stores as an enumeration.
      Handle type(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
      for (const auto& [name, value] : {std::pair("FALSE", int8_t{0}), std::pair("TRUE", int8_t{1})}) {
        H5Tenum_insert(type.get(), name, &value);
      }
      return type;
    }
    case DType::kBfloat16:
      // h5py stores a type that it does not know as opaque bytes, and its name as an attribute.
      return Handle(H5Tcreate(H5T_OPAQUE, sizeof(bfloat16)), H5Tclose);
    default: throw InvalidArgumentError(StrCat("[keras/weights_file] expected weights of numbers; got ", dtype));
  }
}

void WriteText(hid_t object, const char* attribute, const std::string& text) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), H5T_VARIABLE);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Handle made =
      Written(H5Acreate2(object, attribute, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose, attribute);
  const char* value = text.c_str();
  H5Awrite(made.get(), type.get(), &value);
}

void WriteDataset(hid_t group, const std::string& name, const Tensor& value) {
  const Handle type = FileType(value.dtype());
  const std::span<const int64_t> dims = value.shape().dims();
  const std::vector<hsize_t> sizes(dims.begin(), dims.end());
  const Handle space(
      sizes.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr),
      H5Sclose);
  const Handle dataset = Written(
      H5Dcreate2(group, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Dclose, name);
  if (value.num_elements() > 0 &&
      H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, value.raw_data()) < 0) {
    throw InternalError(StrCat("[keras/weights_file] cannot write ", value.shape(), ": ", LastError()));
  }
  if (value.dtype() == DType::kBfloat16) WriteText(dataset.get(), "dtype", kBfloat16);
}

void WriteGroup(hid_t file, const WeightGroup& group) {
  const std::string path = group.path.empty() ? kVariables : group.path + "/" + kVariables;
  const Handle parents(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(parents.get(), 1);
  const Handle made = Written(H5Gcreate2(file, path.c_str(), parents.get(), H5P_DEFAULT, H5P_DEFAULT), H5Gclose, path);
  WriteText(made.get(), "name", group.name);
  for (size_t i = 0; i < group.values.size(); ++i) WriteDataset(made.get(), std::to_string(i), group.values[i]);
  if (group.idf_weights.defined()) WriteDataset(made.get(), kIdfWeights, group.idf_weights);
}

// ---- reading -----------------------------------------------------------------------------------------------------

class FileReader {
 public:
  FileReader(std::string_view bytes, const std::string& where)
      : where_(where),
        file_bytes_(bytes.size()),
        budget_(std::max<uint64_t>(kAlwaysAllowed, bytes.size() * kLargestGrowth)),
        chunks_{bytes.size(), budget_, kMostChunks},
        file_(Open(bytes)) {}

  std::vector<WeightGroup> Groups() {
    const Handle root = Opened(H5Gopen2(file_.get(), "/", H5P_DEFAULT), H5Gclose, "/");
    Visit(root.get(), "");
    std::sort(groups_.begin(), groups_.end(),
              [](const WeightGroup& a, const WeightGroup& b) { return a.path < b.path; });
    return std::move(groups_);
  }

 private:
  static constexpr int kDeepest = 64;
  static constexpr size_t kMostObjects = 1 << 20;
  static constexpr uint64_t kMostChunks = 1 << 20;

  [[noreturn]] void Fail(const std::string& what) const {
    throw DataLossError(StrCat("[keras/weights_file] expected an HDF5 file of weights in ", where_, "; ", what));
  }
  Handle Opened(hid_t id, Handle::Close close, const std::string& what) const {
    if (id < 0) Fail(StrCat("cannot read ", what, ", it is truncated or damaged: ", LastError()));
    return Handle(id, close);
  }

  Handle Open(std::string_view bytes) const {
    const Handle properties = MemoryFile();
    // The library copies the bytes.
    H5Pset_file_image(properties.get(), const_cast<char*>(bytes.data()), bytes.size());
    return Opened(bytes.empty() ? H5I_INVALID_HID : H5Fopen("weights", H5F_ACC_RDONLY, properties.get()), H5Fclose,
                  StrCat("its ", bytes.size(), " bytes"));
  }

  // Returns the names of the objects in a group. A link that is no hard link has no object of its own in this file.
  std::vector<std::string> Members(hid_t group, const std::string& path) const {
    struct Found {
      std::vector<std::string> names;
      std::string link;
    } found;
    const auto take = [](hid_t, const char* name, const H5L_info_t* info, void* out) -> herr_t {
      auto& into = *static_cast<Found*>(out);
      if (info->type != H5L_TYPE_HARD) into.link = name;
      into.names.emplace_back(name);
      return into.link.empty() && into.names.size() <= kMostObjects ? 0 : 1;
    };
    hsize_t position = 0;
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &position, take, &found) < 0) {
      Fail(StrCat("cannot list '", path, "': ", LastError()));
    }
    if (!found.link.empty()) Fail(StrCat("'", path, "/", found.link, "' is a link to another place or file"));
    if (found.names.size() > kMostObjects) Fail(StrCat("'", path, "' has more than ", kMostObjects, " members"));
    return std::move(found.names);
  }

  // Throws if the object was opened before: hard links can make a small file endless.
  void TakeOnce(hid_t object, const std::string& path) {
    H5O_info_t info;
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) Fail(StrCat("cannot read '", path, "': ", LastError()));
    if (!seen_.insert(info.addr).second) Fail(StrCat("'", path, "' is a second name of an object before it"));
    if (seen_.size() > kMostObjects) Fail(StrCat("it has more than ", kMostObjects, " objects"));
  }

  void Visit(hid_t group, const std::string& path) {
    if (std::count(path.begin(), path.end(), '/') > kDeepest) Fail("its groups are nested too deeply");
    for (const std::string& name : Members(group, path)) {
      const std::string inner = path.empty() ? name : StrCat(path, "/", name);
      const Handle object = Opened(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose, StrCat("'", inner, "'"));
      TakeOnce(object.get(), inner);
      if (H5Iget_type(object.get()) != H5I_GROUP) continue;
      if (name == kVariables) {
        groups_.push_back({path, "", {}});
        ReadValues(object.get(), inner, groups_.back());
      } else {
        Visit(object.get(), inner);
      }
    }
  }

  void ReadValues(hid_t group, const std::string& path, WeightGroup& into) {
    size_t count = Members(group, path).size();
    if (count > 0 && H5Lexists(group, kIdfWeights, H5P_DEFAULT) > 0) {
      --count;
      into.idf_weights = ReadMember(group, path, kIdfWeights);
    }
    for (size_t i = 0; i < count; ++i) {
      const std::string name = std::to_string(i);
      if (H5Lexists(group, name.c_str(), H5P_DEFAULT) <= 0) {
        Fail(StrCat("'", path, "' should hold datasets 0 to ", count - 1, ", but has no ", name));
      }
      into.values.push_back(ReadMember(group, path, name));
    }
  }

  Tensor ReadMember(hid_t group, const std::string& path, const std::string& name) {
    const std::string full = StrCat(path, "/", name);
    const Handle dataset = Opened(H5Dopen2(group, name.c_str(), H5P_DEFAULT), H5Dclose, StrCat("'", full, "'"));
    TakeOnce(dataset.get(), full);
    return ReadDataset(dataset.get(), full);
  }

  // The dtype of the elements, and the type as which they are read.
  struct Elements {
    DType dtype;
    hid_t memory_type;
  };
  Elements ElementsOf(hid_t stored, const std::string& path) const {
    const size_t size = H5Tget_size(stored);
    switch (H5Tget_class(stored)) {
      case H5T_FLOAT:
        return size > sizeof(float) ? Elements{DType::kFloat64, H5T_NATIVE_DOUBLE}
                                    : Elements{DType::kFloat32, H5T_NATIVE_FLOAT};
      case H5T_INTEGER:
        if (size == 1 && H5Tget_sign(stored) == H5T_SGN_NONE) return {DType::kUint8, H5T_NATIVE_UINT8};
        if (size == sizeof(int32_t) && H5Tget_sign(stored) == H5T_SGN_2) return {DType::kInt32, H5T_NATIVE_INT32};
        return {DType::kInt64, H5T_NATIVE_INT64};
      case H5T_ENUM:
        if (size == 1) return {DType::kBool, stored};
        break;
      case H5T_OPAQUE:
        // The attribute is not read: in a damaged file, texts of variable length can crash the library.
        if (size == sizeof(bfloat16)) return {DType::kBfloat16, stored};
        break;
      default: break;
    }
    throw UnimplementedError(
        StrCat("[keras/weights_file] expected weights of numbers in ", where_, "; '", path, "' holds something else"));
  }

  // Throws if the elements of a dataset are in other files, or if more bytes come out of it than it says. `sizes` are
  // its dimensions, and `count` is the number of its elements.
  void CheckStorage(hid_t dataset, hid_t stored, const std::vector<hsize_t>& sizes, uint64_t count,
                    const std::string& path) {
    const Handle properties = Opened(H5Dget_create_plist(dataset), H5Pclose, "how a dataset is stored");
    const H5D_layout_t layout = H5Pget_layout(properties.get());
    const bool is_plain = layout == H5D_COMPACT || layout == H5D_CONTIGUOUS;
    if ((!is_plain && layout != H5D_CHUNKED) || H5Pget_external_count(properties.get()) != 0) {
      Fail(StrCat("the values of '", path, "' are not in the file itself"));
    }
    const size_t element_bytes = std::max<size_t>(1, H5Tget_size(stored));
    if (count > MostElements(dataset, is_plain, element_bytes)) {
      Fail(StrCat("'", path, "' says that it has ", count, " elements, more than it can store"));
    }
    if (is_plain || count == 0) return;
    const std::string problem = CheckChunks(dataset, properties.get(), sizes, element_bytes, chunks_);
    if (!problem.empty()) Fail(StrCat("'", path, "' ", problem));
  }

  // Returns how many elements the file can contain, so that a damaged shape does not make us allocate too much.
  // Compressed data may be as much larger as deflate allows.
  uint64_t MostElements(hid_t dataset, bool is_plain, size_t element_bytes) const {
    constexpr uint64_t kLargestRatio = 1100;
    if (H5Dget_storage_size(dataset) == 0) return 0;
    return file_bytes_ * (is_plain ? 1 : kLargestRatio) / element_bytes;
  }

  Tensor ReadDataset(hid_t dataset, const std::string& path) {
    const Handle stored = Opened(H5Dget_type(dataset), H5Tclose, StrCat("'", path, "'"));
    const Elements elements = ElementsOf(stored.get(), path);
    const Handle space = Opened(H5Dget_space(dataset), H5Sclose, StrCat("'", path, "'"));
    const int rank = H5Sget_simple_extent_ndims(space.get());
    if (rank < 0 || rank > H5S_MAX_RANK) Fail(StrCat("'", path, "' has no shape"));
    std::vector<hsize_t> sizes(static_cast<size_t>(rank));
    H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr);
    const hssize_t count = H5Sget_simple_extent_npoints(space.get());
    if (count < 0) Fail(StrCat("'", path, "' has no shape"));
    CheckStorage(dataset, stored.get(), sizes, static_cast<uint64_t>(count), path);
    const uint64_t bytes = static_cast<uint64_t>(count) * DTypeSize(elements.dtype);
    if (bytes > budget_) {
      Fail(StrCat("with '", path, "' its weights have more bytes than a file of ", file_bytes_,
                  " bytes may unpack to (", std::max<uint64_t>(kAlwaysAllowed, file_bytes_ * kLargestGrowth), ")"));
    }
    budget_ -= bytes;
    Tensor value(elements.dtype, Shape(std::vector<int64_t>(sizes.begin(), sizes.end())));
    if (value.num_elements() > 0 &&
        H5Dread(dataset, elements.memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value.raw_data()) < 0) {
      Fail(StrCat("cannot read '", path, "', it is truncated or damaged: ", LastError()));
    }
    return value;
  }

  const std::string& where_;
  const size_t file_bytes_;
  uint64_t budget_;  // bytes that weights may still take
  ChunkBudget chunks_;
  const Handle file_;
  std::set<haddr_t> seen_;  // places of the objects that were opened
  std::vector<WeightGroup> groups_;
};

}  // namespace

std::string EncodeWeights(const std::vector<WeightGroup>& groups) {
  const MutexLock lock(LibraryLock());
  const Quiet quiet;
  std::set<std::string> paths;
  const Handle properties = MemoryFile();
  const Handle file = Written(H5Fcreate("weights", H5F_ACC_TRUNC, H5P_DEFAULT, properties.get()), H5Fclose, "a file");
  for (const WeightGroup& group : groups) {
    if (!paths.insert(group.path).second) {
      throw InvalidArgumentError(StrCat("[keras/weights_file] expected each path once; got '", group.path, "' twice"));
    }
    WriteGroup(file.get(), group);
  }
  H5Fflush(file.get(), H5F_SCOPE_GLOBAL);
  const ssize_t size = H5Fget_file_image(file.get(), nullptr, 0);
  if (size < 0) throw InternalError(StrCat("[keras/weights_file] cannot write a file: ", LastError()));
  std::string bytes(static_cast<size_t>(size), '\0');
  H5Fget_file_image(file.get(), bytes.data(), bytes.size());
  return bytes;
}

std::vector<WeightGroup> DecodeWeights(std::string_view bytes, const std::string& where) {
  const MutexLock lock(LibraryLock());
  const Quiet quiet;
  try {
    return FileReader(bytes, where).Groups();
  } catch (const DataLossError&) {
    BeQuietAtExit();
    throw;
  }
}

}  // namespace cohort::keras
