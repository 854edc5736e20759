"""A metric and a handler for MONAI (extra `monai`)."""

from collections.abc import Callable
from typing import Any

from probdice.comparison.result import Comparison
from probdice.errors import InputError, imports_of_extra
from probdice.method.region_labels import Label
from probdice.torch import RegionDice

with imports_of_extra("monai", "ignite", "monai"):
    import torch
    from ignite.engine import Engine  # MONAI replaces a missing ignite with a placeholder
    from monai.handlers import IgniteMetricHandler
    from monai.metrics import CumulativeIterationMetric
    from torch import Tensor

__all__ = ["RegionDiceHandler", "RegionDiceMetric"]


class RegionDiceMetric(CumulativeIterationMetric):
    """A MONAI metric that computes a `RegionDice`.

    The buffer has one row, which contains the sums of `RegionDice` over all images of this process.
    MONAI gathers the buffers of all processes.

    Parameters
    ----------
    metric : RegionDice
        The metric to compute. Its state is overwritten.
    soft_target : bool, optional
        Whether a target with one channel contains the probability of a single foreground region. By
        default, the channel is read as labels, which MONAI often stores as floating-point numbers.

    Examples
    --------
    >>> import torch
    >>> from probdice.monai import RegionDiceMetric
    >>> from probdice.torch import RegionDice
    >>> metric = RegionDiceMetric(RegionDice(2, 3))
    >>> labels = torch.tensor([[[0.0, 0.0, 1.0, 1.0]]])  # one image of one channel
    >>> clusters = torch.tensor([[[2.0, 2.0, 0.0, 1.0]]])
    >>> _ = metric(y_pred=clusters, y=labels)
    >>> metric.aggregate()
    tensor(0.7500, dtype=torch.float64)
    >>> metric.mapping
    {0: 1, 2: 0}
    """

    def __init__(self, metric: RegionDice, *, soft_target: bool = False) -> None:
        if not isinstance(metric, RegionDice):
            raise InputError(f"metric must be a RegionDice, found {type(metric).__name__}")
        self.metric = metric
        self.metric.sync_on_compute = self.metric._to_sync = False  # MONAI gathers the buffer
        self.soft_target = soft_target
        super().__init__()

    def reset(self) -> None:
        """Reset the sums."""
        super().reset()
        self.metric.reset()
        # The row of an empty metric, so that gathering also works for a process without images.
        self._buffers = [[self._row()]]

    def extend(self, *data: Any) -> None:
        """Add rows of sums to the row in the buffer."""
        super().extend(*data)
        rows = self._buffers[0]
        device = rows[-1].device
        self._buffers[0] = [torch.stack([row.to(device) for row in rows]).sum(dim=0)]

    def _compute_tensor(self, y_pred: Tensor, y: Tensor | None = None, **kwargs: Any) -> Tensor:
        """Return the sums of a batch, as one row."""
        if y is None:
            raise InputError("y is missing. Pass the target as labels or probabilities.")
        preds = _without_channel(y_pred, "y_pred", self.metric.regions[1] == 2)
        target = _without_channel(y, "y", self.metric.regions[0] == 2 and self.soft_target)
        self.metric.reset()
        self.metric.update(preds, target)
        return self._row()[None]

    def _row(self) -> Tensor:
        """Return the state of the metric, flattened to one row."""
        state = self.metric.metric_state.values()
        return torch.cat([part.to(torch.float64).flatten() for part in state])

    def _gathered(self) -> RegionDice:
        """Return the metric after adding the sums of all processes."""
        row = self.get_buffer().sum(dim=0)
        self.metric.reset()
        start = 0
        state = {}
        for name, part in self.metric.metric_state.items():
            values = row[start : start + part.numel()]
            state[name] = values.to(part.dtype).reshape(part.shape).to(part.device)
            start += part.numel()
        state["options_digest"] = self.metric.options_digest  # is not a sum
        self.metric.merge_state(state)
        return self.metric

    def aggregate(self, key: str = "score") -> Tensor:
        """Return one value of the metric, computed over all data. `values` returns all values.

        Parameters
        ----------
        key : str, optional
            Name of the value, such as "score" or "mean_iou".
        """
        values = self.values()
        if key not in values:
            raise InputError(f"key must be one of {', '.join(values)}, found {key!r}")
        return values[key]

    def values(self) -> dict[str, Tensor]:
        """Return all values of `RegionDice.compute`."""
        return self._gathered().compute()

    @property
    def result(self) -> Comparison:
        """The comparison of the data of all processes."""
        return self._gathered().result

    @property
    def mapping(self) -> dict[Label, Label]:
        """The class of every matched region of the predictions."""
        return self._gathered().mapping


class RegionDiceHandler(IgniteMetricHandler):
    """Store the values of a `RegionDice` in ``engine.state.metrics`` after every epoch.

    One value is stored under the name of the handler. All other values have names such as
    ``name_mean_iou``. Add the handler to ``val_handlers=[…]``, before handlers that report metrics,
    or to ``key_val_metric={name: handler}``.

    Parameters
    ----------
    metric : RegionDice
        The metric to compute.
    output_transform : callable, optional
        A function that extracts (preds, target) from the output of the engine, such as
        ``monai.handlers.from_engine(["pred", "label"])``.
    name : str, optional
        Name of the handler if `attach` is called without a name.
    value : str, optional
        The value of `RegionDice.compute` that is stored under the name of the handler. By default,
        this is the value with the same name as the handler, or the score if no value has this name.
        For example, ``key_val_metric={"mean_dice": handler}`` stores the mean Dice.
    soft_target : bool, optional
        As in `RegionDiceMetric`.

    Examples
    --------
    >>> from monai.handlers import from_engine
    >>> from probdice.monai import RegionDiceHandler
    >>> from probdice.torch import RegionDice
    >>> metric = RegionDice(3, 5, activation="softmax")
    >>> handler = RegionDiceHandler(metric, from_engine(["pred", "label"]))
    >>> handler.name
    'region_dice'
    """

    def __init__(
        self,
        metric: RegionDice,
        output_transform: Callable[[Any], Any] = lambda output: output,
        *,
        name: str = "region_dice",
        value: str | None = None,
        soft_target: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        super().__init__(
            metric_fn=RegionDiceMetric(metric, soft_target=soft_target),
            output_transform=output_transform,
            save_details=False,
        )
        if value is not None and value not in metric.keys:
            allowed = ", ".join(metric.keys)
            raise InputError(f"value must be one of {allowed}, found {value!r}")

    def attach(self, engine: Engine, name: str | None = None) -> None:
        """Compute the metric at the end of every epoch of an engine.

        Parameters
        ----------
        engine : ignite.engine.Engine
            The engine, such as a MONAI evaluator.
        name : str, optional
            Name that replaces the name of the handler.
        """
        super().attach(engine, name or self.name)

    def completed(self, engine: Engine, name: str) -> None:
        """Store all values in the state of the engine."""
        values = self.metric_fn.values()
        stored = self.value or (name if name in values else "score")
        for key, value in values.items():
            engine.state.metrics[name if key == stored else f"{name}_{key}"] = value.item()


def _without_channel(tensor: Tensor, name: str, foreground: bool) -> Tensor:
    """Remove the channel axis of labels with one channel; return other tensors unchanged."""
    if tensor.dim() < 2 or tensor.shape[1] != 1:
        return tensor
    if not tensor.is_floating_point():
        return tensor[:, 0]
    if foreground:
        return tensor
    labels = tensor.to(torch.int64)
    if not bool((labels == tensor).all()):
        option = "num_classes=2 and soft_target=True" if name == "y" else "num_clusters=2"
        raise InputError(
            f"{name} has one channel, which must contain labels, found values that are not "
            f"integers. For the probability of a foreground, use {option}."
        )
    return labels[:, 0]
