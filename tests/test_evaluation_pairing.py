"""Pairing of files in common folder layouts."""

from pathlib import Path

import pytest

from probdice.errors import InputError
from probdice.evaluation.case_files import find_cases, find_image_channels, find_images
from probdice.evaluation.folders import patterns_of
from probdice.evaluation.pairing import Job, Missing, natural, pair


def made(folder: Path, *names: str) -> Path:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return folder


def cases(folder: Path, pattern: str | None = None, *, probabilities: bool = False) -> object:
    """The paths of the files of every case, relative to the folder."""
    files = find_cases(folder, pattern, probabilities=probabilities)
    return {case: [path.removeprefix(f"{folder}/") for path in files[case]] for case in files}


def test_a_case_is_a_file_named_without_its_suffix(tmp_path: Path) -> None:
    made(tmp_path, "a.nii.gz", "b.2.npy", "c.seg.nrrd", "d.tif", "notes.txt", "a.jpg", ".e.npy")
    assert cases(tmp_path) == {
        "a": ["a.nii.gz"],
        "b.2": ["b.2.npy"],
        "c": ["c.seg.nrrd"],
        "d": ["d.tif"],
    }


def test_an_image_of_a_case_can_be_a_jpeg_photograph(tmp_path: Path) -> None:
    made(tmp_path, "a.jpg", "b.JPEG", "c.png", "c.jpg", "d.jpg")
    images = find_images(tmp_path, None, ["a", "b", "c"])
    assert images == {case: f"{tmp_path}/{case}{suffix}" for case, suffix in
                      (("a", ".jpg"), ("b", ".JPEG"), ("c", ".png"))}  # fmt: skip


def job(case: str, reference: str, prediction: str) -> Job:
    """A case of the method m without a mask."""
    return Job(case, "m", {"reference": (reference,), "prediction": (prediction,), "mask": ()})


def test_formats_may_differ_between_the_sides(tmp_path: Path) -> None:
    reference = made(tmp_path / "r", "a.nii.gz", "b.png")
    method = made(tmp_path / "m", "b.tif", "a.npy")
    jobs, missing, _ = pair(reference, {"m": method}, patterns=patterns_of(None, ["m"]))
    assert jobs == (
        job("a", f"{reference}/a.nii.gz", f"{method}/a.npy"),
        job("b", f"{reference}/b.png", f"{method}/b.tif"),
    )
    assert missing == ()


def test_a_case_is_a_subfolder_if_the_folder_has_no_files(tmp_path: Path) -> None:
    made(tmp_path, "one/seg.nii.gz", "two/other.npy", "two/log.txt", "empty/readme.txt", "x.json")
    assert cases(tmp_path) == {"one": ["one/seg.nii.gz"], "two": ["two/other.npy"]}


def test_several_files_of_a_subfolder_are_its_regions(tmp_path: Path) -> None:
    made(tmp_path, "one/pve_10.nii.gz", "one/pve_2.nii.gz", "one/pve_0.nii.gz")
    assert cases(tmp_path) == {"one": ["one/pve_0.nii.gz", "one/pve_2.nii.gz", "one/pve_10.nii.gz"]}


def test_subfolders_beside_files_are_ignored(tmp_path: Path) -> None:
    made(tmp_path, "a.npy", "old/a.npy", "old/b.npy")
    assert cases(tmp_path) == {"a": ["a.npy"]}


def test_nnunet_images_beside_label_maps_are_ignored(tmp_path: Path) -> None:
    made(tmp_path, "la_01.nii.gz", "la_01_0000.nii.gz", "la_01_0001.nii.gz", "plans.json")
    assert cases(tmp_path) == {"la_01": ["la_01.nii.gz"]}


def test_without_a_first_channel_a_four_digit_suffix_belongs_to_the_case(tmp_path: Path) -> None:
    names = ("p.npy", "p_0001.npy", "q.npy", "q_0001.npy", "q_0002.npy")
    made(tmp_path, *names)
    assert cases(tmp_path) == {name.removesuffix(".npy"): [name] for name in names}
    assert find_image_channels(tmp_path, None) == ()


def test_omitted_channels_are_listed(tmp_path: Path) -> None:
    channels = ("a_0000.nii.gz", "a_0001.nii.gz")
    made(tmp_path / "flat", "a.nii.gz", *channels, "b.nii.gz", "b_0001.nii.gz")
    assert find_image_channels(tmp_path / "flat", None) == channels
    assert find_image_channels(tmp_path / "flat", "{case}.nii.gz") == ()
    made(tmp_path / "deep", "one/a.nii.gz", "one/a_0000.nii.gz", ".two/a.npy", ".two/a_0000.npy")
    assert cases(tmp_path / "deep") == {"one": ["one/a.nii.gz"]}
    assert find_image_channels(tmp_path / "deep", None) == ("one/a_0000.nii.gz",)


def test_a_four_digit_suffix_without_a_label_map_is_a_case(tmp_path: Path) -> None:
    made(tmp_path, "scan_0001.nii.gz", "scan_0002.nii.gz")
    assert cases(tmp_path) == {
        "scan_0001": ["scan_0001.nii.gz"],
        "scan_0002": ["scan_0002.nii.gz"],
    }


def test_nnunet_probabilities_are_read_on_request(tmp_path: Path) -> None:
    made(tmp_path, "a.nii.gz", "a.npz", "a.pkl", "b.nii.gz", "b.npz", "b.pkl")
    assert cases(tmp_path) == {"a": ["a.nii.gz"], "b": ["b.nii.gz"]}
    assert cases(tmp_path, probabilities=True) == {"a": ["a.npz"], "b": ["b.npz"]}


def test_missing_probabilities_are_an_error(tmp_path: Path) -> None:
    made(tmp_path, "a.nii.gz", "a.npz", "b.nii.gz")
    with pytest.raises(InputError, match=r"b\.nii\.gz: case b has no \.npz file"):
        cases(tmp_path, probabilities=True)


def test_a_folder_with_only_npz_files_needs_no_option(tmp_path: Path) -> None:
    made(tmp_path, "a.npz")
    assert cases(tmp_path) == {"a": ["a.npz"]}


def test_a_header_and_its_values_are_one_file(tmp_path: Path) -> None:
    made(tmp_path, "a.hdr", "a.img", "b.mhd", "b.raw")
    assert cases(tmp_path) == {"a": ["a.hdr"], "b": ["b.mhd"]}


def test_two_files_with_the_same_name_are_an_error(tmp_path: Path) -> None:
    made(tmp_path, "a.nii.gz", "a.nrrd")
    with pytest.raises(InputError, match=r"case a has several files \(a\.nii\.gz, a\.nrrd\)"):
        cases(tmp_path)
    assert cases(tmp_path, "{case}.nrrd") == {"a": ["a.nrrd"]}


def test_a_pattern_marks_the_case_in_file_names(tmp_path: Path) -> None:
    made(tmp_path, "a_seg.nii.gz", "b_seg.nii.gz", "a_image.nii.gz", "[x]_seg.nii.gz")
    assert cases(tmp_path, "{case}_seg.nii.gz") == {
        "a": ["a_seg.nii.gz"],
        "b": ["b_seg.nii.gz"],
        "[x]": ["[x]_seg.nii.gz"],
    }


def test_a_pattern_may_match_subfolders_and_several_regions(tmp_path: Path) -> None:
    made(tmp_path, "s1/mri/p_2.nii", "s1/mri/p_10.nii", "s2/mri/p_2.nii", "s2/mri/brain.nii")
    assert cases(tmp_path, "{case}/mri/p_*.nii") == {
        "s1": ["s1/mri/p_2.nii", "s1/mri/p_10.nii"],
        "s2": ["s2/mri/p_2.nii"],
    }


def test_a_pattern_may_name_the_case_twice_and_skip_folders(tmp_path: Path) -> None:
    made(tmp_path, "x/s1/s1.npy", "x/s1/s2.npy", "y/z/s3/s3.npy")
    assert cases(tmp_path, "**/{case}/{case}.npy") == {
        "s1": ["x/s1/s1.npy"],
        "s3": ["y/z/s3/s3.npy"],
    }


def test_a_pattern_may_select_a_path_inside_a_file(tmp_path: Path) -> None:
    made(tmp_path, "12.mat", "7.mat")
    assert cases(tmp_path, "{case}.mat:groundTruth/0") == {
        "7": ["7.mat:groundTruth/0"],
        "12": ["12.mat:groundTruth/0"],
    }


def test_a_pattern_without_a_case_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no \{case\}"):
        cases(tmp_path, "*.nii.gz")


def test_a_case_in_two_folders_is_rejected_with_both_paths(tmp_path: Path) -> None:
    made(tmp_path, "site1/p1.nii.gz", "site2/p1.nii.gz", "site1/p2.nii.gz")
    for pattern in ("**/{case}.nii.gz", "*/{case}.nii.gz", "site[12]/{case}.nii.gz"):
        with pytest.raises(InputError) as caught:
            cases(tmp_path, pattern)
        assert str(caught.value) == (
            f"pattern {pattern!r}: case p1 has files in different folders, "
            f"{tmp_path}/site1/p1.nii.gz and {tmp_path}/site2/p1.nii.gz; to make the folder part "
            f"of the case name, use a pattern such as '{{case:path}}.nii.gz'"
        )


def test_the_name_of_a_case_may_contain_folders(tmp_path: Path) -> None:
    made(tmp_path, "site1/p1.nii.gz", "site2/p1.nii.gz", "p3.nii.gz", "site1/deep/p1.nii.gz")
    assert cases(tmp_path, "{case:path}.nii.gz") == {
        "p3": ["p3.nii.gz"],
        "site1/deep/p1": ["site1/deep/p1.nii.gz"],
        "site1/p1": ["site1/p1.nii.gz"],
        "site2/p1": ["site2/p1.nii.gz"],
    }


def test_a_case_name_with_folders_may_have_several_regions(tmp_path: Path) -> None:
    made(tmp_path, "s/1/p_0.nii", "s/1/p_1.nii", "t/1/p_0.nii")
    assert cases(tmp_path, "{case:path}/p_*.nii") == {
        "s/1": ["s/1/p_0.nii", "s/1/p_1.nii"],
        "t/1": ["t/1/p_0.nii"],
    }


def test_regions_may_be_in_subfolders_of_the_case(tmp_path: Path) -> None:
    made(tmp_path, "p1/csf/map.nii", "p1/grey/map.nii")
    assert cases(tmp_path, "{case}/*/map.nii") == {"p1": ["p1/csf/map.nii", "p1/grey/map.nii"]}


@pytest.mark.parametrize(
    "pattern", ["c*{case}_T1w.nii", "c?{case}_T1w.nii", "c[123]{case}_T1w.nii"]
)
def test_spm_tissue_maps_are_the_regions_of_a_case(tmp_path: Path, pattern: str) -> None:
    made(tmp_path, *(f"c{k}{case}_T1w.nii" for k in (1, 2, 3) for case in ("sub-01", "002")))
    made(tmp_path, "sub-01_T1w.nii", "y_sub-01_T1w.nii")
    assert cases(tmp_path, pattern) == {
        "002": ["c1002_T1w.nii", "c2002_T1w.nii", "c3002_T1w.nii"],
        "sub-01": ["c1sub-01_T1w.nii", "c2sub-01_T1w.nii", "c3sub-01_T1w.nii"],
    }


def test_the_star_before_the_case_numbers_the_regions_in_any_folder(tmp_path: Path) -> None:
    made(tmp_path, *(f"site{case}/c{k}{case}.nii" for k in (1, 2) for case in ("10", "20")))
    assert cases(tmp_path, "*/c*{case}.nii") == {
        "10": ["site10/c110.nii", "site10/c210.nii"],
        "20": ["site20/c120.nii", "site20/c220.nii"],
    }


def test_a_star_next_to_the_case_that_numbers_no_regions_is_rejected(tmp_path: Path) -> None:
    made(tmp_path, "csub-1.nii", "csub-2.nii")
    with pytest.raises(InputError, match=r"pattern 'c\*{case}\.nii': a \* before {case}"):
        cases(tmp_path, "c*{case}.nii")
    made(tmp_path / "uneven", "c1a.nii", "c2a.nii", "c1b.nii")
    with pytest.raises(InputError, match=r"case b has only c1b\.nii\. Replace"):
        cases(tmp_path / "uneven", "c*{case}.nii")
    assert cases(tmp_path / "uneven", "c?{case}.nii") == {
        "a": ["c1a.nii", "c2a.nii"],
        "b": ["c1b.nii"],
    }


def test_brackets_match_one_of_several_characters(tmp_path: Path) -> None:
    made(tmp_path, "a1.nii", "b1.nii", "]1.nii", "^1.nii", "-1.nii")
    assert cases(tmp_path, "[a-]{case}.nii") == {"1": ["-1.nii", "a1.nii"]}
    assert cases(tmp_path, "[]^]{case}.nii") == {"1": ["]1.nii", "^1.nii"]}
    assert cases(tmp_path, "[!]^a-]{case}.nii") == {"1": ["b1.nii"]}
    assert cases(tmp_path, "./[b]{case}.nii") == {"1": ["b1.nii"]}
    made(tmp_path, "[x].nii", "[y.nii")
    assert cases(tmp_path, "[{case}].nii") == {"x": ["[x].nii"]}
    assert cases(tmp_path, "[{case}.nii") == {"x]": ["[x].nii"], "y": ["[y.nii"]}


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("{case}*.nii.gz", "has {case}*, so the end of the case name is unknown"),
        ("*{case}.nii", "has *{case}, so the start of the case name is unknown"),
        ("{case}{case}.nii", "has {case}{case} without a separator"),
        ("/data/{case}.nii", "must be relative to the folder of cases"),
        ("C:/{case}.nii", "must be relative to the folder of cases"),
        ("a**/{case}.nii", "has ** within a name"),
        ("**{case}.nii", "has ** within a name"),
        ("[z-a]{case}.nii", "is invalid: bad character range z-a"),
        ("{site}/{case}.nii", "has {site}, expected only {case}, {method}, or {case:path}"),
        ("a.npz:{case}", "has no {case}"),
    ],
)
def test_invalid_patterns_are_rejected_with_a_reason(
    tmp_path: Path, pattern: str, reason: str
) -> None:
    made(tmp_path, "p1.nii", "p2.nii.gz")
    with pytest.raises(InputError) as caught:
        cases(tmp_path, pattern)
    assert str(caught.value).startswith(f"pattern {pattern!r} {reason}")


def test_missing_cases_are_listed_for_both_sides(tmp_path: Path) -> None:
    reference = made(tmp_path / "r", "a.npy", "b.npy")
    methods = {"m": made(tmp_path / "m", "a.npy"), "n": made(tmp_path / "n", "a.npy", "c.npy")}
    jobs, missing, _ = pair(reference, methods, patterns=patterns_of(None, methods))
    assert [(job.case, job.method) for job in jobs] == [("a", "m"), ("a", "n")]
    assert missing == (
        Missing("b", "m", "prediction"),
        Missing("b", "n", "prediction"),
        Missing("c", "n", "reference"),
    )


METHODS = {"prediction": "{case}_{method}.npy"}


def jobs_of(reference: Path, folder: Path, pattern: dict[str, str]) -> object:
    jobs, missing, methods = pair(
        reference, {"all": folder}, patterns=patterns_of(pattern, ["all"])
    )
    predictions = {(job.case, job.method): Path(job.files["prediction"][0]).name for job in jobs}
    return predictions, [(one.case, one.method, one.side) for one in missing], list(methods)


def test_several_methods_may_be_in_one_folder(tmp_path: Path) -> None:
    reference = made(tmp_path / "r", "p_1.npy", "p_1_a.npy")
    files = "p_1_net.npy", "p_1_big_net.npy", "p_1_a_net.npy", "p_1_a_big_net.npy", "p_2_net.npy"
    predictions, missing, methods = jobs_of(reference, made(tmp_path / "m", *files), METHODS)
    assert predictions == {
        ("p_1", "big_net"): "p_1_big_net.npy",
        ("p_1", "net"): "p_1_net.npy",
        ("p_1_a", "big_net"): "p_1_a_big_net.npy",
        ("p_1_a", "net"): "p_1_a_net.npy",
    }
    assert missing == [("p_2", "net", "reference")]
    assert methods == ["big_net", "net"]


def test_the_reference_may_be_in_the_folder_of_the_methods(tmp_path: Path) -> None:
    both = made(tmp_path, "a_truth.npy", "b_truth.npy", "a_net.npy", "b_net.npy")
    predictions, missing, methods = jobs_of(both, both, METHODS | {"reference": "{case}_truth.npy"})
    assert predictions == {("a", "net"): "a_net.npy", ("b", "net"): "b_net.npy"}
    assert (missing, methods) == ([], ["net"])


def test_only_prediction_patterns_may_have_method(tmp_path: Path) -> None:
    folder = made(tmp_path, "a_x.npy")
    with pytest.raises(InputError, match=r"has \{method\}, which is only allowed for folders"):
        cases(folder, "{case}_{method}.npy")
    with pytest.raises(InputError, match=r"has \{case\}\{method\} without a separator"):
        jobs_of(folder, folder, {"prediction": "{case}{method}.npy"})


def test_comparing_a_folder_with_itself_is_rejected(tmp_path: Path) -> None:
    folder = made(tmp_path, "a.npy", "b.npy")
    with pytest.raises(InputError, match="reference and prediction of case a are the same files"):
        pair(
            folder,
            {"m": tmp_path.parent / ".." / tmp_path.parent.name / tmp_path.name},
            patterns=patterns_of(None, ["m"]),
        )


def test_different_paths_inside_the_same_files_may_be_compared(tmp_path: Path) -> None:
    folder = made(tmp_path, "a.mat")
    parts = {"reference": "{case}.mat:truth/0", "prediction": "{case}.mat:truth/1"}
    jobs, _, _ = pair(folder, {"m": folder}, patterns=patterns_of(parts, ["m"]))
    assert jobs == (job("a", f"{folder}/a.mat:truth/0", f"{folder}/a.mat:truth/1"),)


def test_a_case_without_a_mask_is_rejected(tmp_path: Path) -> None:
    reference = made(tmp_path / "r", "a.npy", "b.npy")
    methods = {"m": made(tmp_path / "m", "a.npy", "b.npy")}
    masks = made(tmp_path / "k", "a_brain.npy", "b_brain.npy", "c_brain.npy")
    patterns = patterns_of({"mask": "{case}_brain.npy"}, methods)
    jobs, _, _ = pair(reference, methods, patterns=patterns, mask=masks)
    assert [job.files["mask"] for job in jobs] == [
        (f"{masks}/a_brain.npy",),
        (f"{masks}/b_brain.npy",),
    ]
    (masks / "b_brain.npy").unlink()
    with pytest.raises(InputError, match=r"k: 1 case has no mask \(b\), but every case needs one"):
        pair(reference, methods, patterns=patterns, mask=masks)


def test_no_common_case_is_an_error_that_lists_the_cases(tmp_path: Path) -> None:
    reference = made(tmp_path / "r", "a_seg.npy", "b_seg.npy")
    with pytest.raises(InputError) as caught:
        method = made(tmp_path / "m", "a.npy")
        pair(reference, {"m": method}, patterns=patterns_of(None, ["m"]))
    assert "no case has both a reference and a prediction" in str(caught.value)
    assert "r: a_seg, b_seg" in str(caught.value)
    assert "{case}_seg" in str(caught.value)


def test_a_file_or_missing_path_instead_of_a_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        cases(tmp_path / "nowhere")
    made(tmp_path, "file.npy")
    with pytest.raises(InputError, match="expected a folder of cases, found a file"):
        cases(tmp_path / "file.npy")


def test_cases_are_in_natural_order() -> None:
    assert sorted(["c10", "c2", "C1", "c2b", "b"], key=natural) == ["C1", "b", "c2", "c2b", "c10"]
