"""Two processes of `torch.distributed` give the numbers of one.

The second process imports this module, so it imports little besides torch.
"""

import pytest
from extras import require

require("torch", "torchmetrics")

import torch
from torch_data import IMAGES, SHAPE, fed, made, metric_for, network, stripes

from probdice.torch import RegionDiceLoss

CASES = [
    ("labels", "labels", {"merge": "both"}),
    ("labels", "labels", {"correspondence": "image"}),
    ("logits", "labels", {"merge": "prediction"}),
    ("logits", "soft", {}),
]


def one_of_two(rank, folder):
    """Compute metrics and train on every other image, together with the other process."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2
    )
    try:
        values = []
        for p, t, options in CASES:
            metric = fed(metric_for(**options), made()[0][p][rank::2], made()[1][t][rank::2], 1)
            values.append({key: value.item() for key, value in metric.compute().items()})
            if "correspondence" not in options:
                assert metric.result.pixels == IMAGES * SHAPE[0] * SHAPE[1]
        model = torch.nn.parallel.DistributedDataParallel(network())
        trained(model, *(side[rank::2] for side in stripes()))
        torch.save((values, model.module.state_dict()), f"{folder}/results{rank}.pt")
        # If the model held the last reference to the process group, deleting the model later would
        # wait for threads that need the interpreter lock.
        del model
    finally:
        torch.distributed.destroy_process_group()


def second_process(_, folder):
    one_of_two(1, folder)


def trained(model, images, labels, steps=5):
    loss = RegionDiceLoss()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimiser.zero_grad()
        loss(model(images), labels).backward()
        optimiser.step()


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The metrics and the weights of both processes."""
    folder = tmp_path_factory.mktemp("processes")
    other = torch.multiprocessing.spawn(second_process, args=(str(folder),), join=False)
    one_of_two(0, folder)
    while not other.join():
        pass
    return [torch.load(folder / f"results{rank}.pt") for rank in (0, 1)]


def test_two_processes_give_the_metrics_of_one(results):
    for case, (p, t, options) in enumerate(CASES):
        alone = fed(metric_for(**options), made()[0][p], made()[1][t]).compute()
        for values in (metrics[case] for metrics, _ in results):
            assert list(values) == list(alone)
            error = 0 if (p, t) == ("labels", "labels") else 1e-12
            assert list(values.values()) == pytest.approx(
                [value.item() for value in alone.values()], abs=error, rel=0, nan_ok=True
            )


def test_two_processes_train_like_one(results):
    model = network()
    trained(model, *stripes())
    (_, first), (_, second) = results
    for name, weights in model.state_dict().items():
        assert torch.equal(first[name], second[name])
        assert torch.allclose(first[name], weights, atol=1e-5)
