"""Options of compare, evaluate and the commands."""

import inspect
import json
import re
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pytest

from probdice import Absolute, Aitchison, ProbdiceError, compare
from probdice.cli.app import COMMANDS
from probdice.evaluation import evaluate
from probdice.method.matching import GivenGroups, GivenPairs
from probdice.method.merging import sides_to_merge
from probdice.method.sides import Both
from probdice.method.similarity import BUILT_IN
from probdice.options import (
    CompareOptions,
    EvaluateOptions,
    ReadOptions,
    StatisticsOptions,
    as_workers,
)
from probdice.options.declaration import Form, declarations, option
from probdice.options.stored_options import (
    NOT_STORED,
    stored_options,
    summary_entries,
    values_from_dict,
    values_from_summary,
)
from probdice.report.option_facts import Fact, statistics_facts


def test_defaults():
    options = CompareOptions.of()
    assert options == CompareOptions()
    assert (options.similarity, options.match, options.merge) == (Absolute(), "overlap", "none")
    assert options.geometry_tolerance == 0.1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"similarity": "dice"}, "similarity must be 'absolute'"),
        ({"similarity": np.array(["absolute", "aitchison"])}, "similarity must be 'absolute'"),
        ({"similarity": np.array([0.5, 0.5])}, "similarity must be 'absolute'"),
        ({"merge": "all"}, "merge must be 'none', 'prediction', 'reference' or 'both'"),
        ({"merge": np.array(["none", "both"])}, "merge must be 'none'"),
        ({"merge": True}, "merge must be 'none'"),
        ({"match": True}, r'found True\. Use match="overlap" instead of True'),
        ({"match": False}, 'match="labels" instead of False'),
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
        ({"ignore": ["a"]}, "ignore: expected whole numbers, found 'a'"),
        ({"ignore": 1.5}, r"ignore: expected whole numbers, found 1\.5"),
        ({"ignore": None}, "ignore: expected whole numbers, found None"),
        ({"sums": "divide"}, "sums must be 'error', 'normalise' or 'background'"),
        ({"sums": {"left": "error", 1: "error"}}, r"sums: expected a mapping .*\['left', 1\]"),
        ({"scale": 0}, "scale must be a positive number"),
        ({"scale": True}, "scale must be a positive number"),
        ({"scale": "255"}, "scale must be a positive number"),
        ({"scale": {"reference": -1}}, "scale must be a positive number"),
        ({"priority": 3}, "priority must be names of regions"),
        ({"priority": ("a", "a")}, "priority must not repeat a name"),
        ({"priority": {"left": "a"}}, "priority: expected a mapping with"),
        ({"names": 3}, "names must be a mapping of labels to names"),
        ({"nested": (0, 1.5)}, r"nested: expected whole numbers, found 1\.5"),
        ({"nested": (0, 1, 1)}, "nested must list the label of the background and"),
        ({"nested": 3}, "nested must be labels"),
        ({"components": True}, "components require a background"),
        ({"components": 1.5, "background": 0}, "components must be labels or names"),
        ({"connectivity": 7}, r"4 or 8 \(2-D\), or 6, 18 or 26"),
        ({"connectivity": 6}, "connectivity=6 has no effect without components"),
        ({"geometry_tolerance": -1}, "geometry_tolerance must be a finite, non-negative number of"),
        (
            {"geometry_tolerance": float("nan")},
            "geometry_tolerance must be a finite, non-negative number of pixels",
        ),
        ({"geometry_tolerance": "1"}, "geometry_tolerance must be a finite, non-negative number"),
        ({"geometry_tolerance": True}, "geometry_tolerance must be .*, found True"),
        ({"tolerance": "12"}, r"tolerance: expected numbers \(finite .*, found '12'"),
        ({"tolerance": b"12"}, r"tolerance: expected numbers .*, found b'12'"),
        ({"tolerance": ["1"]}, r"tolerance: expected numbers .*, found \['1'\]"),
        ({"tolerance": True}, "tolerance: expected numbers .*, found True"),
        ({"tolerance": [np.True_]}, "tolerance: expected numbers"),
        ({"infinite": "5"}, r"infinite: expected numbers .*, found \['5'\]"),
        ({"minimum_size": []}, r"minimum_size: expected numbers .*, found \[\[\]\]"),
        (
            {"geometry_tolerance": 1, "ignore_geometry": True},
            "geometry_tolerance=1 cannot be combined with ignore_geometry=True",
        ),
    ],
)
def test_invalid_options_are_rejected(given, message):
    with pytest.raises(ProbdiceError, match=message):
        CompareOptions.of(**given)


def test_an_earlier_comparison_cannot_be_combined_with_merging():
    earlier = compare([1, 2], [3, 4])
    with pytest.raises(ProbdiceError, match="cannot be combined with an earlier comparison"):
        compare([1, 2], [3, 4], match=earlier, merge="both")


def test_messages_are_also_written_for_the_command_line():
    with pytest.raises(ProbdiceError) as caught:
        CompareOptions.of(match="labels", merge="both")
    assert caught.value.in_command().startswith(
        "--merge both cannot be combined with --match labels:"
    )


def test_numpy_numbers_are_accepted():
    options = CompareOptions.of(
        scale=np.float32(100), geometry_tolerance=np.float32(0.5), ignore=np.array(2)
    )
    assert (options.scale, options.geometry_tolerance, options.ignore) == (100.0, 0.5, (2,))
    assert CompareOptions.of(ignore=2).ignore == (2,)
    assert CompareOptions.of(ignore=np.array([2, 3])).ignore == (2, 3)
    assert CompareOptions.of(match={np.int64(3): np.str_("a")}).match == GivenPairs(((3, "a"),))
    json.dumps(options.to_dict())


def test_workers_is_a_positive_whole_number_or_none():
    assert as_workers(None) is None
    assert as_workers(np.int64(2)) == 2
    for wrong in (True, False, 0, -1, 2.0, "2"):
        with pytest.raises(ProbdiceError, match="workers must be a positive integer"):
            as_workers(wrong)


def test_sums_and_scale_apply_to_one_side_or_both():
    options = CompareOptions.of(sums={"prediction": "normalize"}, scale={"reference": 255})
    assert options.sums == Both("error", "normalise")
    assert options.scale == Both(255.0, None)
    assert (options.common_scale, options.scale_of("reference")) == (None, 255.0)
    assert CompareOptions.of(sums="background").sums == Both("background", "background")


def test_names_and_priority_apply_to_one_side_or_both(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CompareOptions.of().names == Both(None, None)
    assert CompareOptions.of(names=["air", "bone"]).names.prediction == ((0, "air"), (1, "bone"))
    one = CompareOptions.of(names={"reference": "lut.txt"}).names
    assert one == Both(str(tmp_path / "lut.txt"), None)  # independent of the working directory
    both = CompareOptions.of(priority=("tumour", "kidney"))
    assert both.priority == Both(("tumour", "kidney"), ("tumour", "kidney"))
    assert CompareOptions.of(priority={"prediction": "tumour"}).priority == Both((), ("tumour",))


def test_merge_selects_sides():
    assert sides_to_merge("none") == ()
    assert sides_to_merge("prediction") == ("prediction",)
    assert sides_to_merge("reference") == ("reference",)
    assert sides_to_merge("both") == ("reference", "prediction")


@pytest.mark.parametrize(
    "options",
    [
        CompareOptions.of(),
        CompareOptions.of(similarity=Aitchison(0.01), merge="both", ignore=[255], sums="normalise"),
        CompareOptions.of(match={5: 1, "a": "b"}, scale={"prediction": 100}, ignore_geometry=True),
        CompareOptions.of(
            names={1: "grey", "a": "b"}, priority={"reference": ("tumour", "kidney")}
        ),
        CompareOptions.of(names={"prediction": "/tables/lut.txt"}, priority="tumour"),
        CompareOptions.of(match=GivenGroups((((1, "a"), (2,)), ((), (3,)))), geometry_tolerance=2),
        CompareOptions.of(boundaries=True, tolerance=[1, 2.5], infinite=50),
        CompareOptions.of(boundaries=True),
        CompareOptions.of(components=True, background=0),
        CompareOptions.of(components=[1, "a"], background=0, connectivity=6, minimum_size=2.5),
        CompareOptions.of(nested={"prediction": (0, 53, 17)}),
        CompareOptions.of(derived={"whole": (17, "core"), "core": 53}),
    ],
)
def test_options_are_restored_from_json(options):
    assert CompareOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options


# For every stored option, another value than the default, with the options that it needs.
CHANGED = {
    "ignore": {"ignore": 255},
    "sums": {"sums": {"prediction": "normalise"}},
    "scale": {"scale": 100},
    "names": {"names": {1: "grey"}},
    "priority": {"priority": {"reference": "tumour"}},
    "nested": {"nested": (0, 2, 1)},
    "similarity": {"similarity": "aitchison"},
    "match": {"match": {5: 1}},
    "merge": {"merge": "both"},
    "background": {"background": {"reference": 0, "prediction": "air"}},
    "correspondence": {"correspondence": "set"},
    "boundaries": {"boundaries": True},
    "tolerance": {"tolerance": 1, "boundaries": True},
    "infinite": {"infinite": 50, "boundaries": True},
    "derived": {"derived": {"whole": (1, "core")}},
    "components": {"components": [1], "background": 0},
    "connectivity": {"connectivity": 6, "components": True, "background": 0},
    "minimum_size": {"minimum_size": 2, "components": True, "background": 0},
    "resample": {"resample": "linear"},
    "ignore_geometry": {"ignore_geometry": True},
    "geometry_tolerance": {"geometry_tolerance": 2},
}


@pytest.mark.parametrize("name", sorted(set(declarations(CompareOptions)) - set(NOT_STORED)))
def test_every_option_that_changes_results_is_stored(name):
    """An option that is lost in JSON has no effect in worker processes and in the journal."""
    options = CompareOptions.of(**CHANGED[name])
    without = CompareOptions.of(**{key: x for key, x in CHANGED[name].items() if key != name})
    content = options.to_dict()
    assert content != without.to_dict()
    assert json.loads(json.dumps(content)) == content  # the journal compares the two
    assert getattr(CompareOptions.from_dict(content), name) == getattr(options, name)


def test_a_new_option_is_stored_under_its_name():
    @dataclass(frozen=True, kw_only=True)
    class NewOptions(CompareOptions):
        window: tuple[int, ...] = option((), tuple, Form("Metrics", "N"), "A new option.")

    declared, options = declarations(NewOptions), NewOptions(window=(3, 5))
    content = stored_options(options, NewOptions(), declared)
    assert content == CompareOptions().to_dict() | {"window": [3, 5]}
    assert values_from_dict(content, declared)["window"] == (3, 5)
    assert "window" not in stored_options(NewOptions(), NewOptions(), declared)


@dataclass(frozen=True, kw_only=True)
class NewStatistics(StatisticsOptions):
    fractions: tuple[float, ...] = option((0.5,), tuple, Form("Ranking", "N"), "A new option.")


def test_statistics_are_entries_of_the_summary_in_a_fixed_order():
    evaluating = EvaluateOptions.of(rank_by=["dice:2", "score"], missing="zero", workers=2)
    content = evaluating.statistics.to_summary()
    assert json.dumps(content) == (
        '{"missing_rule": "zero", "rank_by": ["dice:2", "score"], "scheme": "rank-then-aggregate"}'
    )
    summary = content | {"missing": [{"case": "a"}], "words": "python"}
    assert StatisticsOptions.from_summary(summary) == StatisticsOptions(
        missing="zero", rank_by=("dice:2", "score"), scheme="rank-then-aggregate"
    )
    with pytest.raises(ProbdiceError, match="scheme must be"):
        StatisticsOptions.from_summary(summary | {"scheme": "alphabetical"})


def test_a_new_option_of_the_statistics_is_stored_and_restored():
    declared, statistics = declarations(NewStatistics), NewStatistics(fractions=(0.1, 0.25))
    content = summary_entries(statistics, declared)
    assert content == StatisticsOptions().to_summary() | {"fractions": [0.1, 0.25]}
    restored = values_from_summary(json.loads(json.dumps(content)), declared)
    assert NewStatistics(**restored) == statistics
    earlier_summary = StatisticsOptions().to_summary()
    assert NewStatistics(**values_from_summary(earlier_summary, declared)) == NewStatistics()


def test_pages_show_a_new_option_of_the_statistics_if_it_is_not_the_default():
    others = {"missing": "zero", "rank_by": ("score",), "scheme": "test-based"}  # shown elsewhere
    assert statistics_facts(NewStatistics(**others)) == []
    changed = NewStatistics(**others, fractions=(0.1, 0.25))
    assert statistics_facts(changed) == [Fact("Fractions", ("0.1, 0.25",))]


def test_the_stored_form_of_options_stays_readable():
    """The keys, their order and their values are those of journals and comparisons on disk."""
    options = CompareOptions.of(
        match={5: 1},
        scale={"prediction": 100},
        background=0,
        boundaries=True,
        tolerance=2,
        components=True,
        derived={"whole": (1, 2)},
        resample="linear",
        names={1: "grey"},
        nested={"prediction": (0, 2)},
        correspondence="set",
    )
    assert json.dumps(options.to_dict()) == (
        '{"similarity": {"name": "absolute"}, "match": {"fixed": [[5, 1]]}, "merge": "none", '
        '"ignore": [], "sums": {"reference": "error", "prediction": "error"}, "scale": null, '
        '"scales": {"reference": null, "prediction": 100.0}, '
        '"names": {"reference": [[1, "grey"]], "prediction": [[1, "grey"]]}, '
        '"priority": {"reference": [], "prediction": []}, "ignore_geometry": false, '
        '"tolerance": 0.1, "nested": {"reference": [], "prediction": [0, 2]}, '
        '"background": {"reference": 0, "prediction": 0}, "resample": "linear", '
        '"correspondence": "set", "boundaries": {"tolerance": [2.0], "infinite": null}, '
        '"components": {"labels": [], "connectivity": null, "minimum_size": 0.0}, '
        '"derived": {"whole": [1, 2]}}'
    )


def test_relative_paths_of_name_tables_are_restored_unchanged():
    content = CompareOptions.of(names="/tables/lut.txt").to_dict()
    content["names"] = {"reference": "../lut.txt", "prediction": None}
    assert CompareOptions.from_dict(content).names == Both("../lut.txt", None)


def parameters(function: object) -> dict[str, object]:
    """The keyword parameters of a function that are options, with their defaults."""
    given = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return {one.name: one.default for one in given if one.name in declarations(EvaluateOptions)}


def test_evaluate_has_every_declared_option_with_its_default():
    keywords = parameters(evaluate)
    assert set(keywords) == set(declarations(EvaluateOptions))
    assert EvaluateOptions.of(**keywords) == EvaluateOptions()


def test_compare_has_the_declared_options_with_their_defaults():
    keywords = parameters(compare)
    files = set(declarations(ReadOptions)) | {"correspondence"}
    files |= {"boundaries", "tolerance", "infinite"}  # Comparison.boundaries has them
    files |= {"derived"}  # Comparison.derived has it
    files |= {"components", "connectivity", "minimum_size"}  # component_table has them
    assert set(keywords) - {"mask", "workers"} == set(declarations(CompareOptions)) - files
    given = {name: value for name, value in keywords.items() if name not in ("mask", "workers")}
    assert CompareOptions.of(**given) == CompareOptions()


@pytest.mark.parametrize("command", ["compare", "evaluate", "agree", "consensus", "info", "check"])
def test_commands_have_the_options_that_are_declared_for_them(command):
    function = next(one for one in COMMANDS if one.__name__ == command)
    shown = inspect.signature(function).parameters
    declared = [
        name for name, one in declarations(EvaluateOptions).items() if command in one.form.commands
    ]
    assert declared
    for name in declared:
        option = get_args(shown[name].annotation)[1]
        assert option.help == declarations(EvaluateOptions)[name].help_for(command)


@pytest.mark.parametrize("name", list(declarations(EvaluateOptions)))
def test_every_option_is_documented_in_the_docstring_of_evaluate(name):
    described = inspect.getdoc(evaluate)
    assert re.search(rf"^(\w+, )*{name}(, \w+)*( : .*)?$", described, re.MULTILINE)


def test_choices_are_the_values_that_the_check_accepts():
    for name, one in declarations(EvaluateOptions).items():
        for choice in one.form.choices:
            EvaluateOptions.of(**{name: choice})
            assert choice in one.help, name


def test_the_help_describes_every_similarity():
    words = declarations(CompareOptions)["similarity"].help
    assert "absolute (differences of probabilities, the default)" in words
    assert all(one.help and f"{one.name} ({one.help})" in words for one in BUILT_IN)


@pytest.mark.parametrize("name", ["ignore", "background", "resample"])
def test_the_help_names_sides_only_for_commands_that_have_them(name):
    declared = declarations(EvaluateOptions)[name]
    for command in ("compare", "evaluate"):
        assert re.search("reference", declared.help_for(command))
        assert "rater" not in declared.help_for(command)
    for command in ("agree", "consensus"):
        assert not re.search("reference|prediction|side", declared.help_for(command))
