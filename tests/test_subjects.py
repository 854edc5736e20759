"""Subjects of cases, and columns of other programs."""

import math
from pathlib import Path

import pytest

from probdice.errors import FormatError, InputError
from probdice.evaluation.external_columns import ExternalColumn, as_external_column
from probdice.evaluation.subjects import subjects_of


def test_a_pattern_takes_the_subject_from_the_name_of_a_case() -> None:
    cases = ["sub-01_ses-1", "sub-01_ses-2", "sub-02_ses-1"]
    assert subjects_of("{subject}_{session}", cases) == {
        "sub-01_ses-1": "sub-01",
        "sub-01_ses-2": "sub-01",
        "sub-02_ses-1": "sub-02",
    }
    assert subjects_of("{site}/{subject}-{visit}", ["a/x-1"]) == {"a/x-1": "x"}


def test_a_repeated_field_has_the_same_text() -> None:
    assert subjects_of("{subject}/{subject}_{n}", ["p1/p1_2"]) == {"p1/p1_2": "p1"}


def test_cases_that_a_pattern_does_not_match_are_named() -> None:
    with pytest.raises(InputError, match=r"does not match 1 of 2 cases \(other\)"):
        subjects_of("{subject}_{session}", ["a_1", "other"])


def test_an_ambiguous_pattern_is_rejected_with_both_readings() -> None:
    with pytest.raises(InputError, match="with the subject 'a' and with the subject 'a_b'"):
        subjects_of("{subject}_{session}", ["a_b_1"])


def test_a_table_has_one_subject_per_case(tmp_path: Path) -> None:
    table = tmp_path / "subjects.tsv"
    table.write_text("case\tage\tsubject\na1\t3\tanna\na2\t3\tanna\nb1\t4\tben\nunused\t1\tx\n")
    assert subjects_of(table, ["b1", "a2", "a1"]) == {"b1": "ben", "a2": "anna", "a1": "anna"}
    with pytest.raises(InputError, match=r"has no subject for 1 of 2 cases \(c1\)"):
        subjects_of(table, ["a1", "c1"])
    table.write_text("case\tsubject\na1\tanna\na1\tben\n")
    with pytest.raises(InputError, match=r"line 3: case 'a1' has the subjects 'anna' and 'ben'"):
        subjects_of(table, ["a1"])
    table.write_text("name\tsubject\na1\tanna\n")
    with pytest.raises(FormatError, match="column 'case' is missing, found 'name', 'subject'"):
        subjects_of(table, ["a1"])


def test_a_mapping_and_other_texts(tmp_path: Path) -> None:
    assert subjects_of({"a": "x", "b": "x"}, ["b"]) == {"b": "x"}
    with pytest.raises(InputError, match=r"expected a pattern with \{subject\}"):
        subjects_of(str(tmp_path / "absent.tsv"), ["a"])


def test_an_external_column_is_read_by_case_and_method(tmp_path: Path) -> None:
    file = tmp_path / "times.csv"
    file.write_text("method,case,runtime\nb,1,4\na,1,2.5\na,2,3\nc,1,9\na,9,9\nb,2,\n")
    column = as_external_column(f"runtime={file}")
    assert column == ExternalColumn("runtime", str(file), higher_is_better=False)
    table = column.read(["a", "b"], ["1", "2"])
    assert [table.of("a", "1"), table.of("a", "2"), table.of("b", "1")] == [2.5, 3.0, 4.0]
    assert math.isnan(table.of("b", "2"))
    with pytest.raises(InputError, match="no value for any case of method 'd'"):
        column.read(["a", "d"], ["1", "2"])


def test_invalid_external_columns_are_rejected(tmp_path: Path) -> None:
    file = tmp_path / "times.csv"
    file.write_text("method,case,runtime\na,1,2\na,1,3\n")
    with pytest.raises(InputError, match=r"line 3: case '1' of method 'a' already has a value"):
        as_external_column(f"runtime={file}").read(["a"], ["1"])
    file.write_text("method,case,runtime\na,1,fast\n")
    with pytest.raises(FormatError, match="line 2: runtime must be a finite number, found 'fast'"):
        as_external_column(f"runtime={file}").read(["a"], ["1"])
    for wrong in ("times.csv", "runtime:faster=times.csv"):
        with pytest.raises(InputError, match=r"expected NAME=FILE, NAME:lower=FILE"):
            as_external_column(wrong)
    assert as_external_column("reading:higher=r.csv").higher_is_better
