"""Files of images: TensorFlow and Keras read the same pixels from them, and show the same images in TensorBoard."""

import json

import keras
import numpy as np
import PIL.Image
import pytest
import tensorflow as tf

import our_programs

RANDOM = np.random.default_rng(7)


def pixels(rows, columns, channels):
    """Smooth noise, so that JPEG files have much to round."""
    small = RANDOM.integers(0, 256, (rows // 4 + 2, columns // 4 + 2, channels)).astype(np.float32)
    return np.clip(tf.image.resize(small, (rows, columns), "bicubic").numpy(), 0, 255).astype(np.uint8)


def write_all(folder):
    """Writes files of all kinds that PNG and JPEG have."""
    folder.mkdir(parents=True)
    rgb, rgba, grey = pixels(21, 30, 3), pixels(9, 16, 4), pixels(33, 20, 1)[..., 0]
    images = {
        "palette.png": PIL.Image.fromarray(rgb).quantize(50),
        "bits.png": PIL.Image.fromarray(grey > 100),
        "grey.png": PIL.Image.fromarray(grey),
        "opacity.png": PIL.Image.fromarray(rgba),
        "grey_opacity.png": PIL.Image.fromarray(rgba).convert("LA"),
        "rgb.png": PIL.Image.fromarray(rgb),
        "rgb.jpg": PIL.Image.fromarray(rgb),
        "grey.jpeg": PIL.Image.fromarray(grey),
        "inks.jpg": PIL.Image.fromarray(rgb).convert("CMYK"),
    }
    for name, image in images.items():
        image.save(folder / name)
    PIL.Image.fromarray(rgb).save(folder / "progressive.jpg", progressive=True, quality=60, subsampling=0)
    PIL.Image.fromarray(rgb).quantize(9).save(folder / "one_colour_is_transparent.png", transparency=3)
    for name, channels in ("deep_grey.png", 1), ("deep.png", 3):
        deep = RANDOM.integers(0, 65536, (5, 6, channels)).astype(np.uint16)
        (folder / name).write_bytes(tf.io.encode_png(deep).numpy())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("images")
    write_all(path / "first")
    write_all(path / "second" / "inside")
    return path


def run(*stage):
    return json.loads(our_programs.output("interop_data", json.dumps([["image_folder", *stage]])))["elements"]


@pytest.mark.parametrize("channels,color_mode", [(1, "grayscale"), (3, "rgb"), (4, "rgba")])
@pytest.mark.parametrize("interpolation,crop", [("bilinear", False), ("bilinear", True), ("nearest", False)])
def test_folders(folder, channels, color_mode, interpolation, crop):
    # TensorFlow reads no opacity from JPEG files, and 1 instead of 255 where it adds it to an image of one bit. Neither
    # reads CMYK as grey.
    names = {1: ["inks.jpg"], 3: [], 4: ["*.jp*g", "bits.png"]}[channels]
    left_out = [file for name in names for file in folder.rglob(name)]
    for file in left_out:
        file.rename(f"{file}.left_out")
    theirs = keras.utils.image_dataset_from_directory(
        folder, label_mode="categorical", color_mode=color_mode, batch_size=4, image_size=(17, 12), shuffle=False,
        interpolation=interpolation, crop_to_aspect_ratio=crop, verbose=False,
    )  # fmt: skip
    ours = run(str(folder), 2, channels, 4, 17, 12, int(interpolation == "nearest"), int(crop))
    for file in left_out:
        (file.parent / f"{file.name}.left_out").rename(file)
    assert len(ours) == len(theirs)
    for (images, labels), (our_images, our_labels) in zip(theirs, ours):
        np.testing.assert_allclose(images.numpy().ravel(), our_images, atol=2e-3)
        assert labels.numpy().ravel().tolist() == our_labels


def test_a_transparent_colour_makes_no_channel(tmp_path):
    """Without a number of channels, only opacity and palettes with transparent colours make one more."""
    rgb, grey = pixels(6, 5, 3), pixels(6, 5, 1)[..., 0]
    PIL.Image.fromarray(rgb).save(tmp_path / "rgb.png", transparency=tuple(int(value) for value in rgb[2, 3]))
    PIL.Image.fromarray(grey).save(tmp_path / "grey.png", transparency=int(grey[1, 1]))
    PIL.Image.fromarray(rgb).quantize(9).save(tmp_path / "palette.png", transparency=3)
    for name in "rgb.png", "grey.png", "palette.png":
        theirs = tf.io.decode_png((tmp_path / name).read_bytes()).numpy()
        ours = json.loads(our_programs.output("interop_formats", "decode-image", tmp_path / name))
        assert ours == [list(theirs.shape), theirs.ravel().tolist()], name


def test_images_in_event_files(tmp_path):
    """TensorFlow writes the same pixels for numbers of any range, with and without NaN."""
    numbers = RANDOM.normal(size=(2, 3, 4, 3)).astype(np.float32)
    numbers[1] = np.abs(numbers[1])
    numbers[1, 0, 1, 2] = np.nan
    our_programs.output("interop_formats", "images", tmp_path / "numbers", *map(repr, numbers.ravel().tolist()))
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        summary = session.run(tf.compat.v1.summary.image("pictures", tf.constant(numbers), max_outputs=2))
    theirs = tf.compat.v1.Summary.FromString(summary).value
    ours = [
        value
        for file in (tmp_path / "numbers").iterdir()
        for event in tf.compat.v1.train.summary_iterator(str(file))
        for value in event.summary.value
    ]
    assert [value.tag for value in ours] == [value.tag for value in theirs]
    for our_value, their_value in zip(ours, theirs):
        assert (our_value.image.height, our_value.image.width, our_value.image.colorspace) == (3, 4, 3)
        decoded = [tf.io.decode_png(v.image.encoded_image_string).numpy() for v in (our_value, their_value)]
        np.testing.assert_array_equal(*decoded)
