"""A metric and a loss for torch and Lightning (extra `torch`).

`RegionDice` accumulates sums over batches and processes, matches the regions of the whole data set
once, and scores them. `RegionDiceLoss` computes 1 − Dice or 1 − score. The minimum of the loss is
exactly at the target, also for soft targets.
"""

from probdice.errors import MissingExtraError

try:
    from probdice.torch.loss import RegionDiceLoss, region_dice_loss
    from probdice.torch.metric import RegionDice
except ModuleNotFoundError as error:
    missing = (error.name or "").split(".")[0]
    if missing not in ("torch", "torchmetrics"):
        raise
    raise MissingExtraError(
        f'probdice.torch requires {missing}: pip install "probdice[torch]"'
    ) from None

__all__ = ["RegionDice", "RegionDiceLoss", "region_dice_loss"]
