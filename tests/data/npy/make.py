#!/usr/bin/env python3
"""Makes the `.npy` files of this folder with numpy, which `src/source/npy/numpy_tests.rs` reads.

Run once, here, with Python 3 and numpy. Element k of an array of samples is 3 k - 20, for unsigned types 3 k, for floats half of it less
0.25, for bool whether 3 divides k; label k of `labels-*` is 5 k - 7, for unsigned types 5 k, for bool whether k is odd.
"""
import pathlib

import numpy as np
from numpy.lib import format as npy

HERE = pathlib.Path(__file__).parent


def values(dtype, shape):
    dtype = np.dtype(dtype)
    k = np.arange(np.prod(shape)).reshape(shape)
    if dtype.kind == "b":
        return k % 3 == 0
    if dtype.kind == "f":
        return ((3 * k - 20) / 2 - 0.25).astype(dtype)
    return (3 * k - (20 if dtype.kind == "i" else 0)).astype(dtype)


def labels(dtype, shape):
    dtype = np.dtype(dtype)
    k = np.arange(np.prod(shape)).reshape(shape)
    if dtype.kind == "b":
        return k % 2 == 1
    return (5 * k - (7 if dtype.kind == "i" else 0)).astype(dtype)


def save(name, array, version=None):
    with open(HERE / f"{name}.npy", "wb") as file:
        npy.write_array(file, array, version=version)


def main():
    for dtype in ("u1", "b1", "u2", "f2", "i4", "f4", "i8"):
        save(f"samples-{dtype}", values(dtype, (4, 2, 3)))
    for version in (1, 2, 3):
        save(f"version-{version}", values("f4", (4, 2, 3)), (version, 0))
    mapped = npy.open_memmap(HERE / "mapped.npy", "w+", "i4", (4, 2, 3))
    mapped[:] = values("i4", (4, 2, 3))
    mapped.flush()
    images = values("u1", (2, 3, 5, 7))
    save("images-nchw", images)
    save("images-nhwc", np.ascontiguousarray(images.transpose(0, 2, 3, 1)))
    save("images-n1hw", values("u1", (2, 1, 5, 7)))
    # One order is as good as the other for these.
    save("fortran-column", np.asfortranarray(values("f4", (4, 1))))
    save("refused-fortran", np.asfortranarray(values("f4", (4, 2, 3))))
    for dtype in (">u2", ">f2", ">i4", ">f4", ">i8"):
        save(f"refused-big-{dtype[1:]}", values(dtype, (4, 2)))
    for dtype in ("i1", "i2", "u4", "u8", "f8", "c8", "S3", "U2", "M8[s]"):
        save(f"refused-{dtype[:2]}", np.zeros((4, 2), dtype))
    save("refused-structured", np.zeros(4, [("a", "f4"), ("b", "i4")]))
    save("refused-object", np.array([None, "a"], object))
    save("refused-scalar", np.float32(3))
    save("refused-empty", np.zeros((0, 2), "f4"))
    save("refused-empty-samples", np.zeros((4, 0), "f4"))
    for dtype in ("b1", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", ">i2", ">u2", ">i4", ">u4", ">i8", ">u8"):
        name = dtype.replace("<", "").replace(">", "big-")
        save(f"labels-{name}", labels(dtype, (4,)))
    save("labels-column", labels("i2", (4, 1)))
    save("labels-column-big", labels(">i4", (4, 1)))


main()
