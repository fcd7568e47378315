"""What torchvision makes of a picture of Pillow when it changes its colours, blurs it, takes a part of it or erases one.

    python golden/augment.py        golden/image/augment.safetensors

Each tensor is called `<operation> <numbers>`: what it does to golden/image/astronaut.png, pixel by pixel.
"""

from pathlib import Path

import numpy
import torch
from PIL import Image, ImageFilter
from safetensors.numpy import save_file
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

GOLDEN = Path(__file__).resolve().parent / "image"
FACTORS = [0.0, 0.35, 0.9, 1.0, 1.25, 1.8]
CASES = {
    "brightness": (F.adjust_brightness, FACTORS),
    "contrast": (F.adjust_contrast, FACTORS),
    "saturation": (F.adjust_saturation, FACTORS),
    "hue": (F.adjust_hue, [-0.5, -0.31, -0.1, 0.0, 0.07, 0.25, 0.5]),
    "blur": (lambda picture, radius: picture.filter(ImageFilter.GaussianBlur(radius)), [0.1, 0.4, 0.75, 1.0, 1.7, 2.0, 30.0]),
    "solarize": (F.solarize, [128, 200]),
    "grey": (lambda picture, channels: F.rgb_to_grayscale(picture, channels), [3]),
}
# Left, top, width, height; height and width of the result.
PARTS = [(3, 10, 40, 31, 16, 16), (0, 0, 72, 56, 24, 20), (60, 50, 12, 6, 32, 32)]


def main():
    picture = Image.open(GOLDEN / "astronaut.png").convert("RGB")
    answers = {}
    for name, (operation, numbers) in CASES.items():
        for number in numbers:
            answers[f"{name} {number}"] = operation(picture, number)
    for part in PARTS:
        left, top, width, height, *size = part
        words = " ".join(map(str, part))
        for mode in (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC):
            answers[f"{mode.value} {words}"] = F.resized_crop(picture, top, left, height, width, size, mode)
        planes = torch.tensor(numpy.array(picture)).permute(2, 0, 1)
        erased = F.erase(planes, top, left, height, width, torch.tensor([124, 116, 104], dtype=torch.uint8)[:, None, None])
        answers[f"erase {words}"] = erased.permute(1, 2, 0).numpy()
    answers = {name: numpy.ascontiguousarray(numpy.array(answer)) for name, answer in answers.items()}
    save_file(answers, GOLDEN / "augment.safetensors")


main()
