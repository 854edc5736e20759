"""Errors and notes, with options written for Python and for the command line."""

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
def test_an_option_is_written_for_python_and_for_the_command_line(option, python, command):
    assert option.in_python() == python
    assert option.in_command() == (command or "--ignore-geometry")


def test_a_message_consists_of_texts_and_options():
    message = ("use ", Option("match", "labels"), " instead")
    assert in_python(message) == 'use match="labels" instead'
    assert in_command(message) == "use --match labels instead"
    error = InputError(*message)
    assert str(error) == in_python(message)
    assert error.in_command() == in_command(message)


def test_a_prefixed_error_keeps_its_class_and_options():
    error = GeometryError("different grid; use ", Option("geometry_tolerance", 1))
    prefixed = error.prefixed("a.nii: ")
    assert type(prefixed) is GeometryError
    assert prefixed.in_command() == "a.nii: different grid; use --geometry-tolerance 1"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_can_be_copied_and_pickled(copied):
    error = FormatError("a.png: ", Option("scale", 255), " is missing")
    assert type(copied(error)) is FormatError
    assert copied(error).in_command() == error.in_command()


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
def test_errors_are_subclasses_of_python_errors(error, parents):
    assert all(issubclass(error, parent) for parent in parents)
    assert str(error("what ", Option("merge", "both"))) == 'what merge="both"'


def test_a_note_is_restored_from_json():
    note = Note("unmatched", ("1 region; ", Option("merge", "both", command="--m"), " joins it"))
    assert str(note) == '1 region; merge="both" joins it'
    assert Note.from_dict(note.to_dict()) == note
