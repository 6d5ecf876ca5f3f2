"""Renders the pictures of `pictures/` and asks onnxruntime about them: what `expected.csv` holds.

    pip install pillow==13.0.0 numpy==2.4.6 opencv-python-headless==5.0.0.93 onnxruntime==1.32.0
    python make_pictures.py model/ch_ppocr_mobile_v2.0_cls_infer.onnx

The input is made twice: with PP-OCR's own code, whose `cv2.resize` rounds each pixel to a whole number, and with the same filter in
floats, which is what gpufeed computes.
"""

import csv
import math
import sys
from pathlib import Path

import cv2
import numpy
import onnxruntime
from PIL import Image, ImageDraw, ImageFilter, ImageFont

HERE = Path(__file__).parent
FONTS = Path("/usr/share/fonts/truetype/dejavu")
SIZE = (224, 64)  # of a picture, width before height
INPUT = (48, 192)  # of the network, height before width

# File name, text, font, size in pixels, ink, paper, blur radius, slant in degrees. The last ones are hard on purpose.
TEXTS = [
    ("invoice", "Invoice 4711", "DejaVuSans.ttf", 34, (20, 20, 30), (250, 250, 245), 0.0, 0.0),
    ("station", "Hauptbahnhof", "DejaVuSans-Bold.ttf", 29, (255, 255, 255), (20, 60, 140), 0.0, 1.5),
    ("plate", "KA-LU 2026", "DejaVuSansMono-Bold.ttf", 34, (10, 10, 10), (235, 190, 40), 0.8, -2.0),
    ("serif", "once upon a time", "DejaVuSerif.ttf", 26, (70, 40, 20), (225, 210, 180), 0.5, 0.0),
    ("faint", "barely there", "DejaVuSans-ExtraLight.ttf", 34, (150, 150, 150), (190, 190, 185), 1.0, 2.0),
    ("blurred", "out of focus", "DejaVuSans.ttf", 34, (30, 30, 30), (220, 225, 230), 3.0, 0.0),
    ("turnable", "NOXON SWIMS", "DejaVuSans.ttf", 30, (30, 30, 30), (240, 240, 240), 0.0, 0.0),
    ("digits", "6 9 8 0 1 6 9", "DejaVuSansMono.ttf", 28, (40, 40, 60), (230, 235, 230), 1.2, 0.0),
]


def render(text, font, size, ink, paper, blur, slant):
    picture = Image.new("RGB", SIZE, paper)
    font = ImageFont.truetype(str(FONTS / font), size)
    ImageDraw.Draw(picture).text((SIZE[0] / 2, SIZE[1] / 2), text, ink, font, anchor="mm")
    picture = picture.rotate(slant, Image.BICUBIC, fillcolor=paper)
    return picture.filter(ImageFilter.GaussianBlur(blur)) if blur else picture


def resized_width(picture):
    height, width = picture.shape[:2]
    return min(math.ceil(INPUT[0] * width / height), INPUT[1])


def normalised(resized):
    """From HWC with values of 0 to 255 to CHW of -1 to 1, padded to the right."""
    values = (resized.astype("float32").transpose(2, 0, 1) / 255 - 0.5) / 0.5
    padded = numpy.zeros((3, *INPUT), "float32")
    padded[:, :, : values.shape[2]] = values
    return padded


def as_ppocr(picture):
    return normalised(cv2.resize(picture, (resized_width(picture), INPUT[0])))


def in_floats(picture):
    """`INTER_LINEAR` without rounding: two taps an axis, around the pixel's centre."""

    def taps(before, after):
        at = (numpy.arange(after) + 0.5) * before / after - 0.5
        first = numpy.floor(at)
        part = at - first
        first = first.astype(int)
        return first.clip(0, before - 1), (first + 1).clip(0, before - 1), part

    top, bottom, y = taps(picture.shape[0], INPUT[0])
    left, right, x = taps(picture.shape[1], resized_width(picture))
    picture, x, y = picture.astype("float64"), x[None, :, None], y[:, None, None]
    rows = picture[top] * (1 - y) + picture[bottom] * y
    return normalised(rows[:, left] * (1 - x) + rows[:, right] * x)


def main():
    network = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
    rows = []
    for turn in (0, 180):
        folder = HERE / "pictures" / str(turn)
        folder.mkdir(parents=True, exist_ok=True)
        for name, *recipe in TEXTS:
            file = folder / f"{name}.png"
            render(*recipe).rotate(turn).save(file, optimize=True)
            picture = cv2.imread(str(file))  # Blue, green, red.
            answers = [network.run(None, {"x": make(picture)[None]})[0][0] for make in (in_floats, as_ppocr)]
            rows.append([f"{turn}/{name}.png", *(f"{answer[1]:.9f}" for answer in answers)])
    with open(HERE / "expected.csv", "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["picture", "upside_down", "upside_down_of_rounded_pixels"])
        table.writerows(sorted(rows))


if __name__ == "__main__":
    main()
