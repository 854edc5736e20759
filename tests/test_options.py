"""Options of compare, evaluate and the commands."""

import json

import numpy as np
import pytest

from probdice import Absolute, Aitchison, ProbdiceError, compare
from probdice.method.matching import Fixed, Given
from probdice.method.merging import sides_to_merge
from probdice.method.sides import Both
from probdice.options import Options, as_workers


def test_defaults():
    options = Options.of()
    assert options == Options()
    assert (options.similarity, options.match, options.merge) == (Absolute(), "overlap", "none")
    assert options.tolerance == 0.1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"similarity": "dice"}, "similarity must be 'absolute'"),
        ({"similarity": np.array(["absolute", "aitchison"])}, "similarity must be 'absolute'"),
        ({"similarity": np.array([0.5, 0.5])}, "similarity must be 'absolute'"),
        ({"merge": "all"}, "merge must be 'none', 'prediction', 'reference' or 'both'"),
        ({"merge": np.array(["none", "both"])}, "merge must be 'none'"),
        ({"merge": True}, "merge must be 'none'"),
        ({"match": True}, 'found True; match=True is now match="overlap"'),
        ({"match": False}, 'match=False is match="labels"'),
        ({"match": "label"}, "match must be 'overlap', 'paper', 'labels', a mapping"),
        ({"match": [1, 2]}, "match must be 'overlap'"),
        ({"match": np.array([1, 2])}, "match must be 'overlap'"),
        ({"match": {}}, "match is an empty mapping"),
        ({"match": {1.5: 2}}, r"map labels .* to labels, found 1\.5"),
        ({"match": {1: None}}, "map labels .* to labels, found None"),
        (
            {"match": "labels", "merge": "both"},
            'merge="both" cannot be combined with match="labels"',
        ),
        ({"ignore": ["a"]}, "ignore must hold whole numbers, found 'a'"),
        ({"ignore": 1.5}, r"ignore must hold whole numbers, found 1\.5"),
        ({"ignore": None}, "ignore must hold whole numbers, found None"),
        ({"sums": "divide"}, "sums must be 'error', 'normalise' or 'background'"),
        ({"sums": {"left": "error", 1: "error"}}, r"sums: expected values for .*\['left', 1\]"),
        ({"scale": 0}, "scale must be a positive number"),
        ({"scale": True}, "scale must be a positive number"),
        ({"scale": "255"}, "scale must be a positive number"),
        ({"scale": {"reference": -1}}, "scale must be a positive number"),
        ({"priority": 3}, "priority must be names of regions"),
        ({"priority": ("a", "a")}, "priority must name every region once"),
        ({"priority": {"left": "a"}}, "priority: expected values for"),
        ({"names": 3}, "names must be a mapping of labels to names"),
        ({"geometry_tolerance": -1}, "geometry_tolerance must be a number of pixels"),
        ({"geometry_tolerance": float("nan")}, "geometry_tolerance must be a number of pixels"),
        ({"geometry_tolerance": "1"}, "geometry_tolerance must be a number of pixels"),
        (
            {"geometry_tolerance": 1, "ignore_geometry": True},
            "geometry_tolerance=1 cannot be combined with ignore_geometry=True",
        ),
    ],
)
def test_invalid_options_are_rejected(given, message):
    with pytest.raises(ProbdiceError, match=message):
        Options.of(**given)


def test_an_earlier_comparison_cannot_be_combined_with_merging():
    earlier = compare([1, 2], [3, 4])
    with pytest.raises(ProbdiceError, match="cannot be combined with an earlier comparison"):
        compare([1, 2], [3, 4], match=earlier, merge="both")


def test_messages_are_also_written_for_the_command_line():
    with pytest.raises(ProbdiceError) as caught:
        Options.of(match="labels", merge="both")
    assert caught.value.in_command().startswith(
        "--merge both cannot be combined with --match labels:"
    )


def test_numpy_numbers_are_accepted():
    options = Options.of(
        scale=np.float32(100), geometry_tolerance=np.float32(0.5), ignore=np.array(2)
    )
    assert (options.scale, options.tolerance, options.ignore) == (100.0, 0.5, (2,))
    assert Options.of(ignore=2).ignore == (2,)
    assert Options.of(ignore=np.array([2, 3])).ignore == (2, 3)
    assert Options.of(match={np.int64(3): np.str_("a")}).match == Fixed(((3, "a"),))
    json.dumps(options.to_dict())


def test_workers_is_a_positive_whole_number_or_none():
    assert as_workers(None) is None
    assert as_workers(np.int64(2)) == 2
    for wrong in (True, False, 0, -1, 2.0, "2"):
        with pytest.raises(ProbdiceError, match="workers must be a whole number of at least 1"):
            as_workers(wrong)


def test_sums_and_scale_apply_to_one_side_or_both():
    options = Options.of(sums={"prediction": "normalize"}, scale={"reference": 255})
    assert options.sums == Both("error", "normalise")
    assert (options.scale, options.scales) == (None, Both(255.0, None))
    assert Options.of(sums="background").sums == Both("background", "background")


def test_names_and_priority_apply_to_one_side_or_both(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Options.of().names == Both(None, None)
    assert Options.of(names=["air", "bone"]).names.prediction == ((0, "air"), (1, "bone"))
    one = Options.of(names={"reference": "lut.txt"}).names
    assert one == Both(str(tmp_path / "lut.txt"), None)  # independent of the working directory
    both = Options.of(priority=("tumour", "kidney"))
    assert both.priority == Both(("tumour", "kidney"), ("tumour", "kidney"))
    assert Options.of(priority={"prediction": "tumour"}).priority == Both((), ("tumour",))


def test_merge_selects_sides():
    assert sides_to_merge("none") == ()
    assert sides_to_merge("prediction") == ("prediction",)
    assert sides_to_merge("reference") == ("reference",)
    assert sides_to_merge("both") == ("reference", "prediction")


@pytest.mark.parametrize(
    "options",
    [
        Options.of(),
        Options.of(similarity=Aitchison(0.01), merge="both", ignore=[255], sums="normalise"),
        Options.of(match={5: 1, "a": "b"}, scale={"prediction": 100}, ignore_geometry=True),
        Options.of(names={1: "grey", "a": "b"}, priority={"reference": ("tumour", "kidney")}),
        Options.of(names={"prediction": "/tables/lut.txt"}, priority="tumour"),
        Options.of(match=Given((((1, "a"), (2,)), ((), (3,)))), geometry_tolerance=2),
    ],
)
def test_options_are_restored_from_json(options):
    assert Options.from_dict(json.loads(json.dumps(options.to_dict()))) == options
