#!/usr/bin/env python3
"""Makes the JPEG files of this folder, and `expected.txt`: for each file and fraction of its size, what libjpeg-turbo decodes it to.

Run once, here, with Python 3, numpy, Pillow, the tool cjpeg, and the library libturbojpeg.so.0 (Debian: libjpeg-turbo-progs,
libturbojpeg0). A line of `expected.txt` is: file, divisor, width, height, channels (1 grey, 3 RGB, 4 CMYK), and the 64-bit FNV-1a
hash of the pixels. The pixels of CMYK and YCCK files are as they are stored.
"""
import ctypes as C
import io
import pathlib
import subprocess
import tempfile

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).parent


def picture(width, height):
    """Smooth colours, edges and some noise, so that all coefficients occur."""
    rng = np.random.default_rng(width * 1000 + height)
    y, x = np.mgrid[0:height, 0:width]
    red = 127 + 100 * np.sin(x / 5) + rng.normal(0, 12, x.shape)
    green = 255 * ((x // 7 + y // 5) % 2) + rng.normal(0, 8, x.shape)
    blue = x * 255 / width + 40 * np.cos(y / 3)
    return Image.fromarray(np.dstack([red, green, blue]).clip(0, 255).astype(np.uint8))


def cjpeg(image, *options, script=None):
    with tempfile.TemporaryDirectory() as folder:
        if script:
            path = pathlib.Path(folder, "scans.txt")
            path.write_text(script)
            options = (*options, "-scans", str(path))
        source = io.BytesIO()
        image.save(source, "PPM")
        return subprocess.run(["cjpeg", *options], input=source.getvalue(), capture_output=True, check=True).stdout


def pillow(image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


SAMPLINGS = {
    "444": "1x1", "422": "2x1", "440": "1x2", "420": "2x2", "411": "4x1", "141": "1x4", "410": "4x2", "241": "2x4",
    "311": "3x1", "321": "3x2,1x1,1x1", "mixed": "2x2,2x1,1x2", "chroma-larger": "1x1,2x2,1x1", "blue-larger": "2x1,1x1,2x2",
    "333": "3x2,1x2,3x1", "equal22": "2x2,2x2,2x2", "quarter": "4x4,2x2,1x1",
}
SCRIPTS = {
    "separate": "0;1;2;",
    "backwards": "2;1;0;",
    "luma-first": "0;1 2;",
    "chroma-first": "1 2;0;",
    "spectral": "0 1 2: 0-0, 0, 0; 0: 1-2, 0, 0; 2: 1-63, 0, 0; 0: 3-9, 0, 0; 1: 1-63, 0, 0; 0: 10-63, 0, 0;",
    "bits": "0: 0-0, 0, 2; 1 2: 0-0, 0, 2; 0: 1-63, 0, 3; 2: 1-63, 0, 1; 1: 1-5, 0, 2; 1: 6-63, 0, 1; 0 1 2: 0-0, 2, 1;"
    "0: 1-63, 3, 2; 0: 1-63, 2, 1; 1: 1-5, 2, 1; 0 1 2: 0-0, 1, 0; 1: 1-63, 1, 0; 2: 1-63, 1, 0; 0: 1-63, 1, 0;",
}


def files():
    image = picture(45, 37)
    for name, sampling in SAMPLINGS.items():
        blocks = sum(int(factors[0]) * int(factors[2]) for factors in sampling.split(","))
        # At most ten blocks may be interleaved.
        script = "0;1;2;" if blocks > 10 else None
        yield f"sampling-{name}", cjpeg(image, "-quality", "80", "-sample", sampling, script=script)
    for name in ("420", "422", "440", "311", "mixed"):
        yield f"progressive-{name}", cjpeg(image, "-quality", "85", "-progressive", "-sample", SAMPLINGS[name])
    for name, script in SCRIPTS.items():
        options = ("-quality", "85", "-sample", "2x1" if name in ("backwards", "bits") else "2x2")
        yield f"scans-{name}", cjpeg(image, *options, script=script)
        yield f"restarts-{name}", cjpeg(image, *options, "-restart", "2B", script=script)
    for name, options in {
        "every-block": ("-restart", "1B"), "every-row": ("-restart", "1"), "progressive": ("-progressive", "-restart", "3B"),
    }.items():
        yield f"restarts-{name}", cjpeg(image, "-quality", "80", *options)
    yield "coarse", cjpeg(image, "-quality", "1")
    yield "fine", cjpeg(image, "-quality", "100", "-sample", "1x1", "-optimize")
    yield "rgb", cjpeg(image, "-quality", "85", "-rgb")
    yield "arithmetic", cjpeg(image, "-quality", "80", "-arithmetic")
    yield "grey", cjpeg(image, "-quality", "85", "-grayscale")
    yield "grey-22", cjpeg(image, "-quality", "85", "-grayscale", "-sample", "2x2")
    yield "grey-progressive", cjpeg(image, "-quality", "85", "-grayscale", "-progressive", "-restart", "1")
    cmyk = pillow(image.convert("CMYK"), quality=85)
    adobe = cmyk.index(b"Adobe") + 11
    yield "cmyk", cmyk
    yield "ycck", cmyk[:adobe] + b"\x02" + cmyk[adobe + 1 :]
    yield "cmyk-progressive", pillow(image.convert("CMYK"), quality=85, progressive=True)
    for width, height in ((1, 1), (2, 3), (5, 2), (8, 8), (16, 16), (17, 9), (70, 1), (1, 70)):
        yield f"size-{width}x{height}", cjpeg(picture(width, height), "-quality", "85")


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def main():
    turbo = C.CDLL("libturbojpeg.so.0")
    turbo.tjInitDecompress.restype = C.c_void_p
    turbo.tjDecompress2.argtypes = [C.c_void_p, C.c_char_p, C.c_ulong, C.c_char_p, *[C.c_int] * 5]
    handle = turbo.tjInitDecompress()
    lines = []
    for name, data in files():
        (HERE / f"{name}.jpg").write_bytes(data)
        image = Image.open(io.BytesIO(data))
        channels = len(image.getbands())
        for divisor in (1, 2, 4, 8):
            # Below, another of the library's fractions gives the same size, and it takes that.
            if divisor > 1 and min(image.size) < 2 * divisor:
                continue
            width, height = -(-image.width // divisor), -(-image.height // divisor)
            pixels = C.create_string_buffer(width * height * channels)
            pixel_format = {1: 6, 3: 0, 4: 11}[channels]
            if turbo.tjDecompress2(handle, data, len(data), pixels, width, 0, height, pixel_format, 0):
                raise SystemExit(f"{name}: not decoded")
            lines.append(f"{name} {divisor} {width} {height} {channels} {fnv(pixels.raw):016x}")
    (HERE / "expected.txt").write_text("\n".join(lines) + "\n")


main()
