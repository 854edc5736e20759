"""The comparison as a metric of training loops, for torchmetrics and Lightning (extra `torch`).

`RegionDice` adds up what a data set shows of two segmentations, batch by batch and process by
process, finds which region is which once for the whole set, and scores it.
"""

from probdice.errors import MissingExtraError

try:
    from probdice.torch.metric import RegionDice
except ModuleNotFoundError as error:
    missing = (error.name or "").split(".")[0]
    if missing not in ("torch", "torchmetrics"):
        raise
    raise MissingExtraError(
        f'probdice.torch needs {missing}: pip install "probdice[torch]"'
    ) from None

__all__ = ["RegionDice"]
