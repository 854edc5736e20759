"""`RegionDice` where MONAI calls it: as a metric, as a handler, in an evaluator."""

import contextlib
import io
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
from extras import require

from probdice import InputError
from probdice.errors import MissingExtraError

require("torch", "torchmetrics", "monai", "ignite")

import torch
from monai.data import DataLoader, Dataset, decollate_batch
from monai.engines import SupervisedEvaluator
from monai.handlers import StatsHandler, from_engine
from monai.metrics import CumulativeIterationMetric, DiceMetric
from monai.transforms import AsDiscrete

from probdice.monai import RegionDiceHandler, RegionDiceMetric
from probdice.torch import RegionDice

IMAGES, CLASSES, CLUSTERS, SHAPE = 5, 3, 4, (6, 7)


def made():
    """Logits of the clusters, and labels in one floating channel, as MONAI loads them."""
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(CLASSES, (IMAGES, 1, *SHAPE), generator=random)
    logits = torch.randn(IMAGES, CLUSTERS, *SHAPE, generator=random, dtype=torch.float64)
    logits += 2 * torch.nn.functional.one_hot((labels[:, 0] + 1) % 4, 4).movedim(-1, 1)
    return logits, labels.float()


def expected(**options):
    logits, labels = made()
    metric = RegionDice(CLASSES, CLUSTERS, activation="softmax", **options)
    metric.update(logits, labels[:, 0].long())
    return metric


# -- the metric ----------------------------------------------------------------------------------


@pytest.mark.parametrize("correspondence", ["set", "image"])
def test_batches_and_lists_of_images_give_the_same(correspondence):
    logits, labels = made()
    values = expected(correspondence=correspondence).compute()
    metric = RegionDiceMetric(
        RegionDice(CLASSES, CLUSTERS, activation="softmax", correspondence=correspondence)
    )
    assert isinstance(metric, CumulativeIterationMetric)
    metric(y_pred=logits[:2], y=labels[:2])
    metric(y_pred=list(logits[2:]), y=list(labels[2:]))
    assert metric.get_buffer().shape[0] == 1  # for any number of images
    assert metric.aggregate().item() == pytest.approx(values["score"].item(), abs=1e-12)
    assert metric.aggregate("mean_iou").item() == pytest.approx(
        values["mean_iou"].item(), abs=1e-12
    )
    metric(y_pred=logits, y=labels)  # sums can be added after aggregating
    metric.reset()
    metric(y_pred=logits, y=labels)
    assert metric.aggregate() == values["score"]


def test_the_comparison_is_available_too():
    logits, labels = made()
    metric = RegionDiceMetric(RegionDice(CLASSES, CLUSTERS, activation="softmax"))
    metric(logits, labels)
    assert metric.result.score == expected().result.score
    assert metric.mapping == expected().mapping == {1: 0, 2: 1, 3: 2}


def test_labels_after_argmax_keep_their_channel():
    logits, labels = made()
    preds = [AsDiscrete(argmax=True)(image) for image in decollate_batch(logits)]
    metric = RegionDiceMetric(RegionDice(CLASSES, CLUSTERS))
    metric(preds, decollate_batch(labels))
    crisp = RegionDice(CLASSES, CLUSTERS)
    crisp.update(logits.argmax(1), labels[:, 0].long())
    assert metric.values() == crisp.compute()


def test_one_channel_of_a_target_is_soft_if_requested():
    soft = torch.tensor([[[0.5, 0.25, 1.0, 0.0]]])
    metric = RegionDiceMetric(RegionDice(2), soft_target=True)
    metric(soft, soft)
    assert metric.aggregate() == 1
    with pytest.raises(
        InputError, match=r"must contain labels, found values.* use num_classes=2 and soft_target"
    ):
        RegionDiceMetric(RegionDice(2))(soft, soft)
    with pytest.raises(InputError, match="y_pred has one channel, which must contain labels"):
        RegionDiceMetric(RegionDice(3))(soft, soft)


def test_whole_channels_of_integers_are_labels():
    labels = torch.tensor([[[0, 1, 1]]])
    metric = RegionDiceMetric(RegionDice(2))
    metric(labels, labels)
    assert metric.aggregate() == 1


def test_tensors_of_wrong_shape_are_rejected():
    with pytest.raises(InputError, match="metric must be a RegionDice, found int"):
        RegionDiceMetric(3)
    metric = RegionDiceMetric(RegionDice(2))
    with pytest.raises(InputError, match="y is missing"):
        metric(torch.zeros(1, 1, 3))
    metric(torch.zeros(1, 1, 3), torch.zeros(1, 1, 3))
    with pytest.raises(InputError, match="key must be one of score, matched_score"):
        metric.aggregate("dice")


def test_a_missing_library_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "monai"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "probdice.monai")
    with pytest.raises(MissingExtraError, match=r'requires monai: pip install "probdice\[monai\]"'):
        import_module("probdice.monai")


# -- the handler ---------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [False, True])
def test_an_evaluator_reports_every_number(key):
    logits, labels = made()
    data = [{"image": x, "label": y} for x, y in zip(logits, labels, strict=True)]
    handler = RegionDiceHandler(
        RegionDice(CLASSES, CLUSTERS, activation="softmax", merge="prediction"),
        from_engine(["pred", "label"]),
    )
    name = "val_score" if key else "region_dice"
    stats = StatsHandler(output_transform=lambda _: None)
    evaluator = SupervisedEvaluator(
        device=torch.device("cpu"),
        val_data_loader=DataLoader(Dataset(data), batch_size=2),
        network=torch.nn.Identity(),
        key_val_metric={"val_score": handler} if key else None,
        val_handlers=[stats] if key else [handler, stats],
    )
    values = expected(merge="prediction").compute()
    for _ in range(2):  # every run starts from zero
        evaluator.run()
        metrics = evaluator.state.metrics
        assert metrics[name] == pytest.approx(values["score"].item(), abs=1e-12)
        assert metrics[f"{name}_mean_iou"] == pytest.approx(values["mean_iou"].item(), abs=1e-12)
        assert metrics[f"{name}_iou_0"] == pytest.approx(values["iou_0"].item(), abs=1e-12)
        assert len(metrics) == len(values)
    if key:
        assert evaluator.state.best_metric == metrics[name]


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("mean_dice", None, "mean_dice"),
        ("val_mean_dice", "mean_dice", "mean_dice"),
        ("val_mean_dice", None, "score"),
        ("mean_dice", "iou_0", "iou_0"),
    ],
)
def test_the_key_metric_is_the_value_with_its_name(name, value, stored):
    logits, labels = made()
    data = [{"image": x, "label": y} for x, y in zip(logits, labels, strict=True)]
    handler = RegionDiceHandler(
        RegionDice(CLASSES, CLUSTERS, activation="softmax"),
        from_engine(["pred", "label"]),
        value=value,
    )
    evaluator = SupervisedEvaluator(
        device=torch.device("cpu"),
        val_data_loader=DataLoader(Dataset(data), batch_size=2),
        network=torch.nn.Identity(),
        key_val_metric={name: handler},
    )
    evaluator.run()
    values = expected().compute()
    assert values["mean_dice"] != values["score"]
    metrics = evaluator.state.metrics
    assert metrics[name] == pytest.approx(values[stored].item(), abs=1e-12)
    assert evaluator.state.best_metric == metrics[name]
    others = {f"{name}_{key}" for key in values if key != stored}
    assert set(metrics) == {name, *others}


def test_a_value_that_does_not_exist_is_rejected():
    with pytest.raises(InputError, match=r"value must be one of score, .*'dice'"):
        RegionDiceHandler(RegionDice(2), value="dice")


def test_decollated_one_hot_items_give_the_dice_of_monai():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 4, 8, 8, generator=generator)
    labels = torch.randint(0, 4, (2, 1, 8, 8), generator=generator).float()
    preds = [AsDiscrete(argmax=True, to_onehot=4)(item) for item in decollate_batch(logits)]
    target = [AsDiscrete(to_onehot=4)(item) for item in decollate_batch(labels)]
    metric = RegionDiceMetric(RegionDice(4, match="labels", background=0, correspondence="image"))
    metric(y_pred=preds, y=target)
    expected = DiceMetric(include_background=False)
    expected(y_pred=preds, y=target)
    dice = metric.aggregate("foreground_dice").item()
    assert dice == pytest.approx(expected.aggregate().item(), abs=1e-6)


# -- the documentation ---------------------------------------------------------------------------


def test_recipes_print_the_documented_output():
    path = Path(__file__).parent.parent / "docs" / "how-to" / "training.md"
    page = path.read_text(encoding="utf-8")
    examples = re.findall(r"```python\n((?:(?!```).)*)```\n```\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 10
    names = {}
    for code, shown in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == shown
