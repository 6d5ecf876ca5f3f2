"""Writes the files beside it: what Pillow and OpenCV make of one picture, and what the snippets make of it that people copy.

Pictures are u8 in HWC order, without a header. Of the float tensors every 53rd value is kept, in little-endian f32.
"""
import os
import cv2
import numpy as np
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEIGHT, STEP = 96, 72, 53
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def photo(width, height):
    """Waves of several lengths with edges, other ones for each channel; noise from a fixed seed."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = []
    for channel in range(3):
        waves = 60 * np.sin((x + 0.7 * y) / 9 + channel) + 30 * np.cos(y / 5 - channel) + 25 * ((x // 11 + y // 7) % 2)
        planes.append(128 + waves)
    noise = np.random.default_rng(7).normal(0, 6, (height, width, 3))
    return np.clip(np.stack(planes, -1) + noise, 0, 255).astype(np.uint8)


def save(name, array):
    array = np.ascontiguousarray(array)
    if array.dtype != np.uint8:
        array = array.astype("<f4").reshape(-1)[::STEP]
    array.tofile(os.path.join(HERE, name))


picture = photo(WIDTH, HEIGHT)
save("picture.rgb", picture)
image = Image.fromarray(picture)
for name, filter in (("nearest", Image.NEAREST), ("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC)):
    save(f"{name}-31x23.rgb", np.asarray(image.resize((31, 23), filter)))
    save(f"{name}-110x80.rgb", np.asarray(image.resize((110, 80), filter)))
# As RandomResizedCrop: what is outside of the crop is not seen.
save("crop-20x24.rgb", np.asarray(image.crop((13, 8, 13 + 57, 8 + 49)).resize((20, 24), Image.BILINEAR)))
for number, turn in ((2, Image.FLIP_LEFT_RIGHT), (3, Image.ROTATE_180), (4, Image.FLIP_TOP_BOTTOM), (5, Image.TRANSPOSE),
                     (6, Image.ROTATE_270), (7, Image.TRANSVERSE), (8, Image.ROTATE_90)):
    save(f"exif-{number}.rgb", np.asarray(image.crop((0, 0, 5, 4)).transpose(turn)))
save("gray.rgb", np.asarray(image.crop((0, 0, 20, 10)).convert("L")))


def imagenet(image):
    """torchvision's Resize(256), CenterCrop(224), ToTensor(), Normalize(mean, std)."""
    width, height = image.size
    short = 256
    size = (short, int(short * height / width)) if width <= height else (int(short * width / height), short)
    image = image.resize(size, Image.BILINEAR)
    left, top = int(round((size[0] - 224) / 2.0)), int(round((size[1] - 224) / 2.0))
    array = np.asarray(image.crop((left, top, left + 224, top + 224))) / 255.0
    return ((array - MEAN) / STD).transpose(2, 0, 1)


def letterbox(bgr, new_shape=64):
    """Ultralytics' letterbox, and what it does to the picture behind it."""
    shape = bgr.shape[:2]
    r = min(new_shape / shape[0], new_shape / shape[1])
    unpad = int(round(shape[1] * r)), int(round(shape[0] * r))
    dw, dh = (new_shape - unpad[0]) / 2, (new_shape - unpad[1]) / 2
    bgr = cv2.resize(bgr, unpad, interpolation=cv2.INTER_LINEAR)
    top, bottom = int(round(dh - 0.1)), int(round(dh + 0.1))
    left, right = int(round(dw - 0.1)), int(round(dw + 0.1))
    bgr = cv2.copyMakeBorder(bgr, top, bottom, left, right, cv2.BORDER_CONSTANT, value=(114, 114, 114))
    return bgr[..., ::-1].transpose(2, 0, 1) / 255.0


save("imagenet.f32", imagenet(image))
save("minus-one.f32", ((picture / 255.0 - 0.5) / 0.5).transpose(2, 0, 1))
save("zero-to-255.f32", picture.astype(np.float64).transpose(2, 0, 1))
save("yolo.f32", letterbox(picture[..., ::-1]))
save("yolo-odd.f32", letterbox(picture[:57, :90, ::-1]))
save("opencv.f32", cv2.resize(picture[..., ::-1], (50, 37)).astype(np.float64))


def from_nv12(luma, chroma, kr, kb, limited, left):
    """The formula of BT.601 or BT.709, chroma interpolated to each pixel's centre from where its samples lie."""
    height, width = luma.shape
    at_x = (np.arange(width) + 0.5 - (0.5 if left else 1.0)) / 2
    at_y = (np.arange(height) + 0.5 - 1.0) / 2
    planes = []
    for plane in (chroma[..., 0], chroma[..., 1]):
        rows = np.stack([np.interp(at_x, np.arange(plane.shape[1]), row) for row in plane.astype(np.float64)])
        planes.append(np.stack([np.interp(at_y, np.arange(plane.shape[0]), column) for column in rows.T], 1))
    y, cb, cr = luma.astype(np.float64), planes[0] - 128, planes[1] - 128
    if limited:
        y, cb, cr = (y - 16) / 219, cb / 224, cr / 224
    else:
        y, cb, cr = y / 255, cb / 255, cr / 255
    kg = 1 - kr - kb
    red, blue = y + 2 * (1 - kr) * cr, y + 2 * (1 - kb) * cb
    green = (y - kr * red - kb * blue) / kg
    return np.clip(np.stack([red, green, blue], 0), 0, 1)


random = np.random.default_rng(5)
luma, chroma = random.integers(0, 256, (9, 13), np.uint8), random.integers(0, 256, (5, 7, 2), np.uint8)
padded = np.concatenate([luma, np.zeros((9, 1), np.uint8)], 1)
np.concatenate([padded.reshape(-1), chroma.reshape(-1)]).tofile(os.path.join(HERE, "frame.nv12"))
STEP = 1
save("nv12-bt709.f32", from_nv12(luma, chroma, 0.2126, 0.0722, True, True))
save("nv12-jpeg.f32", from_nv12(luma, chroma, 0.299, 0.114, False, False))
