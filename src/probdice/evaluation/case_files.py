"""Find the files of every case in a folder.

Without a pattern, a case is a file, and the name of the case is the file name without the suffix.
In a folder without supported files, a case is a subfolder with one file, or with one file per
region. In a pattern (`patterns`), ``{case}`` marks the name of the case. If a case has several
files, each file is one region. ``{method}`` marks the name of the method, if one folder contains
several methods.

A folder of BIDS derivatives needs no pattern (`derivatives`), but a given pattern takes precedence.

Two conventions of nnU-Net are supported. If a folder contains ``case.nii.gz`` and
``case_0000.nii.gz``, then ``case_0000.nii.gz``, ``case_0001.nii.gz``, … are the channels of an
image, not segmentations. ``case.npz`` contains the probabilities for the label map ``case.nii.gz``.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from probdice.errors import InputError, Option
from probdice.evaluation.derivatives import (
    LABELS,
    PROBABILITIES,
    find_derivatives,
    regions_in_names,
)
from probdice.evaluation.folders import as_name
from probdice.evaluation.patterns import CASE, METHOD, SPANNING, Pattern
from probdice.files import FORMATS
from probdice.files.sources import natural, region_names, split_inside
from probdice.method.region_labels import listed

__all__ = [
    "MAX_LISTED_NAMES",
    "SUFFIXES",
    "Files",
    "find_cases",
    "find_image_channels",
    "find_images",
    "find_methods",
    "name_regions",
]

Files = Mapping[str, tuple[str, ...]]  # paths by case

JPEG = (".jpg", ".jpeg")  # only for photographs, because JPEG compression changes labels
SUFFIXES = (
    ".seg.nrrd",
    *sorted({s for file_format in FORMATS for s in file_format.suffixes} - {*JPEG}, key=len)[::-1],
)  # longest first
CHANNEL = re.compile(r"(.+)_\d{4}")  # file name of a channel of nnU-Net without the suffix
MAX_LISTED_NAMES = 8


def find_cases(
    folder: Path,
    pattern: str | None,
    *,
    probabilities: bool,
    suffixes: tuple[str, ...] = (LABELS, PROBABILITIES),
    photographs: bool = False,
) -> dict[str, tuple[str, ...]]:
    """Return the files of every case in a folder.

    `suffixes` lists the suffixes of BIDS derivatives to search for. If `photographs` is True, a
    JPEG file is used for a case that has no other file.
    """
    if not folder.is_dir():
        reason = "expected a folder of cases, found a file" if folder.exists() else "no such folder"
        raise InputError(f"{folder}: {reason}")
    try:
        if pattern is not None:
            return _cases_by_pattern(folder, pattern)
        files = _supported_files(folder)
        if photographs:
            files = _supported_files(folder, JPEG) | files
        if files:
            return {
                stem: (str(_choose_file(stem, same_stem, probabilities)),)
                for stem, same_stem in files.items()
            }
        order = suffixes[::-1] if probabilities else suffixes
        return find_derivatives(folder, order) or _cases_by_subfolder(folder, probabilities)
    except OSError as error:
        raise InputError(f"{folder}: cannot list this folder: {error.strerror}") from error


def find_image_channels(folder: Path, pattern: str | None) -> tuple[str, ...]:
    """Return the files that `find_cases` omits because they are channels of nnU-Net's images.

    The paths are relative to the folder.
    """
    if pattern is not None:
        return ()
    files_of_folder = _files_by_stem(folder)
    files_by_folder = (
        [files_of_folder] if files_of_folder else map(_files_by_stem, _subfolders(folder))
    )
    channels = [
        file.relative_to(folder).as_posix()
        for files in files_by_folder
        for stem in _channels(files)
        for file in files[stem]
    ]
    return tuple(sorted(channels, key=natural))


def name_regions(
    folder: Path, pattern: str | None, files: Files, method: str = ""
) -> dict[str, tuple[str, ...]]:
    """Return the region names of every case, for a folder with one file per region.

    The region name of a BIDS file is its entity "label", unless a pattern is given. Otherwise, a
    region name is the part of the file name that differs between regions, without the name of the
    case. A region therefore has the same name in all cases, even if a case lacks other regions. A
    case with a single file is included if a case with several files has a region of the same name.
    If no part of the file names identifies the regions, the regions of every case are named
    separately.
    """
    if pattern is None and (regions := regions_in_names(files)):
        return regions
    multi_file_cases = [case for case, paths in files.items() if len(paths) > 1]
    if not multi_file_cases:
        return {}
    for without_case in (False, True) if pattern is None else (True,):
        stems = {
            case: [_stem(folder, pattern, case, method, path, without_case) for path in paths]
            for case, paths in files.items()
        }
        region_stems = sorted(
            {stem for case in multi_file_cases for stem in stems[case]}, key=natural
        )
        is_distinct = all(len(set(stems[case])) == len(stems[case]) for case in multi_file_cases)
        is_shared = len(multi_file_cases) == 1 or len(region_stems) < sum(
            len(files[case]) for case in multi_file_cases
        )
        if is_distinct and is_shared:
            break
    else:  # no part of the file names identifies the regions
        return {case: tuple(map(str, region_names(files[case]))) for case in multi_file_cases}
    names = dict(zip(region_stems, map(str, region_names(region_stems)), strict=True))
    return {
        case: tuple(names[stem] for stem in stems[case])
        for case in files
        if stems[case] and names.keys() >= set(stems[case])
    }


def find_images(folder: Path, pattern: str | None, cases: Iterable[str]) -> dict[str, str]:
    """Return the background image of every case that has a background image."""
    cases = list(cases)
    files = find_cases(folder, pattern, probabilities=False, photographs=True)
    images = {case: files[case][0] for case in cases if case in files}
    if not images:
        names = sorted(files, key=natural)
        example = f"{CASE}_0000.nii.gz"
        raise InputError(
            f"{folder}: no image matches a case. Images: {listed(names, MAX_LISTED_NAMES)}. Cases: "
            f"{listed(cases, MAX_LISTED_NAMES)}. If the names differ, give a pattern for the "
            f"images, such as ",
            Option(
                "pattern",
                python=f"pattern={{'image': {example!r}}}",
                command=f"--pattern 'image:{example}'",
            ),
            ".",
        )
    return images


def find_methods(
    folder: Path, text: str, reference_files: Files
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the methods whose files are in one folder, and the cases of each method.

    ``{case}`` matches the names of reference cases, and ``{method}`` matches method names. A file
    that belongs to no reference case is included if its method also has files of reference cases.
    Reference files in the same folder are skipped.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    reference_paths = {file for files in reference_files.values() for file in files}
    by_length = sorted(reference_files, key=len, reverse=True)
    case_pattern = Pattern.of(text, cases=by_length)
    matches = {
        f: m
        for f, m in _matching_files(folder, text, case_pattern).items()
        if str(f) not in reference_paths
    }
    methods = sorted({match["method"] for match in matches.values()}, key=natural)
    if methods:
        method_pattern = Pattern.of(text, methods=sorted(methods, key=len, reverse=True))
        for file, match in _matching_files(folder, text, method_pattern).items():
            if file not in matches and str(file) not in reference_paths:
                matches[file] = match
    return {
        method: _group_by_case(
            text, case_pattern, {file: m for file, m in matches.items() if m["method"] == method}
        )
        for method in methods
    }


def _cases_by_pattern(folder: Path, text: str) -> dict[str, tuple[str, ...]]:
    """Return the files that match a pattern, by case."""
    if METHOD in text:
        raise InputError(
            f"pattern {text!r} has {METHOD}, which is only allowed for folders of predictions; use "
            f"a separate pattern without {METHOD} for this folder"
        )
    pattern = Pattern.of(text)
    return _group_by_case(text, pattern, _matching_files(folder, text, pattern))


def _matching_files(folder: Path, text: str, pattern: Pattern) -> dict[Path, re.Match[str]]:
    files = {}
    try:
        for file in folder.glob(pattern.glob):
            match = pattern.expression.fullmatch(as_name(file.relative_to(folder).as_posix()))
            if match and not file.is_dir():
                files[file] = match
    except (ValueError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"pattern {text!r} is invalid: {error}") from error
    return files


def _group_by_case(
    text: str, pattern: Pattern, file_matches: Mapping[Path, re.Match[str]]
) -> dict[str, tuple[str, ...]]:
    """Return the files by case, after checking that the files of each case are in one folder."""
    files: dict[str, dict[Path, re.Match[str]]] = {}
    for file, match in file_matches.items():
        files.setdefault(match["case"], {})[file] = match
    for case, matches in files.items():
        _check_one_folder(text, case, matches)
    if pattern.has_open_start and files:
        _check_regions(text, files)
    inside = pattern.inside
    return {
        case: tuple(
            f"{file}:{inside.replace(CASE, case)}" if inside else str(file)
            for file in sorted(matches, key=lambda file: natural(str(file)))
        )
        for case, matches in files.items()
    }


def _check_one_folder(pattern: str, case: str, matches: Mapping[Path, re.Match[str]]) -> None:
    """Reject a case name that occurs in several folders, such as site1/p1 and site2/p1."""
    file_by_folder: dict[str, Path] = {}
    for file, match in matches.items():
        file_by_folder.setdefault(match.string[: match.start("case")].rpartition("/")[0], file)
    if len(file_by_folder) > 1:
        first_file, second_file = sorted(
            file_by_folder.values(), key=lambda file: natural(str(file))
        )[:2]
        raise InputError(
            f"pattern {pattern!r}: case {case} has files in different folders, {first_file} and "
            f"{second_file}; to make the folder part of the case name, use a pattern such as "
            f"'{SPANNING}.nii.gz'"
        )


def _check_regions(pattern: str, files: Mapping[str, Mapping[Path, re.Match[str]]]) -> None:
    """Reject a * before {case} unless it matches the same two or more regions in all cases."""
    regions = {
        case: {match["region"] for match in matches.values()} for case, matches in files.items()
    }
    case, fewest_regions = min(regions.items(), key=lambda item: len(item[1]))
    if len(fewest_regions) > 1 and all(
        case_regions == fewest_regions for case_regions in regions.values()
    ):
        return
    names = sorted(file.name for file in files[case])
    raise InputError(
        f"pattern {pattern!r}: a * before {CASE} must match one character that numbers the "
        f"regions, and all cases must have the same regions, but case {case} has only "
        f"{listed(names, MAX_LISTED_NAMES)}. Replace * with the exact text before {CASE}, with ? "
        f"for any one character, or with [123] for one of several characters."
    )


def _cases_by_subfolder(folder: Path, probabilities: bool) -> dict[str, tuple[str, ...]]:
    cases = {}
    for case in _subfolders(folder):
        name, files = as_name(case.name), _supported_files(case)
        selected_files = [
            _choose_file(f"{name}/{stem}", files[stem], probabilities) for stem in files
        ]
        if selected_files and name in cases:
            raise InputError(
                f"{folder}: two subfolders have the case name {name} in different Unicode forms "
                f"(composed and decomposed characters); rename one of them"
            )
        if selected_files:
            cases[name] = tuple(
                str(file) for file in sorted(selected_files, key=lambda file: natural(file.name))
            )
    return cases


def _subfolders(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]


def _supported_files(folder: Path, suffixes: Sequence[str] = SUFFIXES) -> dict[str, list[Path]]:
    """Return the files with one of the suffixes, by file name without the suffix.

    Channels of nnU-Net's images, such as case_0000.nii.gz beside case.nii.gz, are omitted.
    """
    files = _files_by_stem(folder, suffixes)
    channels = _channels(files)
    return {stem: same_stem for stem, same_stem in files.items() if stem not in channels}


def _files_by_stem(folder: Path, suffixes: Sequence[str] = SUFFIXES) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for file in folder.iterdir():
        suffix = next((s for s in suffixes if file.name.lower().endswith(s)), "")
        stem = as_name(file.name[: len(file.name) - len(suffix)])
        if suffix and stem and not file.name.startswith(".") and not file.is_dir():
            files.setdefault(stem, []).append(file)
    return files


def _channels(stems: Collection[str]) -> set[str]:
    """Return the names of channels, given the names of all files of a folder without suffixes.

    nnU-Net always writes the first channel, case_0000. Without this file, case_0001 is a case.
    """
    matches = filter(None, map(CHANNEL.fullmatch, stems))
    return {match[0] for match in matches if match[1] in stems and f"{match[1]}_0000" in stems}


def _choose_file(case: str, files: list[Path], probabilities: bool) -> Path:
    """Return one of the files of a case, which differ only in their suffixes."""
    npz_files = [file for file in files if file.suffix.lower() == ".npz"]
    if probabilities:
        if not npz_files:
            raise InputError(
                f"{files[0]}: case {case} has no .npz file with probabilities in the same folder; "
                f"use nnU-Net's --save_probabilities to save this file, or omit ",
                Option("probabilities", python="probabilities=True"),
            )
        return npz_files[0]
    candidates = [file for file in files if file not in npz_files] or npz_files
    if len(candidates) > 1:  # the header and the pixel data can be in separate files
        headers = [
            f for f in candidates if not f.name.lower().endswith((".img", ".img.gz", ".raw"))
        ]
        candidates = headers or candidates
    if len(candidates) > 1:
        names = ", ".join(sorted(file.name for file in candidates))
        raise InputError(
            f"{candidates[0].parent}: case {case} has several files ({names}); select one with a "
            f"pattern such as '{{case}}{''.join(candidates[0].suffixes)}'"
        )
    return candidates[0]


def _stem(
    folder: Path, pattern: str | None, case: str, method: str, path: str, without_case: bool
) -> str:
    """Return the name of a file, optionally without the names of the case and the method."""
    file, inside = split_inside(path)
    text = as_name(file.relative_to(folder).as_posix())
    if not without_case:
        pass
    elif pattern is None:
        text = text.replace(case, "")
    else:
        methods = [method] if METHOD in pattern else []
        match = Pattern.of(pattern, cases=[case], methods=methods).expression.fullmatch(text)
        assert match is not None
        groups = [name for name in match.re.groupindex if name.startswith(("case", "method"))]
        for start, end in sorted(map(match.span, groups), reverse=True):
            text = text[:start] + text[end:]
    return text.rpartition("/")[2] + (f":{inside}" if inside else "")
