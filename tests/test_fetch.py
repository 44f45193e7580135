"""Finding and downloading files, against a real HTTP server on this machine."""

import hashlib
import http.server
import os
import re
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import piaget
from piaget.errors import DataError, DataNote
from piaget.streams import fetch
from piaget.streams.sources import SOURCES, File, Source

CONTENT = bytes(range(256)) * 4000  # about a megabyte
SHA = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


class Server(http.server.ThreadingHTTPServer):
    """Answers as each test wants it to; remembers the requests."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, str | None]] = []
        self.content, self.ranges = CONTENT, True
        self.break_after: list[int] = []  # of the next answers, only so many bytes are sent
        self.status: dict[str, Any] = {}  # path -> an error status
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def address(self, path="file"):
        return f"http://127.0.0.1:{self.server_port}/{path}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        assert isinstance(server, Server)
        server.requests.append((self.path, self.headers.get("Range")))
        if self.path.lstrip("/") in server.status:
            statuses = server.status[self.path.lstrip("/")]
            status = statuses.pop(0) if isinstance(statuses, list) else statuses
            if status == "reset":
                self.close_connection = True
                return None
            if status != 200:
                return self.send_error(status)
        content, start = server.content, 0
        if self.headers.get("Range") and server.ranges:
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                return self.send_error(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        sent = content[start:]
        if server.break_after:
            sent = sent[: server.break_after.pop(0)]
            self.close_connection = True
        self.wfile.write(sent)
        return None

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(fetch, "PAUSE", 0.01)
    server = Server()
    yield server
    server.shutdown()
    server.server_close()


def get(server, folder, *paths, hash=SHA, addresses=None):
    file = File(
        "sub/file.bin", addresses or tuple(map(server.address, paths or ("file",))), hash, len(CONTENT)
    )
    progress = []
    path = fetch.download(file, folder, lambda *event: progress.append(event))
    return path, progress


def nothing_left(folder):
    """Neither a target nor a part of it."""
    return [p.name for p in folder.rglob("*") if p.is_file()] == []


def test_the_right_file(server, tmp_path):
    path, progress = get(server, tmp_path)
    assert path.read_bytes() == CONTENT
    assert path == tmp_path / "sub" / "file.bin"
    assert [done for _, done, _ in progress] == sorted(done for _, done, _ in progress)
    assert progress[-1][1:] == (len(CONTENT), len(CONTENT))
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]  # no locks or parts are left
    get(server, tmp_path)
    assert len(server.requests) == 1  # it is there already


def test_a_broken_transfer_is_resumed(server, tmp_path):
    server.break_after = [300_000, 200_000]
    path, _ = get(server, tmp_path)
    assert path.read_bytes() == CONTENT
    assert [r for _, r in server.requests] == [None, "bytes=300000-", "bytes=500000-"]


def test_resumed_by_a_later_process(server, tmp_path):
    server.break_after = [100_000] * fetch.ATTEMPTS
    with pytest.raises(DataError, match="broke off after 400,000 of 1,024,000 bytes"):
        get(server, tmp_path)
    assert not (tmp_path / "sub" / "file.bin").exists()
    path, _ = get(server, tmp_path)
    assert path.read_bytes() == CONTENT
    assert server.requests[-1][1] == "bytes=400000-"


def test_a_server_that_cannot_resume_starts_again(server, tmp_path):
    server.ranges, server.break_after = False, [300_000]
    path, _ = get(server, tmp_path)
    assert path.read_bytes() == CONTENT


def test_a_stale_part_is_thrown_away(server, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".file.bin.part").write_bytes(b"something else")
    path, _ = get(server, tmp_path)
    assert path.read_bytes() == CONTENT
    (path.parent / ".file.bin.part").write_bytes(CONTENT + b"too long")
    path.unlink()
    path, _ = get(server, tmp_path)  # the server answers 416
    assert path.read_bytes() == CONTENT


def test_a_wrong_hash_leaves_nothing(server, tmp_path):
    server.content = b"an error page, with status 200"
    with pytest.raises(DataError, match="its hash differs"):
        get(server, tmp_path)
    assert nothing_left(tmp_path)
    assert len(server.requests) == 1  # the same address would send the same again


def test_the_next_mirror(server, tmp_path):
    server.status = {"gone": 404}
    path, _ = get(server, tmp_path, "gone", "file")
    assert path.read_bytes() == CONTENT
    assert [p for p, _ in server.requests] == ["/gone", "/file"]


def test_a_mirror_that_is_down(server, tmp_path):
    addresses = ("http://127.0.0.1:9/file", server.address())  # nothing listens on port 9
    path, _ = get(server, tmp_path, addresses=addresses)
    assert path.read_bytes() == CONTENT


def test_a_connection_that_is_reset_is_tried_again(server, tmp_path):
    server.status = {"file": ["reset", 200]}
    path, _ = get(server, tmp_path)
    assert path.read_bytes() == CONTENT
    assert len(server.requests) == 2


def test_a_whole_part_is_not_downloaded_again(server, tmp_path):
    """As after a crash between the last byte and the move."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".file.bin.part").write_bytes(CONTENT)
    path, _ = get(server, tmp_path)
    assert path.read_bytes() == CONTENT
    assert server.requests == []


def test_an_endless_file_is_given_up(server, tmp_path):
    server.content = bytes(1 << 20) * 40
    with pytest.raises(DataError, match="it sends more than 5,242,880 bytes"):
        get(server, tmp_path)
    assert sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file()) == 0


def test_a_folder_that_cannot_be_made(server, tmp_path):
    (tmp_path / "sub").write_bytes(b"a file where a folder should be")
    with pytest.raises(DataError, match="sub cannot be made"):
        get(server, tmp_path)


def test_a_busy_server_is_asked_again(server, tmp_path):
    server.status = {"file": [503, 429, 200]}
    path, _ = get(server, tmp_path)
    assert path.read_bytes() == CONTENT
    assert len(server.requests) == 3


def test_no_network_is_one_clear_message(server, tmp_path):
    with pytest.raises(DataError, match="refused") as error:
        get(server, tmp_path, addresses=("http://127.0.0.1:9/a", "http://127.0.0.1:9/b"))
    assert "127.0.0.1:9/a" in str(error.value)
    assert "127.0.0.1:9/b" in str(error.value)
    assert nothing_left(tmp_path)


def test_two_at_once_download_once(server, tmp_path):
    with ThreadPoolExecutor(4) as pool:
        paths = [f.result()[0] for f in [pool.submit(get, server, tmp_path) for _ in range(4)]]
    assert {p.read_bytes() for p in paths} == {CONTENT}
    assert len(server.requests) == 1


# --- sources -------------------------------------------------------------------------------------------


def source_of(server, read=lambda path: path.read_bytes(), **file):
    described: dict[str, Any] = {"path": "set/file.bin", "addresses": (server.address(),), "hash": SHA}
    return Source("set", "a set", "free", (File(**({"size": 1} | described | file)),), read)


def test_where_files_are_looked_for(server, tmp_path, monkeypatch):
    given, named, cache = (tmp_path / name for name in ("given", "named", "cache"))
    for folder in (given, named, cache / "data"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("PIAGET_DATA", str(named))
    monkeypatch.setattr(fetch, "user_cache_path", lambda name: cache)
    source = source_of(server)
    folders = [given, named, cache / "data"]
    assert fetch.folders(given) == folders
    for folder in reversed(folders):  # the more special folder wins
        (folder / "set").mkdir()
        (folder / "set" / "file.bin").write_bytes(CONTENT)
        assert fetch.locate(source, given) == [folder / "set" / "file.bin"]
    assert fetch.locate(source, None) == [named / "set" / "file.bin"]
    assert server.requests == []


def test_absent_files_are_downloaded_to_the_first_writable_folder(server, tmp_path, monkeypatch):
    monkeypatch.setenv("PIAGET_DATA", str(tmp_path))
    writable = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path and writable(path, mode))
    monkeypatch.setattr(fetch, "user_cache_path", lambda name: tmp_path / "cache")
    assert fetch.open_source(source_of(server)) == CONTENT
    assert (tmp_path / "cache" / "data" / "set" / "file.bin").read_bytes() == CONTENT


def test_progress_is_shown_while_downloading(server, tmp_path, capsys):
    fetch.open_source(source_of(server), tmp_path)
    assert "downloading set/file.bin (1.0 MB)" in capsys.readouterr().err


def test_another_file_is_used_with_a_note(server, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file.bin").write_bytes(b"mine")
    with pytest.warns(
        DataNote, match=r"set/file.bin is not the public file by its hash, but can be read, and used"
    ):
        assert fetch.open_source(source_of(server), tmp_path) == b"mine"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (tmp_path / "set" / "file.bin").write_bytes(CONTENT)
        assert fetch.open_source(source_of(server), tmp_path) == CONTENT
    assert server.requests == []


def read_only_right(path):
    if path.read_bytes() != CONTENT:
        raise DataError(f"{path} is damaged")
    return CONTENT


def test_a_damaged_file_is_an_error_and_can_be_fetched_again(server, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file.bin").write_bytes(b"damaged")
    source = source_of(server, read_only_right)
    with pytest.raises(DataError, match="is damaged\nTo get the public file instead: piaget data fetch set"):
        fetch.open_source(source, tmp_path)
    fetch.fetch_source(source, tmp_path)
    assert fetch.open_source(source, tmp_path) == CONTENT
    fetch.fetch_source(source, tmp_path)
    assert len(server.requests) == 1


def test_a_damaged_file_that_cannot_be_replaced(server, tmp_path, monkeypatch):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file.bin").write_bytes(b"damaged")
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(DataError, match="It cannot be replaced there: remove it, or give another folder"):
        fetch.fetch_source(source_of(server, read_only_right), tmp_path)
    assert server.requests == []


def test_folders_that_do_not_exist(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    assert fetch.folders("~/data")[0] == tmp_path / "data"
    with pytest.raises(DataError, match=r"the data folder .*nowhere does not exist"):
        fetch.folders(tmp_path / "nowhere")
    monkeypatch.setenv("PIAGET_DATA", str(tmp_path / "mistyped"))
    with pytest.raises(DataError, match=r"PIAGET_DATA: .*mistyped does not exist"):
        fetch.folders(None)
    assert not (tmp_path / "mistyped").exists()


def test_two_processes_download_once(server, tmp_path):
    code = (
        "from pathlib import Path; from piaget.streams.fetch import download\n"
        "from piaget.streams.sources import File\n"
        f"file = File('f', ({server.address()!r},), {SHA!r}, 10**6)\n"
        f"download(file, Path({str(tmp_path)!r}), lambda *a: None)"
    )
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert len(server.requests) == 1


def test_absent_and_offline(tmp_path):
    """The message for a user: what is missing, where it was looked for, how to get it."""
    offline = File("mnist/x.gz", ("http://127.0.0.1:9/x.gz",), "md5:0", 1)
    source = Source("mnist", "", "", (offline,), Path.read_bytes)
    with pytest.raises(DataError) as error:
        fetch.open_source(source, tmp_path)
    text = str(error.value)
    assert "mnist/x.gz is missing" in text
    assert f"Looked for in: {tmp_path}" in text
    assert "piaget data fetch mnist" in text
    assert f"get http://127.0.0.1:9/x.gz elsewhere, and put it at {tmp_path / 'mnist/x.gz'}" in text


def test_every_source_says_what_a_user_needs():
    for source in SOURCES.values():
        assert source.title
        assert source.licence
        for file in source.files:
            assert file.addresses
            method, _, digest = file.hash.partition(":")
            assert len(digest) == {"md5": 32, "sha256": 64}[method]
            assert file.size > 1000
            assert all(re.match(r"https?://", address) for address in file.addresses)
    assert {name for s in piaget.streams.STREAMS.values() for name in (x.name for x in s.sources)} == set(
        SOURCES
    )
