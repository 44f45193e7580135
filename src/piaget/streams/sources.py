"""The public data sets: files, addresses, hashes, licences. Nothing here knows of tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import as_file, files as package_files
from pathlib import Path
from typing import Any

import numpy as np

from piaget.streams import formats

PAPER = "Lifelong-ML/Mendez2020Compositional"
# Large files of that repository are kept apart from it (Git LFS) and served from here. The first
# address names a commit, so its content cannot change.
PAPER_FILES = tuple(
    f"https://media.githubusercontent.com/media/{PAPER}/{version}/datasets/"
    for version in ("cba92f6cd31cb47a2732f5daac8453be3e67c4ca", "master", "main")
)
UNSTATED = "not stated by its publishers"


@dataclass(frozen=True)
class File:
    """One file: its place in the data folder, where it can be had, and its hash ("md5:...")."""

    path: str
    addresses: tuple[str, ...]
    hash: str
    size: int  # bytes, for display


@dataclass(frozen=True)
class Source:
    """A data set. `read` takes the paths of its files, in order, and checks what it reads.

    `check` looks at what is otherwise read only when it is needed.
    """

    name: str
    title: str
    licence: str
    files: tuple[File, ...]
    read: Callable[..., Any]
    check: Callable[[Any], None] = lambda content: None


def _paper(name: str, file: str, sha256: str, size: int) -> File:
    """A file of the paper's repository: in the data folder its folders are `ella` and `cub`."""
    theirs = {"ella": "ELLA", "cub": "cub-200"}[name]
    addresses = tuple(f"{start}{theirs}/{file}" for start in PAPER_FILES)
    return File(f"{name}/{file}", addresses, f"sha256:{sha256}", size)


def _idx(
    folder: str, starts: tuple[str, ...], hashes: tuple[str, ...], sizes: tuple[int, ...]
) -> tuple[File, ...]:
    """The four files of MNIST and of those that are laid out alike."""
    names = [
        f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
    ]
    return tuple(
        File(f"{folder}/{name}", tuple(start + name for start in starts), f"md5:{md5}", size)
        for name, md5, size in zip(names, hashes, sizes, strict=True)
    )


MNIST = Source(
    "mnist",
    "MNIST, handwritten digits (LeCun, Cortes, Burges)",
    "CC BY-SA 3.0",
    _idx(
        "mnist",
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ),
        (
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
        (9_912_422, 28_881, 1_648_877, 4_542),
    ),
    partial(formats.idx_images, shape=(28, 28), names=tuple(range(10))),
)

FASHION = Source(
    "fashion",
    "Fashion-MNIST, articles of clothing (Zalando Research)",
    "MIT",
    _idx(
        "fashion",
        (
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
        ),
        (
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
        (26_421_880, 29_515, 4_422_102, 5_148),
    ),
    partial(
        formats.idx_images,
        shape=(28, 28),
        names=(
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ),
    ),
)

CIFAR100 = Source(
    "cifar100",
    "CIFAR-100, the binary edition (Krizhevsky)",
    UNSTATED,
    (
        File(
            "cifar100/cifar-100-binary.tar.gz",
            ("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",),
            "md5:03b5dce01913d631647c71ecec9e9cb8",
            168_513_733,
        ),
    ),
    formats.cifar100,
)

OMNIGLOT = Source(
    "omniglot",
    "Omniglot, characters of 50 alphabets (Lake, Salakhutdinov, Tenenbaum)",
    "MIT",
    tuple(
        File(
            f"omniglot/{name}.zip",
            (
                f"https://raw.githubusercontent.com/brendenlake/omniglot/master/python/{name}.zip",
                f"https://github.com/brendenlake/omniglot/raw/master/python/{name}.zip",
            ),
            f"md5:{md5}",
            size,
        )
        for name, md5, size in (
            ("images_background", "68d2efa1b9178cc56df9314c21c6e718", 9_464_212),
            ("images_evaluation", "6b91aef0f799c5bb55b94e3f2daec811", 6_462_886),
        )
    ),
    formats.Omniglot,
    formats.Omniglot.check,
)


def _linear(name: str, title: str, file: File, tasks: int, features: int) -> Source:
    """A data set of given tasks, in one file."""
    return Source(name, title, UNSTATED, (file,), partial(formats.mat_groups, tasks=tasks, features=features))


LANDMINE = _linear(
    "landmine",
    "Landmine, radar features of 29 fields (Xue et al. 2007)",
    _paper(
        "ella",
        "landminedata_withgroups.mat",
        "649b8697c4576a669013835a46268c3044895998d6c12cba1cb7c7348d13da73",
        1_032_555,
    ),
    tasks=29,
    features=9,
)

SCHOOLS = _linear(
    "schools",
    "London Schools, exam scores of 139 schools (Inner London Education Authority)",
    _paper(
        "ella",
        "londonschools.mat",
        "4d966ad1fd069fe10264255dcc3856738b46da5802bd16c68a2e5abbf447bbd9",
        46_829,
    ),
    tasks=139,
    features=27,
)

FERA = _linear(
    "fera",
    "FERA, facial expressions: 3 action units of 7 people (Valstar et al. 2011)",
    _paper(
        "ella",
        "fera_forella_subject_specific_pca_100_AU5_AU10_AU12.mat",
        "ed451729b7ed83d79046df1bd8e9122723f4469a62c58930a9226da3fad7fc80",
        12_107_603,
    ),
    tasks=21,
    features=100,
)

CUB = Source(
    "cub",
    "Caltech-UCSD Birds-200 (2010), features of a ResNet-18 (Welinder et al.; Mendez & Eaton)",
    "for research; the pictures belong to their photographers",
    (
        _paper(
            "cub",
            "train_resnet18.mat",
            "43df798a2a67afa14b390832fee1c2033a5983bc7f843c29492b857180d394ba",
            6_168_240,
        ),
        _paper(
            "cub",
            "test_resnet18.mat",
            "93a0ff93e43807abc333b8ee19449f4af4f76769b4542ac9ea8ba29af7d24448",
            6_236_088,
        ),
    ),
    formats.mat_features,
)


def cub_features(features: str) -> Source:
    """CUB with other features: cub/train_FEATURES.mat, or a path with {split} for train and test."""
    if features == "resnet18":
        return CUB
    own = str(Path(features).expanduser().absolute()) if "{split}" in features else None
    pattern = own or f"cub/{{split}}_{features}.mat"
    paths = [pattern.replace("{split}", split) for split in ("train", "test")]
    return replace(CUB, files=tuple(File(path, (), "", 0) for path in paths))


def other_features(folders: list[Path]) -> list[str]:
    """Features of CUB that are there, beside those of the paper."""
    return sorted(
        path.stem.removeprefix("train_")
        for folder in folders
        for path in (folder / "cub").glob("train_*.mat")
        if path.with_name(path.name.replace("train_", "test_", 1)).is_file() and path.stem != "train_resnet18"
    )


def packaged_digits() -> tuple[np.ndarray, np.ndarray]:
    """1,797 pictures (n, 1, 8, 8) of 0 to 16, and their digits (n,); they come with the package."""
    kinds = {"images-idx3": 3, "labels-idx1": 1}
    parts = []
    for kind, dimensions in kinds.items():
        with as_file(package_files("piaget.streams") / f"digits-{kind}-ubyte.gz") as path:
            parts.append(formats.read_idx(path, dimensions))
    return parts[0][:, None], parts[1].astype(np.int64)


SOURCES = {s.name: s for s in (MNIST, FASHION, CUB, CIFAR100, OMNIGLOT, LANDMINE, SCHOOLS, FERA)}
