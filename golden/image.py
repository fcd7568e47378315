"""Makes small pictures in all formats, and what Pillow and the processors of transformers make of them.

    python golden/image.py          golden/image/: small parts of the pictures of scikit-image, and files of all kinds
    python golden/image.py FOLDER   the same processors in full size, with twenty whole pictures, to a FOLDER that is not kept

`ATTENTIVE_PICTURES=FOLDER cargo test -p attentive-image` reads the second.
"""

import sys
from pathlib import Path

import numpy
import skimage.data
from PIL import Image, ImageOps
from safetensors.numpy import save_file
from transformers.image_transforms import convert_to_rgb
from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
from transformers.models.deit.image_processing_pil_deit import DeiTImageProcessorPil
from transformers.models.detr.image_processing_pil_detr import DetrImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

GOLDEN = Path(__file__).resolve().parent / "image"
NAMES = [
    "astronaut", "chelsea", "coffee", "rocket", "immunohistochemistry", "retina", "hubble_deep_field", "colorwheel",
    "logo", "camera", "coins", "moon", "page", "text", "clock", "brick", "grass", "gravel", "cell", "microaneurysms",
]

# A side of `whole` is that of the real model; of `small` it is some tenth.
WHOLE = {
    "vit": ViTImageProcessorPil(),
    "deit": DeiTImageProcessorPil(),
    "dinov2": BitImageProcessorPil(size={"shortest_edge": 256}),
    "detr": DetrImageProcessorPil(),
}
SMALL = {
    "vit": ViTImageProcessorPil(size={"height": 20, "width": 24}),
    "deit": DeiTImageProcessorPil(size={"height": 24, "width": 24}, crop_size={"height": 21, "width": 20}),
    "dinov2": BitImageProcessorPil(size={"shortest_edge": 22}, crop_size={"height": 20, "width": 26}),
    "detr": DetrImageProcessorPil(size={"shortest_edge": 30, "longest_edge": 38}),
    "nearest": ViTImageProcessorPil(size={"height": 20, "width": 24}, resample=0),
    "lanczos": ViTImageProcessorPil(size={"height": 20, "width": 24}, resample=1),
    "box": ViTImageProcessorPil(size={"height": 20, "width": 24}, resample=4),
    "hamming": ViTImageProcessorPil(size={"height": 20, "width": 24}, resample=5),
    "larger": ViTImageProcessorPil(size={"height": 90, "width": 70}, resample=3),
}


def colour(array):
    array = array[..., :3] if array.ndim == 3 else array
    return Image.fromarray(array if array.dtype == numpy.uint8 else (array * 255).astype(numpy.uint8)).convert("RGB")


def fit(processor, picture, **options):
    more = {"do_pad": False} if isinstance(processor, DetrImageProcessorPil) else {}
    return processor(images=picture, return_tensors="np", **more, **options)["pixel_values"][0]


def processed(folder, pictures, processors, values=()):
    answers = {}
    for kind, processor in processors.items():
        processor.save_pretrained(folder / kind)
        for name, picture in pictures.items():
            picture.save(folder / f"{name}.png")
            fitted = fit(processor, picture, do_rescale=False, do_normalize=False)
            answers[f"{name}.{kind}"] = numpy.ascontiguousarray(fitted.astype(numpy.uint8))
            if name in values:
                answers[f"{name}.{kind}.values"] = numpy.ascontiguousarray(fit(processor, picture).astype(numpy.float32))
    return answers


def kinds(folder, picture):
    """Files of all kinds, by name."""
    array = numpy.array(picture)
    height, width = array.shape[:2]
    alpha = numpy.linspace(0, 255, width).astype(numpy.uint8)[None].repeat(height, 0)
    rgba = Image.fromarray(numpy.dstack([array, alpha]))
    grey, few = picture.convert("L"), picture.quantize(16)
    exif = Image.Exif()
    exif[0x0112] = 6
    wide = (numpy.array(grey).astype(numpy.uint16) << 8) + 77
    saves = {
        "grey.png": (grey, {}),
        "bits.png": (picture.convert("1"), {}),
        "grey_alpha.png": (rgba.convert("LA"), {}),
        "alpha.png": (rgba, {}),
        "palette.png": (few, {}),
        "palette_clear.png": (few, {"transparency": 3}),
        "wide.png": (Image.fromarray(wide), {}),
        "turned.png": (picture, {"exif": exif}),
        "colour.jpg": (picture, {"quality": 90}),
        "full_colour.jpg": (picture, {"quality": 95, "subsampling": 0}),
        "progressive.jpg": (picture, {"quality": 90, "progressive": True}),
        "grey.jpg": (grey, {"quality": 90}),
        "turned.jpg": (picture, {"quality": 90, "exif": exif}),
        "cmyk.jpg": (picture.convert("CMYK"), {"quality": 95}),
        "lossy.webp": (picture, {"quality": 90}),
        "lossless.webp": (rgba, {"lossless": True, "exact": True}),
        "turned.webp": (picture, {"lossless": True, "exif": exif}),
    }
    answers = {}
    for name, (image, options) in saves.items():
        image.save(folder / name, **options)
        read = ImageOps.exif_transpose(Image.open(folder / name))
        if name == "wide.png":
            # Pillow would make everything above 255 white.
            read = Image.fromarray((wide >> 8).astype(numpy.uint8))
        answers[f"decoded.{name}"] = numpy.ascontiguousarray(convert_to_rgb(read, return_numpy=True))
    return answers


def main():
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        pictures = {name: colour(getattr(skimage.data, name)()) for name in NAMES}
        answers = processed(folder, pictures, WHOLE)
    else:
        folder = GOLDEN
        folder.mkdir(exist_ok=True)
        part = lambda name, box: colour(getattr(skimage.data, name)()).crop(box)
        pictures = {
            "astronaut": part("astronaut", (190, 60, 262, 116)),
            "chelsea": part("chelsea", (120, 60, 171, 131)),
            "coffee": part("coffee", (200, 180, 248, 228)),
        }
        answers = processed(folder, pictures, SMALL, values=("astronaut",))
        answers |= kinds(folder, pictures["chelsea"].crop((0, 0, 34, 25)))
    save_file(answers, folder / "answers.safetensors")


main()
