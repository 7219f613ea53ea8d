// Files of weights that somebody has made on purpose so that reading them reads other files, takes much memory or never
// ends. The files are made by the HDF5 library.
#include "cohort/keras/files/weights_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <zlib.h>

#include <functional>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"

namespace cohort::keras {
namespace {

using ::testing::HasSubstr;

class HostileWeightsTest : public ::testing::Test {
 protected:
  // Makes a file with a group "layer" and in it a group "vars". Returns its bytes.
  std::string Make(const std::function<void(hid_t file, hid_t layer, hid_t vars)>& fill) {
    const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t layer = H5Gcreate2(file, "layer", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t vars = H5Gcreate2(layer, "vars", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    fill(file, layer, vars);
    H5Gclose(vars);
    H5Gclose(layer);
    H5Fclose(file);
    return ReadFile(path_);
  }
  static void AddDataset(hid_t group, const char* name, hsize_t size, hid_t properties) {
    const hid_t space = H5Screate_simple(1, &size, nullptr);
    const hid_t dataset = H5Dcreate2(group, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    ASSERT_GE(dataset, 0) << name;
    if (H5Pget_layout(properties) == H5D_CHUNKED) {
      const std::vector<float> zeros(size);
      H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data());
    }
    H5Dclose(dataset);
    H5Sclose(space);
  }
  static std::string Refused(const std::string& bytes) {
    return MessageOf<DataLossError>([&] { DecodeWeights(bytes, "a test"); });
  }

  const testing::TempFolder folder_;
  const std::string path_ = folder_ / "made.h5";
};

TEST_F(HostileWeightsTest, ExternalStorageReadsNoOtherFile) {
  const std::string secret = folder_ / "secret";
  WriteFileAtomically(secret, std::string(64, 's'));
  const std::string bytes = Make([&](hid_t, hid_t, hid_t vars) {
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(properties, secret.c_str(), 0, 64);
    AddDataset(vars, "0", 16, properties);
    H5Pclose(properties);
  });
  EXPECT_THAT(Refused(bytes), HasSubstr("'layer/vars/0' are not in the file itself"));
}

TEST_F(HostileWeightsTest, AVirtualDatasetReadsNoOtherFile) {
  const std::string bytes = Make([&](hid_t, hid_t, hid_t vars) {
    const hsize_t size = 16;
    const hid_t space = H5Screate_simple(1, &size, nullptr);
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(properties, space, "/none/other.h5", "data", space);
    AddDataset(vars, "0", size, properties);
    H5Pclose(properties);
    H5Sclose(space);
  });
  EXPECT_THAT(Refused(bytes), HasSubstr("'layer/vars/0' are not in the file itself"));
}

TEST_F(HostileWeightsTest, LinksToOtherPlacesAreRefused) {
  EXPECT_THAT(Refused(Make([](hid_t, hid_t, hid_t vars) {
                H5Lcreate_external("/none/other.h5", "/data", vars, "0", H5P_DEFAULT, H5P_DEFAULT);
              })),
              HasSubstr("'layer/vars/0' is a link"));
  EXPECT_THAT(Refused(Make([](hid_t, hid_t layer, hid_t) {
                H5Lcreate_soft("/layer", layer, "again", H5P_DEFAULT, H5P_DEFAULT);
              })),
              HasSubstr("'layer/again' is a link"));
}

// 30 groups, each of which contains the next one under two names, have 2^30 paths.
TEST_F(HostileWeightsTest, AGroupWithTwoNamesIsRefused) {
  const std::string bytes = Make([](hid_t, hid_t layer, hid_t) {
    hid_t outer = H5Gopen2(layer, ".", H5P_DEFAULT);
    for (int depth = 0; depth < 30; ++depth) {
      const hid_t inner = H5Gcreate2(outer, "a", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
      H5Lcreate_hard(outer, "a", outer, "b", H5P_DEFAULT, H5P_DEFAULT);
      H5Gclose(outer);
      outer = inner;
    }
    H5Gclose(outer);
  });
  EXPECT_THAT(Refused(bytes), HasSubstr("second name"));
}

TEST_F(HostileWeightsTest, GroupsInGroupsAreBounded) {
  const std::string bytes = Make([](hid_t, hid_t layer, hid_t) {
    hid_t outer = H5Gopen2(layer, ".", H5P_DEFAULT);
    for (int depth = 0; depth < 100; ++depth) {
      const hid_t inner = H5Gcreate2(outer, "a", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
      H5Gclose(outer);
      outer = inner;
    }
    H5Gclose(outer);
  });
  EXPECT_THAT(Refused(bytes), HasSubstr("nested too deeply"));
}

// Each of the datasets could be right; together they are more than the file explains.
TEST_F(HostileWeightsTest, AllWeightsTogetherAreBounded) {
  const std::string bytes = Make([](hid_t, hid_t, hid_t vars) {
    const hsize_t size = hsize_t{24} << 20;  // 96 MiB of float32
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 1 << 20;
    H5Pset_chunk(properties, 1, &chunk);
    H5Pset_deflate(properties, 1);
    for (const char* name : {"0", "1", "2"}) AddDataset(vars, name, size, properties);
    H5Pclose(properties);
  });
  EXPECT_LT(bytes.size(), size_t{4} << 20);
  EXPECT_THAT(Refused(bytes), HasSubstr("with 'layer/vars/2' its weights have more bytes"));
}

// The only chunk of a small dataset unpacks to 8 MiB. H5Dwrite_chunk writes it as it is.
TEST_F(HostileWeightsTest, AChunkUnpacksToNoMoreThanItsSize) {
  const auto made = [&](size_t unpacked) {
    return Make([&](hid_t, hid_t, hid_t vars) {
      const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
      const hsize_t chunk = 16;
      H5Pset_chunk(properties, 1, &chunk);
      H5Pset_deflate(properties, 6);
      AddDataset(vars, "0", 16, properties);
      const std::string zeros(unpacked, '\0');
      std::string packed(compressBound(zeros.size()), '\0');
      uLongf size = packed.size();
      ASSERT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(zeros.data()),
                         zeros.size()),
                Z_OK);
      const hid_t dataset = H5Dopen2(vars, "0", H5P_DEFAULT);
      const hsize_t offset = 0;
      ASSERT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &offset, size, packed.data()), 0);
      H5Dclose(dataset);
      H5Pclose(properties);
    });
  };
  EXPECT_EQ(DecodeWeights(made(16 * sizeof(float)), "a test").at(0).values.at(0).shape(), Shape{16});
  EXPECT_THAT(Refused(made(8 << 20)), HasSubstr("'layer/vars/0' has a chunk that unpacks to more than 64 bytes"));
  EXPECT_THAT(Refused(made(15 * sizeof(float))), HasSubstr("unpacks to fewer than 64 bytes"));
}

TEST_F(HostileWeightsTest, AChunkMayNotBeMuchLargerThanTheFile) {
  const std::string bytes = Make([](hid_t, hid_t, hid_t vars) {
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t size = 1, most = H5S_UNLIMITED, chunk = hsize_t{1} << 29;  // 2 GiB of float32
    H5Pset_chunk(properties, 1, &chunk);
    H5Pset_deflate(properties, 1);
    const hid_t space = H5Screate_simple(1, &size, &most);
    const hid_t dataset = H5Dcreate2(vars, "0", H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    const hsize_t offset = 0;
    H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &offset, 8, "12345678");
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(properties);
  });
  EXPECT_THAT(Refused(bytes), HasSubstr("'layer/vars/0' has chunks of more than"));
}

TEST_F(HostileWeightsTest, CompressedWeightsAreRead) {
  const std::string bytes = Make([](hid_t, hid_t, hid_t vars) {
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 64;
    H5Pset_chunk(properties, 1, &chunk);
    H5Pset_shuffle(properties);
    H5Pset_deflate(properties, 6);
    H5Pset_fletcher32(properties);
    AddDataset(vars, "0", 1000, properties);
    H5Pclose(properties);
  });
  const std::vector<WeightGroup> groups = DecodeWeights(bytes, "a test");
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].values.at(0).shape(), Shape{1000});
}

}  // namespace
}  // namespace cohort::keras
