"""
OME-Zarr on a cluster
=====================

Two volumes in chunked stores, compared by the workers of a Dask cluster: chunks are read where they
are needed, and only small tables travel. Here the cluster is two threads of this machine; the same
lines run on hundreds.
"""

import tempfile

from dask.distributed import Client

import probdice
from probdice.synthesis import demo_pair

folder = tempfile.mkdtemp()
reference, prediction = demo_pair()
for name, side in (("reference", reference), ("prediction", prediction)):
    labels = side.array.argmax(axis=0).astype("uint8")
    probdice.write(f"{folder}/{name}.zarr", labels, reference.geometry)
print(probdice.read(f"{folder}/reference.zarr"))

# %%
# With a client, every pass runs on its cluster; without one, on the threads of this process. The
# result is the same.
paths = f"{folder}/reference.zarr", f"{folder}/prediction.zarr"
with Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"):
    on_a_cluster = probdice.compare(*paths, merge="prediction")
here = probdice.compare(*paths, merge="prediction")
print(on_a_cluster.score, here.score)

# %%
figure = here.plot("views")
