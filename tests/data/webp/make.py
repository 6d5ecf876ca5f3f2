"""Writes the images beside it with Pillow: every kind of WebP, in sizes that are no multiples of a block."""
import os
import numpy as np
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))


def photo(width, height, channels):
    """Waves of several lengths with edges, other ones for each channel; noise from a fixed seed."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = []
    for channel in range(channels):
        waves = 60 * np.sin((x + 0.7 * y) / 9 + channel) + 30 * np.cos(y / 5 - channel) + 25 * ((x // 11 + y // 7) % 2)
        planes.append(128 + waves)
    noise = np.random.default_rng(7).normal(0, 6, (height, width, channels))
    return np.clip(np.stack(planes, -1) + noise, 0, 255).astype(np.uint8)


def save(name, image, **options):
    image.save(os.path.join(HERE, name), "WEBP", **options)


rgb, rgba = Image.fromarray(photo(61, 47, 3)), Image.fromarray(photo(61, 47, 4))
for quality in (5, 50, 95):
    save(f"lossy-{quality}.webp", rgb, quality=quality, method=6)
save("lossy-fast.webp", rgb, quality=80, method=0)
save("lossy-alpha.webp", rgba, quality=80)
save("lossy-alpha-rough.webp", rgba, quality=60, alpha_quality=20)
save("lossy-one-pixel.webp", rgb.crop((0, 0, 1, 1)), quality=80)
save("lossy-narrow.webp", rgb.crop((0, 0, 2, 47)), quality=80)
save("lossless.webp", rgb.resize((31, 23)), lossless=True)
save("lossless-alpha.webp", rgba.resize((31, 23)), lossless=True, exact=True)
save("lossless-palette.webp", rgb.resize((31, 23)).quantize(6).convert("RGB"), lossless=True)
frames = [rgb.resize((20, 14)), rgb.resize((20, 14)).rotate(180)]
save("animation.webp", frames[0], save_all=True, append_images=frames[1:], quality=80)
