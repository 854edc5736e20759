"""`RegionDiceLoss`: its values, its gradients, and training with it."""

import re
import sys
from itertools import permutations, product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from extras import require

import probdice
from probdice import Aitchison, InputError

require("torch", "torchmetrics", "lightning", "monai", "ignite")

import torch
from monai.losses import DiceLoss
from torch_data import network, stripes

from probdice.torch import RegionDice, RegionDiceLoss, region_dice_loss

N, C, SHAPE = 3, 4, (5, 7)
FLOOR = 1e-3


def random_batch(seed=0, shape=SHAPE, channels=C, regions=C, scale=1.5, dtype=torch.float64):
    """Logits, labels that have every class, and soft targets."""
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(N, channels, *shape, generator=generator, dtype=dtype)
    soft = scale * torch.randn(N, regions, *shape, generator=generator, dtype=dtype)
    labels = soft.argmax(1)
    labels.reshape(N, -1)[:, :regions] = torch.arange(regions)
    return logits, labels, soft.softmax(1)


def one_hot(labels, regions=C):
    return torch.nn.functional.one_hot(labels, regions).movedim(-1, 1).double()


# -- the loss in NumPy, independent of the code under test ---------------------------------------


def expected_loss(p, q, measure="dice", background=None, weights=None):
    """The loss of one image; p and q are arrays (regions, pixels) of corresponding regions."""
    counted = [k for k in range(len(p)) if k != background]
    difference, volumes = np.abs(p - q).sum(axis=1), (p + q).sum(axis=1)
    if measure == "score":
        return difference.sum() / (2 * p.shape[1])
    if measure == "foreground":
        if q[counted].sum() == 0:
            return p[counted].sum() / p.shape[1]
        return difference[counted].sum() / volumes[counted].sum()
    weights = np.ones(len(p)) if weights is None else np.asarray(weights)
    terms = [p[k].mean() if q[k].sum() == 0 else difference[k] / volumes[k] for k in counted]
    return float(np.average(terms, weights=weights[counted]))


def arrays(tensor):
    """Images as arrays (channels, pixels)."""
    return tensor.detach().numpy().reshape(*tensor.shape[:2], -1)


# -- values --------------------------------------------------------------------------------------


def test_values_are_those_worked_by_hand():
    p = torch.tensor([[[0.9, 0.6, 0.2], [0.1, 0.4, 0.8]]], dtype=torch.float64)
    target = torch.tensor([[0, 0, 1]])
    # Σ|p − q| is 0.1 + 0.4 + 0.2 for both regions; volumes are 1.7 + 2 and 1.3 + 1.
    values = {"dice": (0.7 / 3.7 + 0.7 / 2.3) / 2, "score": 0.7 / 3, "foreground": 0.7 / 2.3}
    for measure, value in values.items():
        background = 0 if measure == "foreground" else None
        loss = RegionDiceLoss(measure=measure, activation=None, background=background)
        assert loss(p, target).item() == pytest.approx(value, abs=1e-12)
        assert loss(p[:, 1:], target).item() == pytest.approx(value, abs=1e-12)  # one channel


@pytest.mark.parametrize("shape", [(), (9,), (5, 7), (2, 3, 4)])
@pytest.mark.parametrize("measure", ["dice", "score", "foreground"])
@pytest.mark.parametrize("background", [None, 0, 2])
@pytest.mark.parametrize("kind", ["labels", "soft"])
def test_losses_of_images_follow_the_definition(shape, measure, background, kind):
    if measure == "foreground" and background is None:
        return
    logits, labels, soft = random_batch(shape=shape) if shape else random_batch(shape=(C,))
    if not shape:
        logits, labels, soft = logits[..., 0], labels[..., 0], soft[..., 0]
    target, q = (labels, one_hot(labels)) if kind == "labels" else (soft, soft)
    loss = RegionDiceLoss(measure=measure, background=background, reduction="none")
    expected = [
        expected_loss(*pair, measure, background)
        for pair in zip(arrays(logits.softmax(1)), arrays(q), strict=True)
    ]
    assert loss(logits, target).tolist() == pytest.approx(expected, abs=1e-12)


def test_a_batch_is_pooled_like_one_image():
    logits, labels, soft = random_batch()
    for target, q in ((labels, one_hot(labels)), (soft, soft)):
        p, q = (arrays(side).transpose(1, 0, 2).reshape(C, -1) for side in (logits.softmax(1), q))
        for measure in ("dice", "score", "foreground"):
            loss = RegionDiceLoss(measure=measure, background=0, batch=True, reduction="none")
            assert loss(logits, target).shape == (1,)
            expected = expected_loss(p, q, measure, 0)
            assert loss(logits, target).item() == pytest.approx(expected, abs=1e-12)


def test_class_weights_weigh_the_mean_over_classes():
    logits, labels, _ = random_batch()
    weights = [0.0, 1.0, 3.0, 0.5]
    pairs = list(zip(arrays(logits.softmax(1)), arrays(one_hot(labels)), strict=True))
    for background in (None, 2):
        loss = RegionDiceLoss(class_weights=weights, background=background)
        expected = np.mean([expected_loss(*p, "dice", background, weights) for p in pairs])
        assert loss(logits, labels).item() == pytest.approx(expected, abs=1e-7)


def test_reductions_are_those_of_torch():
    logits, labels, _ = random_batch()
    several = region_dice_loss(logits, labels, reduction="none")
    assert several.shape == (N,)
    assert region_dice_loss(logits, labels, reduction="sum") == several.sum()
    assert region_dice_loss(logits, labels) == several.mean()


def test_a_sigmoid_is_a_softmax_with_a_background():
    logits, labels, _ = random_batch(channels=1, regions=2)
    both = torch.cat([torch.zeros_like(logits), logits], dim=1)
    soft = torch.rand(N, 1, *SHAPE, dtype=torch.float64)
    for measure, similarity in [
        *((measure, "absolute") for measure in ("dice", "score", "foreground")),
        ("score", Aitchison(floor=FLOOR)),
    ]:
        options = {"measure": measure, "similarity": similarity, "background": 0}
        for target, full in ((labels, labels), (soft, torch.cat([1 - soft, soft], dim=1))):
            one = region_dice_loss(logits, target, activation="sigmoid", **options)
            two = region_dice_loss(both, full, **options)
            assert one.item() == pytest.approx(two.item(), abs=1e-12)


@pytest.mark.parametrize("match", ["labels", "overlap"])
@pytest.mark.parametrize("similarity", ["absolute", Aitchison(floor=FLOOR)])
@pytest.mark.parametrize("kind", ["labels", "soft"])
@pytest.mark.parametrize(("channels", "regions"), [(4, 4), (6, 4), (3, 4)])
def test_the_score_is_that_of_compare(match, similarity, kind, channels, regions):
    if match == "labels" and channels != regions:
        return
    logits, labels, soft = random_batch(channels=channels, regions=regions, scale=1)
    probabilities = logits.softmax(1)
    assert probabilities.min() > FLOOR  # beyond it aitchison differs by definition
    target = labels if kind == "labels" else soft
    loss = RegionDiceLoss(similarity=similarity, measure="score", match=match, reduction="none")
    scores = [
        probdice.compare(t.numpy(), p.numpy(), similarity=similarity, match=match).score
        for p, t in zip(probabilities, target, strict=True)
    ]
    assert (1 - loss(logits, target)).tolist() == pytest.approx(scores, abs=1e-6)
    assert (1 - loss(logits.float(), target)).tolist() == pytest.approx(scores, abs=1e-6)


@pytest.mark.parametrize("kind", ["labels", "soft"])
@pytest.mark.parametrize("match", ["labels", "overlap"])
def test_the_dice_is_that_of_compare(kind, match):
    logits, labels, soft = random_batch()
    target = labels if kind == "labels" else soft
    losses = region_dice_loss(logits, target, match=match, reduction="none")
    for loss, p, t in zip(losses, logits.softmax(1), target, strict=True):
        result = probdice.compare(t.numpy(), p.numpy(), match=match)
        dice = [group.dice for group in result.groups if group.reference and group.prediction]
        assert len(dice) == C
        assert 1 - loss.item() == pytest.approx(np.mean(dice), abs=1e-6)


@pytest.mark.parametrize("kind", ["labels", "soft"])
@pytest.mark.parametrize("match", ["labels", "overlap"])
@pytest.mark.parametrize("activation", ["softmax", None])
def test_the_metric_is_1_minus_the_loss(kind, match, activation):
    logits, labels, soft = random_batch(shape=(40, 50), dtype=torch.float32)
    target = labels if kind == "labels" else soft
    preds = logits if activation else logits.softmax(1)
    metric = RegionDice(C, match=match, activation=activation)
    metric.update(preds, target)
    values = metric.compute()
    for measure, key in (("dice", "mean_dice"), ("score", "score")):
        loss = RegionDiceLoss(measure=measure, match=match, activation=activation, batch=True)
        assert 1 - loss(preds, target).item() == pytest.approx(values[key].item(), abs=1e-6)


def test_large_volumes_keep_their_digits():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(1, 2, 2**21, generator=generator)
    soft = torch.randn(1, 2, 2**21, generator=generator).softmax(1)
    loss, exact = (region_dice_loss(logits.to(t), soft.to(t)) for t in (torch.float, torch.double))
    assert loss.item() == pytest.approx(exact.item(), abs=1e-6)


@pytest.mark.parametrize("kind", ["labels", "soft"])
def test_the_loss_is_that_of_other_libraries_where_definitions_meet(kind):
    logits, labels, soft = random_batch()
    q = soft if kind == "soft" else one_hot(labels)
    p = logits.softmax(1)
    monai = DiceLoss(softmax=True, soft_label=True, smooth_nr=0, smooth_dr=0)(logits, q)
    loss = region_dice_loss(logits, q)
    assert loss.item() == pytest.approx(monai.item(), abs=1e-9)
    # segmentation-models-pytorch 0.6: soft_tversky_score, α = β = ½, multiclass mode, over the
    # batch; the intersection is half of |p| + |q| − |p − q|.
    sums = [side.sum(dim=(0, 2, 3)) for side in (p, q)]
    shared = (sums[0] + sums[1] - (p - q).abs().sum(dim=(0, 2, 3))) / 2
    tversky = shared / (shared + 0.5 * (sums[0] - shared) + 0.5 * (sums[1] - shared))
    loss = region_dice_loss(logits, soft if kind == "soft" else labels, batch=True)
    assert loss.item() == pytest.approx((1 - tversky).mean().item(), abs=1e-12)


# -- excluded pixels -----------------------------------------------------------------------------


@pytest.mark.parametrize("match", ["labels", "overlap"])
@pytest.mark.parametrize(
    ("measure", "similarity"),
    [("dice", "absolute"), ("score", "absolute"), ("score", Aitchison(floor=FLOOR))],
)
@pytest.mark.parametrize("kind", ["labels", "ignored", "soft"])
def test_masked_pixels_are_never_read(match, measure, similarity, kind):
    logits, labels, soft = random_batch()
    mask = torch.rand(N, *SHAPE, generator=torch.Generator().manual_seed(1)) < 0.6
    options = {"match": match, "measure": measure, "similarity": similarity}
    target = soft.clone() if kind == "soft" else labels.clone()
    expected = [
        region_dice_loss(z[:, kept][None], t[..., kept][None], **options).item()
        for z, t, kept in zip(logits, target, mask, strict=True)
    ]
    logits = logits.masked_fill(~mask[:, None], torch.nan).requires_grad_()
    if kind == "soft":
        target[~mask[:, None].expand_as(target)] = torch.nan
    else:
        target[~mask] = 255
    given = {"ignore_index": 255} if kind == "ignored" else {}
    loss = RegionDiceLoss(reduction="none", **options, **given)
    losses = loss(logits, target, None if kind == "ignored" else mask)
    assert losses.tolist() == pytest.approx(expected, abs=1e-9)
    losses.sum().backward()
    assert logits.grad.isfinite().all()
    assert (logits.grad[~mask[:, None].expand_as(logits)] == 0).all()


@pytest.mark.parametrize("match", ["labels", "overlap"])
@pytest.mark.parametrize(
    ("measure", "similarity"),
    [
        ("dice", "absolute"),
        ("score", "absolute"),
        ("foreground", "absolute"),
        ("score", Aitchison(floor=FLOOR)),
    ],
)
def test_an_image_without_pixels_has_no_loss(measure, similarity, match):
    logits, labels, _ = random_batch()
    logits.requires_grad_()
    mask = torch.ones(N, *SHAPE, dtype=torch.bool)
    mask[1] = False
    loss = RegionDiceLoss(
        similarity=similarity, measure=measure, match=match, background=0, reduction="none"
    )
    losses = loss(logits, labels, mask)
    assert losses[1] == 0
    assert losses[[0, 2]].tolist() == pytest.approx(loss(logits, labels)[[0, 2]].tolist())
    losses.sum().backward()
    assert logits.grad.isfinite().all()
    assert (logits.grad[1] == 0).all()


# -- matching ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("channels", "regions"), [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("kind", ["labels", "soft"])
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("background", [None, 0])
def test_matching_takes_the_largest_total_overlap(channels, regions, kind, batch, background):
    logits, labels, soft = random_batch(channels=channels, regions=regions)
    target, q = (labels, one_hot(labels, regions)) if kind == "labels" else (soft, soft)
    p, q = arrays(logits.softmax(1)), arrays(q)
    if batch:
        p, q = (side.transpose(1, 0, 2).reshape(1, side.shape[1], -1) for side in (p, q))
    for measure in ("dice", "score", *(() if background is None else ("foreground",))):
        options = {"measure": measure, "background": background, "batch": batch}
        loss = RegionDiceLoss(match="overlap", reduction="none", **options)
        expected = [by_all_matchings(*pair, measure, background) for pair in zip(p, q, strict=True)]
        assert loss(logits, target).tolist() == pytest.approx(expected, abs=1e-9)


def by_all_matchings(p, q, measure, background):
    """The loss under the best of all one-to-one matchings, tried one by one."""
    size = max(len(p), len(q))
    p, q = (np.pad(side, ((0, size - len(side)), (0, 0))) for side in (p, q))
    fixed = [] if background is None else [background]
    orders = [order for order in permutations(range(size)) if all(order[k] == k for k in fixed)]
    best = max(orders, key=lambda order: np.minimum(p, q[list(order)]).sum())
    return expected_loss(p, q[list(best)], measure, background)


@pytest.mark.parametrize(
    ("measure", "similarity"),
    [("dice", "absolute"), ("score", "absolute"), ("score", Aitchison(floor=FLOOR))],
)
def test_permuted_channels_have_a_permuted_gradient(measure, similarity):
    logits, labels, _ = random_batch(channels=6)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    loss = RegionDiceLoss(measure=measure, similarity=similarity, match="overlap")
    gradients = []
    for values in (logits, logits[:, order]):
        values = values.clone().requires_grad_()
        loss(values, labels).backward()
        gradients.append(values.grad)
    assert gradients[0].abs().max() > 0
    assert torch.allclose(gradients[0][:, order], gradients[1], atol=1e-12)


def test_a_missed_region_has_dice_0_and_an_additional_channel_its_mean_probability():
    p = torch.tensor([[[0.9, 0.9, 0.1, 0.1], [0.1, 0.1, 0.9, 0.9]]], dtype=torch.float64)
    target = torch.tensor([[0, 0, 1, 2]])  # 0 ↔ channel 0, 1 ↔ channel 1, 2 is missed
    loss = RegionDiceLoss(match="overlap", activation=None)
    # Channel 0: 0.2 + 0.2 of 4; channel 1: 0.1 + 0.1 + 0.1 + 0.9 of 3; the missed region: 1.
    assert loss(p, target).item() == pytest.approx((0.4 / 4 + 1.2 / 3 + 1) / 3, abs=1e-12)
    one = torch.tensor([[0, 0, 0, 0]])
    # Both channels overlap the region by 2. Channel 0 is matched: 2 of 6. Channel 1 has mean 0.5.
    assert loss(p, one).item() == pytest.approx((2 / 6 + 0.5) / 2, abs=1e-12)


def test_a_target_may_lack_the_background():
    p = torch.tensor([[[0.7, 0.8], [0.3, 0.2]]], dtype=torch.float64, requires_grad=True)
    loss = RegionDiceLoss(match="overlap", activation=None, background=1)
    value = loss(p, torch.tensor([[0, 0]]))  # channel 0: 0.3 + 0.2 of 3.5; channel 1 does not count
    assert value.item() == pytest.approx(0.5 / 3.5, abs=1e-12)
    value.backward()
    assert p.grad.isfinite().all()


# -- gradients -----------------------------------------------------------------------------------


OPTIONS = [
    *(
        {"measure": measure, "match": match, "batch": batch, "background": background}
        for measure, match, batch, background in product(
            ["dice", "score", "foreground"], ["labels", "overlap"], [False, True], [None, 1]
        )
        if (measure, background) != ("foreground", None)
    ),
    *(
        {"measure": "score", "similarity": Aitchison(floor=FLOOR), "match": match, "batch": batch}
        for match, batch in product(["labels", "overlap"], [False, True])
    ),
    {"measure": "score", "similarity": "aitchison"},
    {"class_weights": [1.0, 2.0, 0.5]},
    {"reduction": "sum"},
    {"reduction": "none"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", ["labels", "soft"])
def test_gradients_are_those_of_differences(options, kind):
    logits, labels, soft = (side[:2] for side in random_batch(shape=(4,), channels=3, regions=3))
    if kind == "labels" and options.get("similarity") == "aitchison":
        return
    target = labels if kind == "labels" else soft
    loss = RegionDiceLoss(**options)
    mask = torch.tensor([[True, True, True, False], [True, True, True, True]])
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: loss(z, target, mask), (logits,))
    assert torch.autograd.gradgradcheck(lambda z: loss(z, target), (logits,), fast_mode=True)


@pytest.mark.parametrize("activation", ["sigmoid", None])
@pytest.mark.parametrize("measure", ["dice", "score", "foreground"])
def test_gradients_of_other_activations_are_those_of_differences(activation, measure):
    logits, labels, soft = (side[:2] for side in random_batch(shape=(4,), channels=1, regions=2))
    values = (logits if activation else logits.sigmoid()).detach().requires_grad_()
    loss = RegionDiceLoss(activation=activation, measure=measure, background=0)
    for target in (labels, soft):
        assert torch.autograd.gradcheck(lambda z, t=target: loss(z, t), (values,))
        assert torch.autograd.gradgradcheck(
            lambda z, t=target: loss(z, t), (values,), fast_mode=True
        )


def minimised(loss, target, steps=300):
    """The loss that Adam reaches on free logits, and their probabilities."""
    logits = torch.zeros_like(target).requires_grad_()
    optimiser = torch.optim.Adam([logits], lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.98)
    for _ in range(steps):
        optimiser.zero_grad()
        loss(logits, target).backward()
        optimiser.step()
        schedule.step()
    return loss(logits, target).item(), logits.softmax(1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"measure": "score"},
        {"measure": "foreground", "background": 0},
        {"batch": True},
        {"measure": "score", "similarity": Aitchison()},
    ],
    ids=str,
)
def test_the_minimum_is_at_the_target(options):
    _, _, target = random_batch(seed=3)
    value, reached = minimised(RegionDiceLoss(**options), target)
    assert value < 1e-3
    if options.get("measure") != "foreground":
        assert (reached - target).abs().max() < 0.02


def test_the_product_form_has_no_minimum_at_the_target():
    _, _, target = random_batch(seed=3)
    products = DiceLoss(softmax=True)
    value, reached = minimised(products, target)
    assert value > 0.1
    assert value < products(target.log(), target).item() - 0.05
    assert (reached - target).abs().max() > 0.3


@pytest.mark.parametrize("options", [{}, {"batch": True}, {"background": 0}], ids=str)
@pytest.mark.parametrize("match", ["labels", "overlap"])
def test_the_loss_decreases_with_the_probability_of_an_absent_class(options, match):
    logits, labels, _ = random_batch()
    labels[labels == 3] = 0
    logits[:, 3] += 1  # without matching 3 is a class, with matching often an unmatched channel
    logits.requires_grad_()
    loss = RegionDiceLoss(match=match, **options)(logits, labels)
    loss.backward()
    assert logits.grad.isfinite().all()
    if match == "labels":
        assert (logits.grad[:, 3] > 0).all()  # a step against the gradient lowers it


@pytest.mark.parametrize("measure", ["dice", "foreground"])
@pytest.mark.parametrize("kind", ["labels", "soft"])
def test_the_loss_of_an_image_without_foreground_is_its_foreground(measure, kind):
    target = torch.zeros(2, 6, 6, dtype=torch.long)
    if kind == "soft":
        target = one_hot(target, 2)
    logits = torch.zeros(2, 2, 6, 6, dtype=torch.float64, requires_grad=True)
    loss = RegionDiceLoss(measure=measure, background=0)
    assert loss(logits, target).item() == pytest.approx(0.5)  # the mean probability
    optimiser = torch.optim.Adam([logits], lr=0.1)
    for _ in range(100):
        optimiser.zero_grad()
        loss(logits, target).backward()
        assert logits.grad.isfinite().all()
        optimiser.step()
    assert loss(logits, target).item() < 0.01


def test_aitchison_has_no_gradient_at_the_target_and_at_impossible_pixels():
    target = torch.tensor([[[0.5, 0.2, 1.0], [0.5, 0.8, 0.0]]], dtype=torch.float64)
    logits = torch.tensor([[[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]], dtype=torch.float64)
    logits.requires_grad_()
    loss = RegionDiceLoss(similarity="aitchison", measure="score", reduction="none")(logits, target)
    # f₂ is 1 at the first pixel; d_a = |1 − log 4| / √2 at the second; 0 at the third.
    second = 1 / (1 + abs(1 - np.log(4)) / np.sqrt(2))
    assert loss.item() == pytest.approx(1 - (1 + second + 0) / 3, abs=1e-12)
    loss.sum().backward()
    assert (logits.grad[0, :, [0, 2]] == 0).all()
    assert (logits.grad[0, :, 1] != 0).all()


# -- types, devices and compilation --------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("similarity", ["absolute", Aitchison(floor=FLOOR)])
def test_short_types_are_summed_in_float32(dtype, similarity):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(1, 3, 100_000, generator=generator).to(dtype).requires_grad_()
    soft = torch.randn(1, 3, 100_000, generator=generator).softmax(1)
    loss = RegionDiceLoss(measure="score", similarity=similarity)
    value = loss(logits, soft)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(loss(logits.double(), soft.double()).item(), abs=1e-6)
    value.backward()
    assert logits.grad.dtype == dtype
    dice = RegionDiceLoss()(logits, soft.to(dtype))
    exact = RegionDiceLoss()(logits.double(), soft.to(dtype).double())
    assert dice.item() == pytest.approx(exact.item(), abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("match", ["labels", "overlap"])
def test_autocast_changes_nothing(dtype, match):
    logits, labels, soft = random_batch(dtype=torch.float32)
    for target in (labels, soft):
        expected = region_dice_loss(logits, target, match=match)
        with torch.autocast("cpu", dtype=dtype):
            assert region_dice_loss(logits, target, match=match) == expected
            if match == "overlap":  # probabilities that were rounded by a network
                short = logits.softmax(1).to(dtype)
                loss = region_dice_loss(short, target, match=match, activation=None)
                assert loss.item() == pytest.approx(expected.item(), abs=1e-2)


@pytest.mark.parametrize("kind", ["labels", "soft"])
@pytest.mark.parametrize("similarity", ["absolute", Aitchison(floor=FLOOR)])
def test_the_loss_never_waits_for_a_device(kind, similarity):
    # Tensors of the meta device have no values, so reading one fails.
    logits = torch.zeros(N, C, *SHAPE, device="meta", requires_grad=True)
    target = torch.zeros(N, *SHAPE, dtype=torch.long, device="meta")
    if kind == "soft":
        target = torch.zeros(N, C, *SHAPE, device="meta")
    mask = torch.ones(N, *SHAPE, dtype=torch.bool, device="meta")
    measures = ["dice", "score", "foreground"] if similarity == "absolute" else ["score"]
    for measure in measures:
        loss = RegionDiceLoss(similarity=similarity, measure=measure, background=0).to("meta")
        for value in (loss(logits, target), loss(logits, target, mask)):
            value.backward()
            assert value.device.type == "meta"


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"measure": "foreground", "background": 0, "batch": True, "reduction": "none"},
        {"measure": "score", "similarity": Aitchison(floor=FLOOR)},
        {"class_weights": [1.0, 2.0, 0.5, 1.0], "ignore_index": 2},
        {"match": "overlap"},
    ],
    ids=str,
)
def test_compiled_losses_have_the_same_values_and_gradients(options):
    logits, labels, soft = random_batch(dtype=torch.float32)
    mask = torch.rand(N, *SHAPE) < 0.7
    loss = RegionDiceLoss(**options)
    fullgraph = options.get("match") != "overlap"
    torch.compiler.reset()  # torch counts graphs per function, not per loss
    compiled = torch.compile(loss, fullgraph=fullgraph, backend="aot_eager")
    targets = [labels] if "ignore_index" in options else [labels, soft]
    for target, inside in product(targets, [None, mask]):
        gradients, values = [], []
        for function in (loss, compiled):
            z = logits.clone().requires_grad_()
            value = function(z, target, inside)
            value.sum().backward()
            values.append(value.detach())
            gradients.append(z.grad)
        assert torch.allclose(*values, atol=1e-6)
        assert torch.allclose(*gradients, atol=1e-7)


# -- several outputs -----------------------------------------------------------------------------


def test_several_outputs_weigh_1_a_half_and_a_quarter():
    fine, labels, soft = random_batch(shape=(8, 12))
    outputs = [fine, *(random_batch(seed=k, shape=(8 >> k, 12 >> k))[0] for k in (1, 2))]
    for target, q in ((labels, one_hot(labels)), (soft, soft)):
        # Means over blocks of 2 × 2 and 4 × 4 pixels.
        averages = [
            q.reshape(N, C, 8 >> k, 1 << k, 12 >> k, 1 << k).mean(dim=(3, 5)) for k in range(3)
        ]
        losses = [
            region_dice_loss(*pair, reduction="none")
            for pair in zip(outputs, averages, strict=True)
        ]
        expected = (losses[0] + losses[1] / 2 + losses[2] / 4) / 1.75
        for wanted in (target, averages):
            several = region_dice_loss(outputs, wanted, reduction="none")
            assert several.tolist() == pytest.approx(expected.tolist(), abs=1e-12)
    assert region_dice_loss([fine], labels) == region_dice_loss(fine, labels)


def test_masked_pixels_are_left_out_of_averages():
    output = torch.zeros(1, 2, 2, dtype=torch.float64)
    labels = torch.tensor([[0, 7, 1, 7, 7, 7, 7, 7]])
    mask = torch.tensor([[True, True, True, True, True, False, True, False]])
    expected = region_dice_loss(output[..., :1], torch.full((1, 2, 1), 0.5, dtype=torch.float64))
    loss = RegionDiceLoss(ignore_index=7)
    assert loss([output], labels, mask) == expected


# -- invalid options and tensors -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "iou"}, "measure must be one of 'dice', 'score', 'foreground', found 'iou'"),
        ({"match": "paper"}, "match must be one of 'labels', 'overlap', found 'paper'"),
        ({"reduction": "max"}, "reduction must be one of 'mean', 'sum', 'none', found 'max'"),
        ({"activation": "relu"}, "activation must be"),
        ({"similarity": "dice"}, "similarity must be"),
        ({"measure": "foreground"}, "requires a background, such as background=0"),
        ({"background": -1}, r"background must be a class index \(0, 1, …\), found -1"),
        ({"similarity": "aitchison"}, "aitchison requires measure=\"score\", found 'dice'"),
        (
            {"similarity": "aitchison", "measure": "score", "activation": None},
            r"aitchison requires logits\. .* pass preds.log\(\)",
        ),
        ({"class_weights": [1, -1]}, "class_weights must be non-negative numbers"),
        ({"class_weights": [1, 0], "background": 0}, "positive for at least one class"),
        ({"class_weights": [1, 1], "measure": "score"}, 'class_weights require measure="dice"'),
        ({"class_weights": [1, 1], "match": "overlap"}, 'and match="labels"'),
    ],
)
def test_options_that_do_not_fit_are_rejected_at_once(options, message):
    with pytest.raises(InputError, match=message):
        RegionDiceLoss(**options)


@pytest.mark.parametrize(
    ("options", "preds", "target", "message"),
    [
        ({}, torch.zeros(2, 3, 4), torch.zeros(2, 5).long(), "both must cover the same pixels"),
        ({}, torch.zeros(2, 3, 4), torch.zeros(3, 4).long(), "both must cover the same pixels"),
        ({}, torch.zeros(2, 3, 4), torch.zeros(2, 1, 4).long(), r"target.squeeze\(1\)"),
        ({}, torch.zeros(2, 3, 4), torch.zeros(2, 3, 4).long(), r"target.argmax\(1\)"),
        ({}, torch.zeros(2, 3, 4), torch.zeros(2, 4), r"use an integer type: target.long\(\)"),
        (
            {},
            torch.zeros(2, 3, 4),
            torch.zeros(2, 2, 4),
            r"3 channels, found shape \(2, 2, 4\)",
        ),
        ({}, torch.zeros(2, 3, 4).long(), torch.zeros(2, 4).long(), "preds must contain floating"),
        ({}, torch.zeros(2, 1, 4), torch.zeros(2, 4).long(), 'Use activation="sigmoid"'),
        (
            {"activation": "sigmoid"},
            torch.zeros(2, 3, 4),
            torch.zeros(2, 4).long(),
            "a single channel",
        ),
        ({}, torch.zeros(2, 3, 4), torch.full((2, 4), 5), "label 5, expected labels from 0 to 2"),
        ({}, torch.zeros(2, 3, 4), torch.full((2, 4), -1), "label -1, .* use ignore_index"),
        ({"background": 3}, torch.zeros(2, 3, 4), torch.zeros(2, 4).long(), "background=3 is not"),
        ({"class_weights": [1, 2]}, torch.zeros(2, 3, 4), torch.zeros(2, 4).long(), "be 3 numbers"),
        ({"ignore_index": 9}, torch.zeros(2, 3, 4), torch.zeros(2, 3, 4), "Use mask instead"),
        (
            {"similarity": "aitchison", "measure": "score"},
            torch.zeros(2, 3, 4),
            torch.zeros(2, 4).long(),
            r"target contains labels, .*Aitchison\(floor=1e-3\)",
        ),
        ({}, [torch.zeros(2, 3, 4)] * 2, [torch.zeros(2, 4).long()], "or 2 tensors for 2 outputs"),
    ],
)
def test_tensors_that_do_not_fit_are_rejected(options, preds, target, message):
    with pytest.raises(InputError, match=message):
        RegionDiceLoss(**options)(preds, target)


def test_a_mask_that_does_not_fit_is_rejected():
    for mask in (torch.ones(2, 4), torch.ones(2, 1, 4, dtype=torch.bool)):
        with pytest.raises(InputError, match=r"mask must be a boolean tensor of shape \(2, 4\)"):
            region_dice_loss(torch.zeros(2, 3, 4), torch.zeros(2, 4).long(), mask)


def test_the_representation_shows_the_options():
    assert repr(RegionDiceLoss(measure="foreground", background=0, ignore_index=255)) == (
        "RegionDiceLoss(similarity='absolute', measure='foreground', match='labels', "
        "activation='softmax', batch=False, background=0, ignore_index=(255,), "
        "class_weights=None, reduction='mean')"
    )


# -- training ------------------------------------------------------------------------------------


def mean_dice(model, match="labels"):
    images, labels = stripes(seed=1)
    metric = RegionDice(3, match=match, activation="softmax")
    metric.update(model(images).detach(), labels)
    return metric.compute()["mean_dice"].item()


@pytest.mark.parametrize(
    ("options", "dice"),
    [
        ({}, 0.8),
        ({"measure": "score"}, 0.8),
        ({"measure": "foreground", "background": 0, "batch": True}, 0.8),
        ({"match": "overlap"}, 0.8),
        ({"measure": "score", "similarity": Aitchison(floor=0.05)}, 0.5),  # it finds two of three
    ],
    ids=str,
)
def test_fifty_steps_train_a_network(options, dice):
    model, loss = network(), RegionDiceLoss(**options)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    match = options.get("match", "labels")
    assert mean_dice(model, match) < 0.4
    images, labels = stripes()
    for _ in range(50):
        optimiser.zero_grad()
        loss(model(images), labels).backward()
        optimiser.step()
    assert mean_dice(model, match) > dice


@pytest.mark.filterwarnings(r"ignore:`isinstance\(treespec, LeafSpec\)`:FutureWarning")
@pytest.mark.filterwarnings("ignore:The 'train_dataloader' does not have many workers")
def test_lightning_trains_with_the_loss(tmp_path):
    import lightning

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = network()
            self.loss = RegionDiceLoss()

        def training_step(self, batch, _):
            images, labels = batch
            return self.loss(self.network(images), labels)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.02)

    model = Model()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*stripes()), batch_size=8)
    trainer = lightning.Trainer(
        accelerator="cpu",
        precision="bf16-mixed",
        max_epochs=50,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(model, loader)
    assert mean_dice(model.network) > 0.8


def test_monai_trains_with_the_loss():
    from monai.data import DataLoader, Dataset
    from monai.engines import SupervisedTrainer

    images, labels = stripes()
    data = [
        {"image": image, "label": label[None].float()}  # as MONAI loads labels
        for image, label in zip(images, labels, strict=True)
    ]
    model, loss = network(), RegionDiceLoss()
    trainer = SupervisedTrainer(
        device=torch.device("cpu"),
        max_epochs=50,
        train_data_loader=DataLoader(Dataset(data), batch_size=8),
        network=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.02),
        loss_function=lambda preds, label: loss(preds, label[:, 0].long()),
    )
    trainer.run()
    assert mean_dice(model) > 0.8


class StubTrainer:
    """The part of nnU-Net's trainer (2.8) that builds a loss."""

    is_ddp = False
    enable_deep_supervision = True
    configuration_manager = SimpleNamespace(batch_dice=True)
    label_manager = SimpleNamespace(has_regions=False, ignore_label=3)

    def _get_deep_supervision_scales(self):
        return [[1, 1], [0.5, 0.5], [0.25, 0.25]]


class StubWrapper(torch.nn.Module):
    """nnU-Net's DeepSupervisionWrapper: the weighted sum of losses of several outputs."""

    def __init__(self, loss, weights):
        super().__init__()
        self.loss, self.weights = loss, tuple(weights)

    def forward(self, outputs, targets):
        several = zip(self.weights, outputs, targets, strict=True)
        return sum(weight * self.loss(*pair) for weight, *pair in several if weight)


def test_the_recipe_for_nnunet_builds_a_loss(monkeypatch):
    page = Path(__file__).parent.parent / "docs" / "how-to" / "training.md"
    (code,) = re.findall(
        r"## nnU-Net\n.*?```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
    )
    for name, content in (
        ("loss.deep_supervision", {"DeepSupervisionWrapper": StubWrapper}),
        ("nnUNetTrainer.nnUNetTrainer", {"nnUNetTrainer": StubTrainer}),
    ):
        monkeypatch.setitem(sys.modules, f"nnunetv2.training.{name}", SimpleNamespace(**content))
    names = {}
    exec(code, names)
    loss = names["nnUNetTrainerRegionDice"]()._build_loss()
    outputs = [random_batch(seed=k, shape=(8 >> k, 8 >> k), channels=3)[0] for k in range(3)]
    targets = [
        random_batch(seed=9 + k, shape=(8 >> k, 8 >> k))[1][:, None].to(torch.int16)
        for k in range(3)
    ]
    expected = 0
    for weight, z, target in zip((2 / 3, 1 / 3), outputs, targets, strict=False):
        labels = target[:, 0].long()
        kept = labels != 3
        p = z.softmax(1).movedim(1, -1)[kept].T.numpy()
        q = one_hot(labels)[:, :3].movedim(1, -1)[kept].T.numpy()
        cross_entropy = -(np.log(p) * q).sum() / q.shape[1]
        expected += weight * (expected_loss(p, q, "dice", 0) + cross_entropy)
    assert loss(outputs, targets).item() == pytest.approx(expected, abs=1e-9)
