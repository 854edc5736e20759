"""Errors, notes, and options that are written for Python and for the command line."""

import copy
import pickle

import pytest

from probdice import (
    FormatError,
    GeometryError,
    InputError,
    MissingExtraError,
    Note,
    ProbdiceError,
    TooLargeError,
)
from probdice.errors import Option, in_command, in_python


@pytest.mark.parametrize(
    ("option", "python", "command"),
    [
        (Option("merge", "both"), 'merge="both"', "--merge both"),
        (Option("geometry_tolerance", 0.5), "geometry_tolerance=0.5", "--geometry-tolerance 0.5"),
        (Option("scale", 255), "scale=255", "--scale 255"),
        (Option("ignore_geometry", python="without_geometry()"), "without_geometry()", None),
        (Option("mask", "FILE", python="mask=…"), "mask=…", "--mask FILE"),
        (Option("scale", 100, command="pass --scale 100"), "scale=100", "pass --scale 100"),
    ],
)
def test_an_option_is_written_for_whoever_reads_it(option, python, command):
    assert option.in_python() == python
    assert option.in_command() == (command or "--ignore-geometry")


def test_a_message_is_text_and_options():
    message = ("use ", Option("match", "labels"), " instead")
    assert in_python(message) == 'use match="labels" instead'
    assert in_command(message) == "use --match labels instead"
    error = InputError(*message)
    assert str(error) == in_python(message)
    assert error.in_command() == in_command(message)


def test_a_prefix_keeps_the_kind_and_the_options():
    error = GeometryError("lies elsewhere; pass ", Option("geometry_tolerance", 1))
    prefixed = error.prefixed("a.nii: ")
    assert type(prefixed) is GeometryError
    assert prefixed.in_command() == "a.nii: lies elsewhere; pass --geometry-tolerance 1"


@pytest.mark.parametrize("again", [copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_can_be_sent_to_another_process(again):
    error = FormatError("a.png: ", Option("scale", 255), " is missing")
    assert type(again(error)) is FormatError
    assert again(error).in_command() == error.in_command()


@pytest.mark.parametrize(
    ("error", "parents"),
    [
        (InputError, (ProbdiceError, ValueError)),
        (FormatError, (InputError,)),
        (GeometryError, (InputError,)),
        (MissingExtraError, (ProbdiceError, ImportError)),
        (TooLargeError, (ProbdiceError, MemoryError)),
    ],
)
def test_errors_are_also_those_of_python(error, parents):
    assert all(issubclass(error, parent) for parent in parents)
    assert str(error("what ", Option("merge", "both"))) == 'what merge="both"'


def test_a_note_survives_json():
    note = Note("unmatched", ("1 region; ", Option("merge", "both", command="--m"), " joins it"))
    assert str(note) == '1 region; merge="both" joins it'
    assert Note.from_dict(note.to_dict()) == note
