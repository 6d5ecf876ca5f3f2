#!/usr/bin/env python3
"""Makes the image files of this folder, and `expected.txt`: what Pillow makes of each, turned upright and converted to RGB.

Run once, here, with Python 3, numpy and Pillow. A line of `expected.txt` is: file, width, height, and the 64-bit FNV-1a hash of the RGB
bytes, or `refused`. 16-bit grey is rounded to 8 bits as gpufeed does it, (v + 128) / 257, where Pillow would clip it; alpha is dropped.
"""
import io
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

HERE = pathlib.Path(__file__).parent
WIDTH, HEIGHT = 19, 13


def picture(mode="RGB"):
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    rng = np.random.default_rng(1)
    waves = [127 + 90 * np.sin(x / (3 + i)) + 60 * np.cos(y / (2 + i)) + rng.normal(0, 6, x.shape) for i in range(4)]
    planes = np.stack(waves, -1).clip(0, 255).astype(np.uint8)
    match mode:
        case "RGB":
            return Image.fromarray(planes[..., :3].copy())
        case "RGBA":
            return Image.fromarray(planes)
        case "L":
            return Image.fromarray(planes[..., 0].copy())
        case "LA":
            return Image.merge("LA", [Image.fromarray(planes[..., i].copy()) for i in (0, 3)])
        case "I;16":
            return Image.fromarray(planes[..., 0].astype(np.uint16) * 257 + planes[..., 1])
        case "P":
            return picture().quantize(40)
        case "1":
            return picture("L").convert("1")
        case "CMYK":
            return picture().convert("CMYK")


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def tiff(orientation, kind=3, order=">", count=1, before=0):
    packed = {1: "B3x", 3: "H2x", 4: "I", 6: "b3x", 8: "h2x", 9: "i"}[kind]
    entries = [struct.pack(order + "HHI", 0x0100 + i, 3, 1) + struct.pack(order + "H2x", 5) for i in range(before)]
    entries.append(struct.pack(order + "HHI", 0x0112, kind, count) + struct.pack(order + packed, orientation))
    head = b"MM\0*\0\0\0\x08" if order == ">" else b"II*\0\x08\0\0\0"
    return head + struct.pack(order + "H", len(entries)) + b"".join(entries) + b"\0\0\0\0"


def with_app1(jpeg, *bodies, at=2):
    segments = [b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body for body in bodies]
    return jpeg[:at] + b"".join(segments) + jpeg[at:]


def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def oriented():
    exif, xmp_head = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"
    jpeg = saved(picture(), "JPEG", quality=90)
    for orientation in range(10):
        yield f"exif-{orientation}.jpg", with_app1(jpeg, exif + tiff(orientation))
    for kind in (1, 4, 6, 8, 9):
        yield f"exif-type-{kind}.jpg", with_app1(jpeg, exif + tiff(6, kind))
    yield "exif-little.jpg", with_app1(jpeg, exif + tiff(6, order="<"))
    yield "exif-two-values.jpg", with_app1(jpeg, exif + tiff(6, count=2))
    yield "exif-fourth.jpg", with_app1(jpeg, exif + tiff(6, before=3))
    yield "exif-cut.jpg", with_app1(jpeg, (exif + tiff(6))[:20])
    yield "exif-bare.jpg", with_app1(jpeg, tiff(6))
    yield "exif-prefixed-twice.jpg", with_app1(jpeg, exif + exif + tiff(6))
    yield "exif-two-segments.jpg", with_app1(jpeg, exif + tiff(1), exif + tiff(6))
    yield "exif-after-frame.jpg", with_app1(jpeg, exif + tiff(6), at=jpeg.index(b"\xff\xc0"))
    for name, text in {"attribute": b'<a tiff:Orientation="6"/>', "element": b"<tiff:Orientation>6</tiff:Orientation>"}.items():
        yield f"xmp-{name}.jpg", with_app1(jpeg, xmp_head + text)
        yield f"xmp-{name}-beside-exif.jpg", with_app1(jpeg, xmp_head + text, exif + tiff(1))
    yield "exif.png", saved(picture(), "PNG", exif=exif + tiff(6))
    yield "exif-bare.png", saved(picture("RGBA"), "PNG", exif=tiff(8))
    yield "exif.webp", saved(picture(), "WEBP", lossless=True, exif=exif + tiff(6))
    yield "exif-bare.webp", saved(picture(), "WEBP", lossless=True, exif=tiff(3))
    yield "xmp.webp", saved(picture(), "WEBP", lossless=True, xmp=b'<a tiff:Orientation="5"/>')


def kinds():
    for mode in ("RGB", "RGBA", "L", "LA", "P", "1", "I;16"):
        yield f"{mode.replace(';', '').lower()}.png", saved(picture(mode), "PNG")
    for bits in (1, 2, 4):
        yield f"palette-{bits}.png", saved(picture().quantize(2**bits), "PNG", bits=bits)
    yield "palette-one-transparent.png", saved(picture("P"), "PNG", transparency=3)
    yield "palette-transparent.png", saved(picture("P"), "PNG", transparency=bytes(range(0, 240, 6)))
    yield "grey-transparent.png", saved(picture("L"), "PNG", transparency=3)
    yield "colour-transparent.png", saved(picture(), "PNG", transparency=(10, 20, 30))
    frames = [picture().transpose(Image.Transpose.FLIP_LEFT_RIGHT), picture()]
    yield "animation.png", saved(picture(), "PNG", save_all=True, append_images=frames, duration=50)
    yield "animation-apart.png", saved(picture(), "PNG", save_all=True, append_images=frames, duration=50, default_image=True)
    yield "animation.webp", saved(picture(), "WEBP", save_all=True, append_images=frames, duration=50, lossless=True)
    for mode in ("RGB", "RGBA"):
        yield f"lossless-{mode.lower()}.webp", saved(picture(mode), "WEBP", lossless=True, exact=True)
        yield f"lossy-{mode.lower()}.webp", saved(picture(mode), "WEBP", quality=70)
    for mode in ("RGB", "L", "CMYK"):
        for progressive in (False, True):
            name = f"{mode.lower()}{'-progressive' if progressive else ''}.jpg"
            yield name, saved(picture(mode), "JPEG", progressive=progressive)
    for sampling in (0, 1):
        yield f"sampling-{sampling}.jpg", saved(picture(), "JPEG", subsampling=sampling)
    yield "rgb-stored.jpg", saved(picture(), "JPEG", keep_rgb=True)
    yield "restarts.jpg", saved(picture(), "JPEG", restart_marker_blocks=1)
    yield "several.jpg", saved(picture(), "MPO", save_all=True, append_images=[picture()])


def damaged():
    png, jpeg, webp = (saved(picture(), kind) for kind in ("PNG", "JPEG", "WEBP"))
    for name, file in {"png": png, "jpg": jpeg, "webp": webp}.items():
        yield f"followed.{name}", file + b"<!-- served by cache 17 -->\n"
        yield f"twice.{name}", file + file
        yield f"half.{name}", file[: len(file) // 2]
        yield f"preceded.{name}", b"\n" + file
    yield "without-end.png", png[:-12]
    yield "half-of-end.png", png[:-6]
    yield "unknown-chunk.png", png[:33] + chunk(b"quXx", b"hello") + png[33:]
    yield "fill-bytes.jpg", jpeg[:2] + b"\xff" * 5 + jpeg[2:]
    tables = jpeg.index(b"\xff\xdb")
    yield "bytes-between.jpg", jpeg[:tables] + b"abc" + jpeg[tables:]
    yield "png-in-name.jpg", png
    yield "jpeg-in-name.webp", jpeg
    yield "webp-in-name.png", webp
    yield "odd-chunk.webp", b"RIFF" + struct.pack("<I", len(webp) + 4) + webp[8:] + b"ABCD" + struct.pack("<I", 3) + b"xyz\0"


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def rgb(data):
    image = Image.open(io.BytesIO(data))
    image.load()
    mode = image.mode
    image = ImageOps.exif_transpose(image)
    if mode.startswith("I"):
        return ((np.asarray(image).astype(int) + 128) // 257).astype(np.uint8)[..., None].repeat(3, -1)
    if mode == "LA":
        return np.asarray(image)[..., :1].repeat(3, -1)
    return np.asarray(image.convert("RGBA" if mode in ("P", "RGBA") else "RGB"))[..., :3]


def main():
    lines = []
    for name, data in (*oriented(), *kinds(), *damaged()):
        (HERE / name).write_bytes(data)
        try:
            pixels = rgb(data)
            lines.append(f"{name} {pixels.shape[1]} {pixels.shape[0]} {fnv(pixels.tobytes()):016x}")
        except (OSError, SyntaxError):
            lines.append(f"{name} {WIDTH} {HEIGHT} refused")
    (HERE / "expected.txt").write_text("\n".join(lines) + "\n")


main()
