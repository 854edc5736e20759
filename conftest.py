"""Skip the doctests of integrations that are not installed, except in CI."""

import os
from importlib.util import find_spec

collect_ignore = []
if not os.environ.get("CI"):
    if not (find_spec("torch") and find_spec("torchmetrics")):
        collect_ignore.append("src/probdice/torch")
    if not (find_spec("torch") and find_spec("monai") and find_spec("ignite")):
        collect_ignore.append("src/probdice/monai.py")
