"""Find the cases in a folder of BIDS derivatives.

A case is a subject, optionally with a session, a run or another entity of the recording. A case has
one label map (``*_dseg.nii.gz``), or one probability map per region
(``*_label-GM_probseg.nii.gz``).
"""

from collections.abc import Collection, Mapping
from pathlib import Path

from probdice.errors import InputError, Note, Option
from probdice.evaluation.folders import relative_path
from probdice.files.bids import BidsName
from probdice.files.sources import natural

__all__ = [
    "LABELS",
    "MASKS",
    "PROBABILITIES",
    "bids_note",
    "find_derivatives",
    "regions_in_names",
]

LABELS, PROBABILITIES, MASKS = "dseg", "probseg", "mask"  # suffixes

EXTENSIONS = (".nii.gz", ".nii")
# Entities that describe how an image was derived. All other entities describe the recording of the
# image, so they are part of the case name.
DERIVED = ("hemi", "space", "cohort", "atlas", "seg", "scale", "res", "den", "label", "desc")
REGION = "label"


def find_derivatives(folder: Path, suffixes: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the files with the first of `suffixes` that occurs, by case; {} if none occurs.

    If the files with this suffix differ in derivative entities such as `space` or `desc`, the files
    without such entities (except `label`) are used. An error is raised unless exactly one type of
    file remains.
    """
    kinds: dict[str, dict[str, dict[str, list[Path]]]] = {suffix: {} for suffix in suffixes}
    for subject in folder.glob("sub-*/"):
        for file in subject.rglob(f"{subject.name}_*.nii*"):
            name = BidsName.of(file.name)
            if name is not None and name.extension in EXTENSIONS and name.suffix in kinds:
                cases = kinds[name.suffix].setdefault(_ending(name), {})
                cases.setdefault(_case(name), []).append(file)
    endings = next((kinds[suffix] for suffix in suffixes if kinds[suffix]), None)
    if endings is None:
        return {}
    ending = _choose_ending(folder, endings)
    for case, files in endings[ending].items():
        _check_distinct(folder, case, files, ending)
    return {
        case: tuple(str(file) for file in sorted(files, key=lambda file: natural(file.name)))
        for case, files in endings[ending].items()
    }


def regions_in_names(files: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the regions (entity "label") of all files, by case; {} if a file has no region."""
    names = {case: [BidsName.of(Path(file).name) for file in files[case]] for case in files}
    regions = {
        case: tuple("" if name is None else name.value(REGION) for name in case_names)
        for case, case_names in names.items()
    }
    return regions if all(all(labels) for labels in regions.values()) else {}


def bids_note(folders: Mapping[str, tuple[str, Collection[str]]]) -> list[Note]:
    """Return a note on the files read from folders of BIDS derivatives.

    `folders` lists the folder of the reference and of every method, each with its files.
    """
    layouts = {name: _layout(*folder) for name, folder in folders.items()}
    layout_text = "; ".join(f"{name}: {form}" for name, form in layouts.items() if form)
    if not layout_text:
        return []
    text = f"BIDS derivatives were recognised ({layout_text}). To select other files, use "
    option = Option("pattern", "PATTERN", python="pattern=…")
    return [Note("bids", (text, option, "."))]


def _layout(folder: str, files: Collection[str]) -> str:
    """Return patterns for the paths, such as sub-*/anat/*_dseg.nii.gz; "" if a path is not BIDS."""
    forms = set()
    for file in files:
        *folders, name = relative_path(file, folder).split("/")
        parts = BidsName.of(name)
        if parts is None or not folders or folders[0] != f"sub-{parts.value('sub')}":
            return ""
        folder_patterns = [
            f"{directory[:4]}*" if directory.startswith(("sub-", "ses-")) else directory
            for directory in folders
        ]
        forms.add("/".join([*folder_patterns, f"*{_ending(parts)}"]))
    return ", ".join(sorted(forms))


def _ending(name: BidsName) -> str:
    """Return the end of a file name, in which * replaces the region."""
    pairs = [
        f"{key}-{'*' if key == REGION else value}" for key, value in name.entities if key in DERIVED
    ]
    return "_" + "_".join([*pairs, name.suffix]) + name.extension


def _case(name: BidsName) -> str:
    return "_".join(f"{key}-{value}" for key, value in name.entities if key not in DERIVED)


def _choose_ending(folder: Path, endings: Mapping[str, object]) -> str:
    """Return the only ending or, if there are several, the only one without derivative entities.

    The entity of the region does not count. If several endings remain, an error is raised.
    """
    if len(endings) == 1:
        return next(iter(endings))
    plain_endings = [ending for ending in endings if not set(_keys(ending)) - {REGION}]
    if len(plain_endings) == 1:
        return plain_endings[0]
    patterns = [f"**/{{case}}{ending}" for ending in sorted(endings)]
    raise InputError(
        f"{folder}: the subjects have several kinds of segmentations. Select one with ",
        Option("pattern", python=f"pattern={patterns[0]!r}", command=f"--pattern '{patterns[0]}'"),
        f"; the patterns are {', '.join(patterns)}",
    )


def _keys(ending: str) -> list[str]:
    name = BidsName.of(ending.removeprefix("_"))
    return [] if name is None else [key for key, _ in name.entities]


def _check_distinct(folder: Path, case: str, files: list[Path], ending: str) -> None:
    """Reject a case that has several label maps, or several files of one region."""
    if len({file.name for file in files}) < len(files) or (len(files) > 1 and "*" not in ending):
        names = ", ".join(sorted(str(file.relative_to(folder)) for file in files))
        raise InputError(
            f"{folder}: case {case} has several files of one kind ({names}); select one with a "
            f"pattern such as '*/anat/{{case}}{ending}'"
        )
