"""Atomic replacement: a file is complete, or the target is unchanged."""

import math
import os
import stat

import pytest

from probdice import InputError
from probdice.files.atomic_files import null_for_nan, replacing, replacing_folder


def test_the_written_file_replaces_the_target(tmp_path):
    target = tmp_path / "result.json"
    target.write_text("old")
    with replacing(target, ".json") as partial:
        assert partial.suffix == ".json" and partial.parent == tmp_path
        partial.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["result.json"]


def test_a_failure_leaves_the_target_as_it_was(tmp_path):
    target = tmp_path / "result.json"
    target.write_text("old")
    with pytest.raises(KeyError), replacing(target) as partial:
        partial.write_text("half")
        raise KeyError
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["result.json"]


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    target, link = tmp_path / "real", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with replacing(link) as partial:
        partial.write_text("new")
    assert link.is_symlink() and target.read_text() == "new"


def test_permissions_are_kept(tmp_path):
    target = tmp_path / "result"
    target.write_text("old")
    target.chmod(0o640)
    with replacing(target) as partial:
        partial.write_text("new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_one_writer_alone_always_uses_the_same_name(tmp_path):
    names = []
    for _ in range(2):
        with replacing(tmp_path / "x.npz", ".npz", has_lock=True) as partial:
            names.append(partial.name)
            partial.write_text("")
    assert names == [".x.partial.npz"] * 2


def test_folders_and_devices_are_rejected_as_files(tmp_path):
    with pytest.raises(InputError, match="is a folder"), replacing(tmp_path):
        pass
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with pytest.raises(InputError, match="device or a pipe"), replacing(fifo):
        pass


def test_a_folder_that_cannot_be_replaced_is_restored(tmp_path, monkeypatch):
    target = tmp_path / "store.zarr"
    target.mkdir()
    (target / "values").write_text("old")
    rename = os.replace

    def fail_for_the_new_folder(source, destination):
        if (source / "values").read_text() == "new":
            raise OSError(28, "No space left on device")
        rename(source, destination)

    monkeypatch.setattr(os, "replace", fail_for_the_new_folder)
    with pytest.raises(OSError, match="No space left"), replacing_folder(target) as partial:
        partial.mkdir()
        (partial / "values").write_text("new")
    assert (target / "values").read_text() == "old"
    assert os.listdir(tmp_path) == ["store.zarr"]


def test_a_folder_is_replaced_or_created(tmp_path):
    for text in ("first", "second"):
        with replacing_folder(tmp_path / "store.zarr") as partial:
            partial.mkdir()
            (partial / "values").write_text(text)
        assert (tmp_path / "store.zarr" / "values").read_text() == text
        assert os.listdir(tmp_path) == ["store.zarr"]


def test_json_has_null_for_nan():
    content = {"a": [1.0, math.nan, (math.nan, "nan")], "b": {"c": math.nan}, "d": None}
    assert null_for_nan(content) == {"a": [1.0, None, [None, "nan"]], "b": {"c": None}, "d": None}
