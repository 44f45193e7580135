"""Pictures as bytes: opened by their content, checked before they are decoded."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from piaget.data.plain import is_whole, plain, shown
from piaget.errors import DataError, SettingError
from piaget.extras import need

# What is opened: by its content, whatever it is called. Others, such as EPS, may start other programs.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
MODES = ("1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "LAB", "HSV")
MOST_PIXELS = 1 << 26  # of one picture, such as 8192 x 8192


@dataclass(frozen=True)
class Packed:
    """A picture's file in memory, and where it is from, for messages."""

    where: str
    content: bytes

    def file(self) -> io.BytesIO:
        """It, as a file."""
        return io.BytesIO(self.content)

    def __str__(self) -> str:
        return self.where


Picture = Path | Packed


def checked_size(size: Any) -> tuple[int, int] | None:
    """(height, width) to which pictures are resized; None: they are not."""
    if size is None:
        return None
    sides = [plain(side) for side in size] if isinstance(size, tuple | list | np.ndarray) else []
    right = len(sides) == 2 and all(is_whole(side) and side >= 1 for side in sides)
    if not right or sides[0] * sides[1] > MOST_PIXELS:
        raise SettingError(
            f"size={shown(size)}; expected (height, width) in pixels, at most {MOST_PIXELS:,} in all"
        )
    return int(sides[0]), int(sides[1])


def common_shape(pictures: Iterable[Picture], size: tuple[int, int] | None) -> tuple[int, int, int]:
    """(channels, height, width) of all pictures, looking only at their heads."""
    channels, first = 1, None
    for path in pictures:
        with opened(path) as picture:
            if picture.mode not in ("1", "L", "LA"):
                channels = 3
            here = (picture.height, picture.width)
        first = first or (path, here)
        if size is None and here != first[1]:
            raise DataError(
                f"{path} has {here[0]} x {here[1]} pixels, but {first[0]} has {first[1][0]} x {first[1][1]}; "
                f"expected one size: give size={first[1]} to resize"
            )
    height, width = size or (first[1] if first else (0, 0))
    return channels, height, width


def pixels(path: Picture, shape: tuple[int, int, int], resized: bool) -> np.ndarray:
    """(channels, height, width) bytes."""
    with opened(path) as picture:
        if picture.size != (shape[2], shape[1]) and not resized:
            raise DataError(f"{path} has changed: it has {picture.height} x {picture.width} pixels now")
        try:
            picture = picture.convert("L" if shape[0] == 1 else "RGB")
            if picture.size != (shape[2], shape[1]):
                picture = picture.resize((shape[2], shape[1]))
            return channels_first(np.asarray(picture))
        except Exception as error:  # broken pictures fail in many ways
            raise DataError(f"{path} is damaged: {error}") from error


def opened(path: Picture) -> Any:
    """A picture whose head has been read, and is one that can be used."""
    images = need("PIL.Image", "pictures")
    most = f"at most {MOST_PIXELS:,} pixels, such as 8192 x 8192"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sizes, which are checked here
            picture = images.open(path.file() if isinstance(path, Packed) else path, formats=FORMATS)
    except images.DecompressionBombError as error:
        raise DataError(f"{path} is too large; expected {most}") from error
    except Exception as error:  # broken pictures fail in many ways
        raise DataError(
            f"{path} is damaged, or no picture of {', '.join(FORMATS)}: {str(error)[:200]}"
        ) from error
    wrong = None
    if picture.width * picture.height > MOST_PIXELS:
        wrong = f"has {picture.height} x {picture.width} pixels; expected {most}"
    elif picture.mode not in MODES or ";16" in str(picture.tile):
        wrong = f"has more than 8 bits a pixel ({picture.mode}); expected 8 bits"
    elif getattr(picture, "is_animated", False) and picture.format != "MPO":  # photographs with a preview
        wrong = f"holds {picture.n_frames} pictures; expected one"
    if wrong:
        picture.close()
        raise DataError(f"{path} {wrong}")
    return picture


def channels_first(pixels: np.ndarray) -> np.ndarray:
    """(height, width) or (height, width, channels) -> (channels, height, width)."""
    return pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(pixels.transpose(2, 0, 1))
