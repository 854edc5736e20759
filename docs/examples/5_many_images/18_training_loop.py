"""
In a training loop
==================

``RegionDice`` is a torchmetrics metric. A tiny network learns to segment stripes. The metric scores
the probabilities of the network directly, without an argmax.
"""

import torch
from matplotlib.figure import Figure

from probdice.synthesis import stripes
from probdice.torch import RegionDice

torch.manual_seed(0)
target = torch.tensor(stripes((48, 48), regions=3).array.argmax(axis=0))[None]
image = target[:, None] / 2 + 0.2 * torch.randn(1, 1, 48, 48)
network = torch.nn.Sequential(
    torch.nn.Conv2d(1, 8, 5, padding=2), torch.nn.ReLU(), torch.nn.Conv2d(8, 3, 1)
)
optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
metric = RegionDice(3, match="labels", activation="softmax")

scores, accuracies = [], []
for _ in range(60):
    logits = network(image)
    loss = torch.nn.functional.cross_entropy(logits, target)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    metric.update(logits.detach(), target)
    scores.append(metric.compute()["score"].item())
    accuracies.append((logits.argmax(1) == target).float().mean().item())
    metric.reset()

# %%
# The labels are right long before the probabilities are close to 1. The score shows the difference.
curves = Figure(figsize=(7, 3.2), layout="constrained")
axes = curves.subplots()
axes.plot(scores, label="score of the probabilities")
axes.plot(accuracies, label="accuracy of the labels")
axes.set(xlabel="step", ylim=(0, 1.02))
axes.legend()
