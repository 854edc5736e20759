"""`RegionDice`: batches, processes and devices give the numbers of one comparison."""

import pickle
import sys
from importlib import import_module
from itertools import product
from math import isnan

import numpy as np
import pytest
from extras import require

import probdice
from probdice import Aitchison, InputError, ProbdiceWarning, Segmentation, TooLargeError
from probdice.errors import MissingExtraError

require("torch", "torchmetrics", "lightning")

import torch
from torch_data import CLASSES, CLUSTERS, IMAGES, SHAPE, fed, made, metric_for
from torchmetrics import MetricCollection

from probdice.torch import RegionDice, batches
from probdice.torch.sums import sums_in_torch, sums_of

EXACT = "score", "matched_score", "chance", "adjusted_score"


def concatenated(preds, target, ignore=()):
    """Both sides of a data set as two segmentations, reference first."""

    def side(batch, ignore=()):
        if not batch.is_floating_point():
            images = [Segmentation.from_labels(x.numpy(), ignore=ignore) for x in batch]
        else:
            probabilities = batch.softmax(1) if batch.min() < 0 else batch
            images = [Segmentation.from_probabilities(x.numpy()) for x in probabilities]
        return Segmentation.concatenate(images)

    return side(target, ignore), side(preds)


def known(result):
    """The properties of a comparison that do not require its images."""
    return result.groups, result.merges, result.unmatched, result.overlap.pixels


# -- the numbers of one comparison ---------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("merge", ["none", "prediction", "reference", "both"])
def test_batches_of_labels_give_the_numbers_of_the_whole_set_to_the_bit(size, merge):
    (preds, target) = (side["labels"] for side in made())
    expected = probdice.compare(*concatenated(preds, target), merge=merge)
    metric = fed(metric_for(merge=merge), preds, target, size)
    values = metric.compute()
    assert known(metric.result) == known(expected)
    assert [values[key].item() for key in EXACT] == [getattr(expected, key) for key in EXACT]
    assert values["explained_reference"] == expected.explained["reference"]
    assert values["explained_prediction"] == expected.explained["prediction"]


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("match", ["overlap", "paper", {0: 1}])
@pytest.mark.parametrize(
    ("p", "t", "merge"),
    [
        ("logits", "labels", "none"),
        ("logits", "labels", "both"),
        ("labels", "soft", "both"),
        ("logits", "soft", "none"),
    ],
)
def test_batches_of_probabilities_give_the_numbers_of_the_whole_set(size, match, p, t, merge):
    preds, target = made()[0][p], made()[1][t]
    expected = probdice.compare(*concatenated(preds, target), match=match, merge=merge)
    metric = fed(metric_for(match=match, merge=merge), preds, target, size)
    values = metric.compute()
    assert values["score"].item() == pytest.approx(expected.score, abs=1e-12)
    assert values["matched_score"].item() == pytest.approx(expected.matched_score, abs=1e-12)
    assert [group.reference for group in metric.result.groups] == [
        group.reference for group in expected.groups
    ]
    dice = [group.dice for group in metric.result.groups]
    assert dice == pytest.approx([group.dice for group in expected.groups], abs=1e-12)
    if "labels" in (p, t):
        assert values["chance"].item() == pytest.approx(expected.chance, abs=1e-12)
        assert values["adjusted_score"].item() == pytest.approx(expected.adjusted_score, abs=1e-11)
    else:
        assert isnan(values["chance"])
        assert isnan(values["adjusted_score"])
    assert isnan(values["explained_reference"])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_labels_may_be_of_any_integer_type(dtype):
    preds, target = (side["labels"] for side in made())
    expected = fed(metric_for(), preds, target).result.score
    assert fed(metric_for(), preds.to(dtype), target.to(dtype)).result.score == expected
    assert fed(metric_for(), preds, target.to(dtype)).result.score == expected
    two = RegionDice(2)
    two.update(preds > 1, (preds > 1).to(dtype))
    assert two.result.score == 1


@pytest.mark.parametrize(
    ("dtype", "error"), [(torch.float16, 1e-3), (torch.bfloat16, 1e-2), (torch.float32, 1e-6)]
)
@pytest.mark.parametrize("logits", [True, False])
def test_short_floating_types_and_gradients_are_accepted(dtype, error, logits):
    preds, target = made()[0]["logits"], made()[1]["labels"]
    expected = fed(metric_for(), preds, target).result.score
    values = (preds if logits else preds.softmax(1)).to(dtype).requires_grad_()
    activation = "softmax" if logits else None
    metric = fed(RegionDice(CLASSES, CLUSTERS, activation=activation), values, target)
    assert metric.result.score == pytest.approx(expected, abs=error)
    assert not metric.compute()["score"].requires_grad


def test_any_memory_layout_gives_the_same():
    preds, target = made()[0]["logits"].float(), made()[1]["labels"]
    expected = fed(metric_for(), preds, target).result.score
    last = preds.contiguous(memory_format=torch.channels_last)
    turned = target.transpose(1, 2).contiguous().transpose(1, 2)
    assert fed(metric_for(), last, turned).result.score == pytest.approx(expected, abs=1e-12)


def test_volumes_and_single_pixels_are_images_too():
    target = torch.tensor([0, 1, 1])  # images of a single pixel
    metric = RegionDice(2)
    metric.update(target, target)
    assert metric.result.pixels == 3
    volume = torch.randint(2, (2, 3, 4, 5))
    metric = RegionDice(2)
    metric.update(torch.nn.functional.one_hot(volume, 2).movedim(-1, 1).float(), volume)
    assert metric.result.score == 1
    assert metric.result.pixels == 120


def test_one_channel_is_a_foreground():
    foreground = torch.tensor([[[0.9, 0.2, 0.4]]])
    target = torch.tensor([[1, 0, 0]])
    metric = RegionDice(2)
    metric.update(foreground, target)
    assert metric.result.score == pytest.approx((0.9 + 0.8 + 0.6) / 3)
    by_logits = RegionDice(2, activation="sigmoid")
    by_logits.update(foreground.logit(), target)
    assert by_logits.result.score == pytest.approx(metric.result.score, abs=1e-6)
    both = RegionDice(2)
    both.update(foreground, foreground)
    assert both.result.score == 1


# -- differences from other tools ----------------------------------------------------------------


def test_clusters_beyond_the_classes_count():
    target = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1]])
    preds = torch.tensor([[0, 0, 2, 2, 1, 1, 3, 3]])  # half of each class is an extra cluster
    metric = RegionDice(2, 4)
    metric.update(preds, target)
    assert metric.compute()["accuracy"] == 0.5
    many_to_one = RegionDice(2, 4, merge="prediction")
    many_to_one.update(preds, target)
    assert many_to_one.compute()["accuracy"] == 1
    assert many_to_one.compute()["matched_score"] == 0.5


def test_a_soft_target_and_an_equal_soft_prediction_score_1():
    values = made()[1]["soft"].float()
    metric = RegionDice(CLASSES)
    fed(metric, values, values)
    assert metric.compute()["score"] == 1
    assert metric.compute()["mean_dice"] == 1


# -- values --------------------------------------------------------------------------------------


def test_values_have_the_names_and_meanings_of_papers():
    target = torch.tensor([[0, 0, 0, 0, 1, 1, 2, 2]])
    preds = torch.tensor([[1, 1, 1, 0, 0, 0, 1, 1]])
    background = {"reference": "sky", "prediction": 1}
    metric = RegionDice(4, 2, names=["sky", "tree", "road", "car"], background=background)
    metric.update(preds, target)
    values = {key: value.item() for key, value in metric.compute().items()}
    assert metric.mapping == {0: "tree", 1: "sky"}
    assert values["accuracy"] == 5 / 8
    assert values["accuracy_sky"] == 3 / 4
    assert values["dice_sky"] == pytest.approx(6 / 9)
    assert values["iou_sky"] == pytest.approx(3 / 6)
    assert values["iou_tree"] == pytest.approx(2 / 3)
    assert values["iou_road"] == 0  # no cluster is left for it
    assert isnan(values["iou_car"])  # it does not occur
    assert values["mean_iou"] == pytest.approx((3 / 6 + 2 / 3 + 0) / 3)  # without car
    assert values["mean_accuracy"] == pytest.approx((3 / 4 + 1 + 0) / 3)
    assert values["mean_dice"] == pytest.approx((6 / 9 + 2 * 2 / 5 + 0) / 3)
    assert values["foreground_iou"] == pytest.approx((2 / 3 + 0) / 2)  # without sky and car
    assert values["foreground_accuracy"] == pytest.approx((1 + 0) / 2)
    assert values["foreground_dice"] == pytest.approx((2 * 2 / 5 + 0) / 2)
    assert values["pooled_dice"] == pytest.approx(2 * 2 / (5 + 2))
    assert values["foreground_score"] == pytest.approx(2 / (8 - 3))
    assert metric.result.empty["reference"] == ("car",)


def test_a_class_that_is_predicted_but_absent_is_0_where_labels_correspond():
    target, preds = torch.tensor([[0, 0, 0, 0]]), torch.tensor([[0, 0, 0, 1]])
    supervised = RegionDice(3, match="labels")
    supervised.update(preds, target)
    values = supervised.compute()
    assert values["iou_1"] == 0
    assert values["mean_iou"] == (3 / 4 + 0) / 2
    assert torch.isnan(values["iou_2"])


def test_a_background_class_keeps_its_values_if_its_number_is_predicted_elsewhere():
    metric = RegionDice(2, match="labels", background={"reference": 0, "prediction": 1})
    metric.update(torch.tensor([[1, 1, 0, 0]]), torch.tensor([[0, 0, 0, 1]]))
    values = metric.compute()  # class 0 and cluster 1 share two of three and two pixels
    assert [values[f"{name}_0"] for name in ("accuracy", "dice", "iou")] == [2 / 3, 0.8, 2 / 3]
    assert (values["dice_1"], values["mean_dice"]) == (0, 0.4)


def test_merged_classes_have_the_values_of_their_group():
    target, preds = torch.tensor([[0, 0, 0, 1]]), torch.tensor([[1, 1, 1, 1]])
    metric = RegionDice(2, merge="reference")
    metric.update(preds, target)
    assert metric.compute()["iou_0"] == metric.compute()["iou_1"] == 1
    assert metric.mapping == {1: 0}  # the class that was matched


def test_everything_can_be_logged_and_moved():
    preds, target = (side["labels"] for side in made())
    collection = MetricCollection({"one": metric_for(), "many": metric_for(merge="prediction")})
    values = collection(preds, target)
    assert all(value.dim() == 0 for value in values.values())
    metric = metric_for()
    metric(preds, target)  # the values of this batch
    assert metric.half().savings.dtype == torch.float64
    metric(preds, target)
    assert metric.result.pixels == 2 * target.numel()


@pytest.mark.parametrize("correspondence", ["set", "image"])
def test_every_input_gives_the_same_keys(correspondence):
    keys = set()
    for p, t in product(["labels", "logits"], ["labels", "soft"]):
        metric = metric_for(correspondence=correspondence)
        metric.update(made()[0][p], made()[1][t])
        keys.add(tuple(metric.compute()))
    empty = metric_for(correspondence=correspondence, ignore_index=(0, 1, 2))
    empty.update(made()[0]["labels"], made()[1]["labels"])
    keys.add(tuple(empty.compute()))
    assert len(keys) == 1


def test_the_representation_shows_the_options():
    shown = repr(metric_for(merge="prediction", ignore_index=255, names=["a", "b", "c"]))
    assert shown == (
        "RegionDice(num_classes=3, num_clusters=5, activation='softmax', "
        "similarity='absolute', match='overlap', merge='prediction', correspondence='set', "
        "ignore_index=(255,), background=None, names=['a', 'b', 'c'])"
    )


# -- types and devices of the state --------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("correspondence", ["set", "image"])
def test_sums_keep_their_type(dtype, correspondence):
    target = torch.arange(100_000).reshape(1, -1) % 3  # more pixels than float16 can count
    preds = torch.where(torch.arange(100_000) % 5 == 0, 0, target)
    expected = RegionDice(3, correspondence=correspondence)
    expected.update(preds, target)
    metric = RegionDice(3, correspondence=correspondence).to(dtype)
    metric.update(preds, target)
    moved = metric.to(dtype)
    assert moved.compute() == expected.compute()
    # Classes of 33,334, 33,333 and 33,333 pixels; of the latter two, a fifth each became class 0.
    taken = [6667, 6666]
    dice = [
        2 * 33_334 / (2 * 33_334 + sum(taken)),
        *(2 * (33_333 - lost) / (2 * 33_333 - lost) for lost in taken),
    ]
    assert moved.compute()["mean_dice"].item() == pytest.approx(np.mean(dice), abs=1e-12)


def test_metrics_inside_a_converted_model_keep_their_sums():
    model = torch.nn.Module()
    model.metric = RegionDice(2)
    model.to(torch.bfloat16).half()
    model.metric.update(torch.tensor([[0, 1, 1]]), torch.tensor([[0, 1, 0]]))
    assert model.metric.savings.dtype == torch.float64
    assert model.metric.set_dtype(torch.float16).savings.dtype == torch.float64
    assert model.metric.compute()["accuracy"] == 2 / 3


@pytest.mark.parametrize("options", [{"ignore_index": 1}, {"activation": "softmax"}])
def test_metrics_of_a_collection_with_different_options_have_their_own_sums(options):
    collection = MetricCollection(
        {"plain": RegionDice(3, match="labels"), "other": RegionDice(3, match="labels", **options)}
    )
    same = torch.tensor([[0, 2, 0, 2]])
    collection.update(same, same)  # after this batch both have equal sums
    if "activation" in options:
        sure = torch.tensor([[[1.0], [0.0], [0.0]]])
        collection.reset()
        collection.update(sure, torch.tensor([[0]]))
        values = collection.compute()
        assert values["plain_score"] == 1
        assert values["other_score"].item() == pytest.approx(np.e / (np.e + 2), abs=1e-6)
        return
    collection.update(torch.tensor([[0, 0, 0, 0]]), torch.tensor([[1, 1, 1, 1]]))
    values = collection.compute()
    assert values["plain_accuracy"] == 0.5
    assert values["other_accuracy"] == 1


def test_metrics_of_a_collection_with_different_merging_have_their_own_means():
    images = {"correspondence": "image", "match": "overlap"}
    collection = MetricCollection(
        {"one": RegionDice(2, 3, **images), "many": RegionDice(2, 3, merge="prediction", **images)}
    )
    collection.update(torch.tensor([[0, 0, 1, 1]]), torch.tensor([[0, 0, 1, 1]]))
    collection.update(torch.tensor([[0, 2, 1, 1]]), torch.tensor([[0, 0, 1, 1]]))
    values = collection.compute()
    assert values["one_accuracy"] == (1 + 0.75) / 2
    assert values["many_accuracy"] == 1


def test_sums_for_two_matchings_are_computed_once():
    collection = MetricCollection({"one": RegionDice(2, 3), "many": RegionDice(2, 3, merge="both")})
    for _ in range(2):
        collection.update(torch.tensor([[0, 2, 1, 1]]), torch.tensor([[0, 0, 1, 1]]))
    assert len(collection.compute_groups) == 1
    assert collection.compute()["one_accuracy"] == 0.75
    assert collection.compute()["many_accuracy"] == 1


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_a_compiled_module_may_update_and_compute():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.metric = metric_for()
            self.scale = torch.nn.Parameter(torch.ones((), dtype=torch.float64))

        def forward(self, preds, target):
            preds = preds * self.scale
            self.metric.update(preds, target)
            return self.metric.compute()["score"], preds * 2

    preds, target = made()[0]["logits"], made()[1]["labels"]
    model = Model()
    score, doubled = torch.compile(model, backend="eager")(preds, target)
    expected = fed(metric_for(), preds, target).compute()["score"]
    assert score.item() == pytest.approx(expected.item(), abs=1e-12)
    assert torch.equal(doubled, preds * 2)


def test_plots_need_no_images():
    metric = fed(metric_for(), *(side["labels"] for side in made()))
    assert metric.plot().axes
    assert metric.plot("overlap").axes[0].images[0].get_array().shape == (CLASSES, CLUSTERS)


def test_a_correspondence_of_one_set_scores_another():
    (preds, target), (more_preds, more_target) = (
        [side["labels"] for side in made(seed)] for seed in (0, 1)
    )
    train = fed(metric_for(merge="prediction"), preds, target).result
    test = fed(metric_for(match=train), more_preds, more_target)
    expected = probdice.compare(*concatenated(more_preds, more_target), match=train)
    assert test.result.score == expected.score
    assert [g.prediction for g in test.result.groups] == [g.prediction for g in train.groups]


# -- pixels that are left out --------------------------------------------------------------------


@pytest.mark.parametrize("ignored", [255, 1, -1, [0, 255]])
@pytest.mark.parametrize("kind", ["labels", "logits"])
def test_ignored_pixels_are_excluded_from_all_numbers(ignored, kind):
    preds, target = made()[0][kind].clone(), made()[1]["labels"].clone()
    labels = ignored if isinstance(ignored, list) else [ignored]
    target[:, 2:4] = labels[-1]
    expected = probdice.compare(*concatenated(preds, target, ignore=labels))
    # The prediction may have any values at excluded pixels.
    if kind == "labels":
        preds[:, 2:4] = 77
    else:
        preds[:, :, 2:4] = torch.nan
    metric = fed(metric_for(ignore_index=ignored), preds, target)
    assert metric.result.score == pytest.approx(expected.score, abs=1e-12)
    assert metric.result.pixels == expected.pixels
    assert metric.result.unmatched == expected.unmatched


@pytest.mark.parametrize("correspondence", ["set", "image"])
@pytest.mark.parametrize("similarity", ["absolute", Aitchison(floor=1e-3)])
@pytest.mark.parametrize(("p", "t"), list(product(["labels", "logits"], ["labels", "soft"])))
def test_masked_pixels_are_excluded_from_all_numbers(correspondence, similarity, p, t):
    if correspondence == "set" and similarity != "absolute":
        return
    preds, target = made()[0][p].clone(), made()[1][t].clone()
    mask = torch.rand(IMAGES, *SHAPE, generator=torch.Generator().manual_seed(5)) < 0.7
    options = {"correspondence": correspondence, "similarity": similarity}
    metric, expected = metric_for(**options), metric_for(**options)
    for image, wanted, kept in zip(preds, target, mask, strict=True):
        expected.update(image[..., kept][None], wanted[..., kept][None])  # the pixels in a row
    for side in (preds, target):
        outside = ~mask[:, None].expand_as(side) if side.is_floating_point() else ~mask
        side[outside] = torch.nan if side.is_floating_point() else 77
    for batch in zip(preds.split(3), target.split(3), mask.split(3), strict=True):
        metric.update(*batch)
    values, wanted = (
        {key: value.item() for key, value in m.compute().items()} for m in (metric, expected)
    )
    assert values == pytest.approx(wanted, abs=1e-12, nan_ok=True)
    assert not isnan(values["score"])


@pytest.mark.parametrize("t", ["labels", "soft"])
@pytest.mark.parametrize("correspondence", ["set", "image"])
def test_a_mask_without_pixels_gives_nan(t, correspondence):
    metric = metric_for(correspondence=correspondence)
    metric.update(made()[0]["logits"], made()[1][t], torch.zeros(IMAGES, *SHAPE, dtype=torch.bool))
    assert torch.isnan(metric.compute()["score"])


def test_values_inside_the_mask_are_rejected_with_their_pixel():
    preds, target = torch.full((2, 5, 2, 3), 0.2), made()[1]["labels"][:2, :2, :3]
    preds[1, :, 1, 2] = 0.3
    mask = torch.ones(2, 2, 3, dtype=torch.bool)
    mask[0] = mask[1, 0, 0] = False
    with pytest.raises(InputError, match=r"sum to 1.5 at pixel \(1, 1, 2\)"):
        RegionDice(3, 5).update(preds, target, mask)
    mask[1, 1, 2] = False
    RegionDice(3, 5).update(preds, target, mask)


@pytest.mark.parametrize(
    ("mask", "found"),
    [
        (torch.ones(IMAGES, *SHAPE), r"torch.float32 of shape \(7, 6, 9\)"),
        (torch.ones(IMAGES, 1, *SHAPE, dtype=torch.bool), r"torch.bool of shape \(7, 1, 6, 9\)"),
        (np.ones((IMAGES, *SHAPE), bool), "ndarray"),
    ],
)
@pytest.mark.parametrize("correspondence", ["set", "image"])
def test_masks_that_do_not_fit_are_rejected(mask, found, correspondence):
    message = rf"mask must be a boolean tensor of shape \(7, 6, 9\).*found {found}"
    with pytest.raises(InputError, match=message):
        metric_for(correspondence=correspondence).update(
            made()[0]["logits"], made()[1]["labels"], mask
        )


def test_activations_that_do_not_fit_are_rejected():
    with pytest.raises(InputError, match=r"activation must be one of 'softmax', .*found True"):
        RegionDice(2, activation=True)
    target = torch.tensor([[0, 1]])
    with pytest.raises(InputError, match=r'preds has 2 channels, .*Use activation="softmax"'):
        RegionDice(2, activation="sigmoid").update(torch.zeros(1, 2, 2), target)
    with pytest.raises(InputError, match=r'a single channel.*Use activation="sigmoid"'):
        RegionDice(2, activation="softmax").update(torch.zeros(1, 1, 2), target)


@pytest.mark.parametrize("correspondence", ["set", "image"])
def test_metrics_without_pixels_are_nan(correspondence):
    metric = RegionDice(2, ignore_index=0, correspondence=correspondence)
    metric.update(torch.zeros(1, 4).long(), torch.zeros(1, 4).long())
    values = metric.compute()
    assert torch.isnan(values["score"])
    assert torch.isnan(values["iou_1"])
    assert torch.isnan(values["chance"])
    if correspondence == "set":
        with pytest.raises(InputError, match="no pixels were added, or mask and ignore_index"):
            metric.result  # noqa: B018


# -- one correspondence per image ----------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 7])
def test_numbers_of_images_are_means(size):
    preds, target = (side["labels"] for side in made())
    metric = fed(metric_for(correspondence="image", merge="both"), preds, target, size)
    values = metric.compute()
    results = [
        probdice.compare(t.numpy(), p.numpy(), merge="both")
        for p, t in zip(preds, target, strict=True)
    ]
    for key in EXACT:
        expected = np.mean([getattr(result, key) for result in results])
        assert values[key].item() == pytest.approx(expected, abs=1e-15)
    whole = fed(metric_for(correspondence="image", merge="both"), preds, target, IMAGES).compute()
    assert [value.item() for value in values.values()] == [v.item() for v in whole.values()]


@pytest.mark.parametrize(("p", "t"), list(product(["labels", "logits"], ["labels", "soft"])))
@pytest.mark.parametrize("similarity", ["absolute", Aitchison(floor=1e-3)])
def test_metrics_per_image_have_numbers_that_a_set_lacks(p, t, similarity):
    preds, target = made()[0][p], made()[1][t]
    metric = metric_for(correspondence="image", similarity=similarity, merge="both")
    metric.update(preds, target)
    results = [
        probdice.compare(
            t.numpy(),
            Segmentation.from_logits(p.numpy()) if p.is_floating_point() else p.numpy(),
            similarity=similarity,
            merge="both",
        )
        for p, t in zip(preds, target, strict=True)
    ]
    expected = np.mean([result.score for result in results])
    assert metric.compute()["score"].item() == pytest.approx(expected, abs=1e-12)
    dice = [group.dice for result in results for group in result.groups if 1 in group.reference]
    assert metric.compute()["dice_1"].item() == pytest.approx(np.mean(dice), abs=1e-12)
    assert 0 < metric.compute()["accuracy"] < 1
    with pytest.raises(InputError, match=r'no single result\. Use correspondence="set"'):
        metric.result  # noqa: B018


def test_names_ignored_pixels_and_foregrounds_work_where_images_are_compared():
    target = torch.tensor([[0, 1, 1, 255], [255, 255, 255, 255]])
    preds = torch.tensor([[[0.2, 0.9, 0.7, torch.nan]], [[0.2, 0.2, 0.2, 0.2]]])
    metric = RegionDice(
        2,
        correspondence="image",
        similarity=Aitchison(floor=1e-3),
        ignore_index=255,
        names=["other", "organ"],
    )
    metric.update(preds, target)
    expected = probdice.compare(
        [0, 1, 1],
        Segmentation.from_probabilities(np.array([0.2, 0.9, 0.7], np.float32), axis=None),
        similarity=Aitchison(floor=1e-3),
    )
    assert metric.compute()["score"].item() == pytest.approx(expected.score, abs=1e-12)
    assert metric.compute()["dice_organ"].item() == pytest.approx(expected.groups[1].dice)


@pytest.mark.parametrize("correspondence", ["set", "image"])
@pytest.mark.parametrize("soft", [False, True])
def test_names_hold_for_both_sides_where_equal_labels_correspond(correspondence, soft):
    target, preds = torch.tensor([[0, 0, 1, 2]]), torch.tensor([[0, 1, 1, 3]])
    if soft:
        preds = torch.nn.functional.one_hot(preds, 4).movedim(-1, 1).to(torch.float32)
    metric = RegionDice(
        3, 4, match="labels", correspondence=correspondence, names=["sky", "tree", "road"]
    )
    metric.update(preds, target)
    values = metric.compute()
    assert values["accuracy"].item() == 0.5
    assert values["dice_tree"].item() == pytest.approx(2 / 3)
    assert values["dice_road"].item() == 0


# -- adding up -----------------------------------------------------------------------------------


@pytest.mark.parametrize("correspondence", ["set", "image"])
def test_states_add_up_reset_and_survive_pickling(correspondence):
    preds, target = (side["labels"] for side in made())
    whole = metric_for(correspondence=correspondence)
    whole.update(preds, target)
    first, second = (metric_for(correspondence=correspondence) for _ in range(2))
    first.update(preds[:3], target[:3])
    second.update(preds[3:], target[3:])
    first.compute()
    first.merge_state(pickle.loads(pickle.dumps(second)))
    first.merge_state(metric_for(correspondence=correspondence).metric_state)
    assert first.compute() == whole.compute()
    first.reset()
    first.update(preds, target)
    assert first.compute() == whole.compute()


def test_the_state_does_not_grow():
    preds, target = (side["labels"] for side in made())
    metric = metric_for()
    sizes = []
    for _ in range(3):
        metric.update(preds, target)
        sizes.append(sum(state.numel() for state in metric.metric_state.values()))
    assert sizes == [CLASSES * CLUSTERS + 2 * (CLASSES + CLUSTERS) + 13] * 3


# -- devices -------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", ["labels", "logits"])
@pytest.mark.parametrize(("t", "ignored"), [("labels", ()), ("labels", (1, 255)), ("soft", ())])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_of_torch_equal_those_of_the_kernels(p, t, ignored, dtype):
    preds, target = made()[0][p].clone(), made()[1][t].clone()
    preds = preds.to(dtype) if p == "logits" else preds
    target = target.to(dtype) if t == "soft" else target
    if ignored:
        target[:, 1:3] = 255
        preds[..., 1:3, :] = torch.nan if p == "logits" else 99
    sides = (
        batches.as_batch(preds, "preds", CLUSTERS, activation="softmax"),
        batches.as_batch(target, "target", CLASSES, ignored_labels=ignored),
    )
    by_kernels, by_torch = sums_of(*sides), sums_in_torch(*sides)
    assert by_kernels.pixels == by_torch.pixels
    error = 0 if p == t == "labels" else 1e-12 if dtype == torch.float64 else 1e-4
    for name in ("reference_volumes", "prediction_volumes", "savings"):
        one, other = getattr(by_kernels, name), getattr(by_torch, name)
        assert one.dtype == other.dtype == torch.float64
        assert torch.allclose(one, other, rtol=0, atol=error), name


def test_equal_sides_score_1_in_torch_as_well():
    values = made()[1]["soft"].float()
    side = batches.as_batch(values, "preds", CLASSES)
    sums = sums_in_torch(side, side)
    assert torch.equal(sums.savings.diagonal(), sums.reference_volumes)
    assert torch.equal(sums.reference_volumes, sums.prediction_volumes)


# -- invalid options and tensors -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"similarity": "aitchison"},
            r'requires the pixels.* Use correspondence="image"',
        ),
        ({"correspondence": "case"}, "correspondence must be one of 'set', 'image', found 'case'"),
        ({"background": 3}, r"background must be one of the classes \(0, 1, 2\), found 3"),
        ({"names": ["a", "a", "b"]}, "names must be 3 different names"),
        ({"names": "abc"}, "names must be 3 different names"),
        ({"merge": "all"}, "merge must be"),
        ({"match": "labels", "merge": "both"}, "cannot be combined with"),
        ({"ignore_index": 1.5}, "ignore_index: expected whole numbers"),
    ],
)
def test_options_that_do_not_fit_are_rejected_at_once(options, message):
    with pytest.raises(InputError, match=message):
        metric_for(**options)


def test_numbers_of_regions_are_checked():
    with pytest.raises(InputError, match="num_classes must be a positive integer"):
        RegionDice(0)
    with pytest.raises(InputError, match="num_clusters must be a positive integer"):
        RegionDice(2, 2.5)
    with pytest.raises(TooLargeError, match="100000 × 100000 regions does not fit"):
        RegionDice(100_000)


def earlier(merge):
    return probdice.compare([0, 0, 1, 2], [0, 1, 2, 2], merge=merge)


@pytest.mark.parametrize(
    "options", [{"merge": "prediction"}, {"match": {0: 1, 2: 1}}, {"match": earlier("both")}]
)
def test_groups_of_soft_regions_on_both_sides_are_rejected_before_the_pass(options):
    preds, target = made()[0]["logits"], made()[1]["soft"]
    metric = metric_for(**options)
    with pytest.raises(
        InputError, match=r'require the pixels of every image.*correspondence="image"'
    ):
        metric.update(preds, target)
    metric.reset()
    metric.update(preds, made()[1]["labels"])
    assert metric.result.score > 0
    one_to_one = metric_for(match=earlier("none"))
    one_to_one.update(preds, target)
    assert one_to_one.result.score > 0


@pytest.mark.parametrize("in_torch", [False, True])
@pytest.mark.parametrize(
    ("preds", "target", "message"),
    [
        (torch.tensor([[0, 1]]), torch.tensor([[0, 3]]), r"target: label 3 at pixel \(0, 1\)"),
        (torch.tensor([[0, -1]]), torch.tensor([[0, 2]]), r"preds: label -1 at pixel \(0, 1\)"),
        (torch.tensor([[5, 0]]), torch.tensor([[0, 2]]), "the labels of 5 regions are 0 to 4"),
        (torch.full((1, 5, 2), 0.2), torch.tensor([[0, 7]]), "target: label 7"),
        (torch.full((1, 5, 2), 0.3), torch.tensor([[0, 1]]), r"preds: probabilities sum to"),
        (torch.full((1, 5, 2), torch.nan), torch.tensor([[0, 1]]), r"preds: found nan at pixel"),
        (
            torch.tensor([[-0.5, 1.5, 0, 0, 0]])[..., None],
            torch.tensor([[1]]),
            r"preds: probability -0.5 at pixel \(0, 0\)\. For logits, use activation=.softmax.",
        ),
        (
            torch.full((1, 5, 2), 0.2),
            torch.full((1, 3, 2), 0.5),
            r"target: probabilities sum to 1.5 at pixel \(0, 0\)\. Divide the values by their sum",
        ),
        (
            torch.tensor([[0]]),
            torch.tensor([[-1.0, 2.0, 0.0]])[..., None],
            "target: probability -1 .* Probabilities must be between 0 and 1",
        ),
    ],
)
def test_invalid_values_are_rejected_with_their_pixel(preds, target, message, in_torch):
    sides = (
        batches.as_batch(preds, "preds", CLUSTERS),
        batches.as_batch(target, "target", CLASSES),
    )
    with pytest.raises(InputError, match=message):
        (sums_in_torch if in_torch else sums_of)(*sides)


@pytest.mark.parametrize(
    ("preds", "target", "message"),
    [
        (torch.zeros(2, 4).long(), torch.zeros(2, 5).long(), "both must cover the same pixels"),
        (torch.zeros(2, 4).long(), torch.zeros(3, 4).long(), "preds has 2 images"),
        (
            torch.full((2, 3, 4), 1 / 3),
            torch.zeros(2, 4).long(),
            "Set num_clusters to the number of channels",
        ),
        (
            torch.full((2, 5, 4), 0.2),
            torch.zeros(2, 1, 4).long(),
            r"Remove the channel axis of the labels: target.squeeze\(1\)",
        ),
        (
            torch.zeros(2, 5, 4),
            torch.zeros(2, 3, 4).long(),
            r"Convert one-hot integers to labels: target.argmax\(1\)",
        ),
        (
            torch.zeros(2, 5, 4).long(),
            torch.zeros(2, 4).long(),
            r"Convert one-hot integers to labels: preds.argmax\(1\)",
        ),
        (torch.zeros(2, 4), torch.zeros(2, 4).long(), r"use an integer type: preds.long"),
        (torch.zeros(2), torch.zeros(2).long(), "logits of 5 regions along axis 1"),
        (torch.tensor(1), torch.tensor(1), "(preds|target) must contain labels"),
        (np.zeros(3), torch.zeros(3).long(), "preds must be a torch.Tensor, found ndarray"),
        (
            torch.zeros(2, 4).long(),
            torch.zeros(2, 4, device="meta").long(),
            "Move both",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_rejected(preds, target, message):
    with pytest.raises(InputError, match=message):
        metric_for().update(preds, target)


def test_soft_targets_have_no_label_to_ignore():
    with pytest.raises(InputError, match=r"ignore_index=255 selects labels, but target"):
        metric_for(ignore_index=255).update(made()[0]["logits"], made()[1]["soft"])


def test_labels_and_probabilities_cannot_be_mixed():
    metric = metric_for()
    metric.update(made()[0]["logits"], made()[1]["labels"])
    metric.update(made()[0]["labels"], made()[1]["labels"])
    with pytest.raises(
        InputError, match="preds contained labels in 7 images and probabilities in 7"
    ):
        metric.compute()


@pytest.mark.parametrize("as_dict", [False, True])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"ignore_index": 1}),
        ({"correspondence": "image"}, {}),
        ({"correspondence": "image"}, {"correspondence": "image", "background": 0}),
    ],
)
def test_metrics_with_other_options_cannot_be_added(one, other, as_dict):
    incoming = RegionDice(3, **other)
    with pytest.raises(InputError, match="a metric with other options cannot be added: expected"):
        RegionDice(3, **one).merge_state(incoming.metric_state if as_dict else incoming)


def test_metrics_with_other_numbers_of_regions_cannot_be_added():
    with pytest.raises(InputError, match=r"expected num_classes=3.*, found num_classes=2"):
        RegionDice(3).merge_state(RegionDice(2))


def test_a_missing_library_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchmetrics"]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("probdice.torch", "probdice.torch.metric"):
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtraError, match=r'torchmetrics: pip install "probdice\[torch\]"'):
        import_module("probdice.torch")


def test_infinite_distances_cause_a_warning():
    metric = metric_for(correspondence="image", similarity="aitchison")
    with pytest.warns(ProbdiceWarning, match="infinitely far apart"):
        metric.update(made()[0]["logits"][:1], made()[1]["labels"][:1])


# -- Lightning -----------------------------------------------------------------------------------


def lightning_model(metric):
    """A model that passes its images on and logs every number of a metric."""
    import lightning

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Conv2d(CLUSTERS, CLUSTERS, 1)
            torch.nn.init.dirac_(self.layer.weight)
            torch.nn.init.zeros_(self.layer.bias)
            self.metric = metric

        def validation_step(self, batch, _):
            images, labels = batch
            self.metric.update(self.layer(images), labels)

        def on_validation_epoch_end(self):
            self.log_dict(self.metric.compute())
            self.metric.reset()

    return Model()


@pytest.mark.filterwarnings(r"ignore:`isinstance\(treespec, LeafSpec\)`:FutureWarning")
@pytest.mark.filterwarnings("ignore:The 'val_dataloader' does not have many workers")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize(
    ("precision", "compiled", "error"),
    [
        ("32-true", False, 1e-6),
        ("32-true", True, 1e-6),
        ("16-true", False, 5e-3),
        ("bf16-true", False, 2e-2),
    ],
)
def test_a_trainer_validates_and_logs(tmp_path, precision, compiled, error):
    import lightning

    preds, target = made()[0]["logits"].float(), made()[1]["labels"]
    preds, target = preds.repeat(1, 1, 16, 16), target.repeat(1, 16, 16)  # beyond float16
    model = lightning_model(metric_for(merge="prediction"))
    if compiled:
        model = torch.compile(model, backend="eager")
    data = torch.utils.data.TensorDataset(preds, target)
    trainer = lightning.Trainer(
        accelerator="cpu",
        precision=precision,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    loader = torch.utils.data.DataLoader(data, batch_size=2)
    (logged,) = trainer.validate(model, loader, verbose=False)
    expected = fed(metric_for(merge="prediction"), preds, target).compute()
    assert set(logged) == set(expected)
    assert logged["score"] == pytest.approx(expected["score"].item(), abs=error)
    assert logged["mean_iou"] == pytest.approx(expected["mean_iou"].item(), abs=error)
