"""
Files, names and geometry
=========================

Compare probabilities, stored in one file per region, with a label map that has names. Both
segmentations have the same grid in millimetres.
"""

import os
import tempfile

import probdice
from probdice.synthesis import demo_pair

os.chdir(tempfile.mkdtemp())
reference, _ = demo_pair()
for region, name in enumerate(("csf", "grey", "white"), 1):
    probdice.write(f"{name}.nii.gz", reference.array[region], reference.geometry)
labels = reference.array.argmax(axis=0).astype("uint8")
probdice.write("labels.nii.gz", labels, reference.geometry)

tissues = probdice.read(["csf.nii.gz", "grey.nii.gz", "white.nii.gz"], sums="background")
atlas = probdice.read("labels.nii.gz", names=["background", "csf", "grey", "white"])
print(tissues, atlas, sep="\n")

# %%
# Equal names correspond. Volumes are in voxels and millilitres.
result = probdice.compare(atlas, tissues, match="labels")
result.to_frame()[["reference", "dice", "reference_ml", "prediction_ml"]].round(3)

# %%
figure = result.plot("views")
