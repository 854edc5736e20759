"""A metric and a loss for torch and Lightning (extra `torch`).

`RegionDice` accumulates sums over batches and processes. By default, it matches regions once for
the whole data set, and computes scores for this match. `RegionDiceLoss` computes 1 − Dice or 1 −
score. With the default similarity, the minimum of the loss is exactly at the target, even for soft
targets.
"""

from probdice.errors import imports_of_extra

with imports_of_extra("torch", "torch", "torchmetrics"):
    from probdice.torch.loss import RegionDiceLoss, region_dice_loss
    from probdice.torch.metric import RegionDice

__all__ = ["RegionDice", "RegionDiceLoss", "region_dice_loss"]
