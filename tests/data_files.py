"""Small files in the formats of the public data sets."""

import gzip
import io
import struct
import tarfile
import zipfile

import numpy as np
import scipy.io
from PIL import Image


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


def write_idx(folder, train=200, test=60, side=28, seed=0):
    """MNIST's four files; the label is in the first pixel, the sample's number in the next two."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    for part, n in (("train", train), ("t10k", test)):
        y = rng.permutation(np.arange(n) % 10)
        x = rng.integers(0, 256, (n, side, side))
        x[:, 0, 0], x[:, 0, 1], x[:, 0, 2] = y, np.arange(n) % 256, np.arange(n) // 256
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(x)))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(y)))


def write_groups(path, tasks, features, classes=True, sizes=(20, 41), seed=0):
    """A .mat file of the linear data sets: one cell a task."""
    rng = np.random.default_rng(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    feature, label = np.empty((1, tasks), object), np.empty((1, tasks), object)
    for t in range(tasks):
        n = int(rng.integers(*sizes))
        feature[0, t] = rng.normal(size=(n, features))
        label[0, t] = rng.permutation(np.arange(n) % 2)[:, None] if classes else rng.normal(size=(n, 1))
    scipy.io.savemat(path, {"feature": feature, "label": label})


def write_features(folder, name, classes=200, train=5, test=3, features=16, seed=0):
    """CUB's two files: X and y, here with the class in the first feature."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for part, each in (("train", train), ("test", test)):
        y = rng.permutation(np.repeat(np.arange(classes), each))
        x = rng.random((len(y), features)).astype(np.float32)
        x[:, 0] = y
        scipy.io.savemat(folder / f"{part}_{name}.mat", {"X": x, "y": y[None].astype(np.int16)})


def write_cifar(path, train=10, test=4, names=100, seed=0, skip=()):
    """CIFAR-100's archive: so many pictures of each class, the class in the first pixel."""
    rng = np.random.default_rng(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    members = {
        "fine_label_names.txt": "\n".join(f"class {i}".replace(" ", "_") for i in range(names)).encode()
    }
    for part, each in (("train", train), ("test", test)):
        fine = rng.permutation(np.repeat(np.arange(100), each))
        records = rng.integers(0, 256, (len(fine), 2 + 3072), dtype=np.uint8)
        records[:, 0], records[:, 1], records[:, 2] = fine // 5, fine, fine
        members[f"{part}.bin"] = records.tobytes()
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            if name not in skip:
                info = tarfile.TarInfo(f"cifar-100-binary/{name}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


def png(side=105, seed=0, mode="1"):
    rng = np.random.default_rng(seed)
    shape = (side, side, 3) if mode == "RGB" else (side, side)
    pixels = rng.integers(0, 256, shape, dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(out, "PNG")
    return out.getvalue()


def write_omniglot(folder, alphabets=(3, 4), characters=3, drawings=10):
    """Omniglot's two archives, with so many alphabets in each."""
    folder.mkdir(parents=True)
    seed = 0
    for name, count in (("images_background", alphabets[0]), ("images_evaluation", alphabets[1])):
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
            for a in range(count):
                for c in range(characters + a):
                    for d in range(drawings):
                        seed += 1
                        path = f"{name}/{name[7]}{a}_alphabet/character{c + 1:02d}/{seed:04d}_{d + 1:02d}.png"
                        archive.writestr(path, png(seed=seed))


def write_everything(root):
    """Small files of every source."""
    write_idx(root / "mnist", seed=1)
    write_idx(root / "fashion", seed=2)
    write_groups(root / "ella" / "landminedata_withgroups.mat", 29, 9)
    write_groups(root / "ella" / "londonschools.mat", 139, 27, classes=False)
    write_groups(root / "ella" / "fera_forella_subject_specific_pca_100_AU5_AU10_AU12.mat", 21, 100)
    write_features(root / "cub", "resnet18", train=8)
    write_cifar(root / "cifar100" / "cifar-100-binary.tar.gz")
    write_omniglot(root / "omniglot")
