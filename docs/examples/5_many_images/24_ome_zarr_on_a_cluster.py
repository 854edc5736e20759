"""
OME-Zarr on a cluster
=====================

The workers of a Dask cluster compare two volumes in chunked stores. Each worker reads the chunks
of its blocks and returns only small tables. The cluster in this example consists of two threads on
one machine; the same code runs on a large cluster.
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
print(probdice.read(f"{folder}/reference.zarr").shape)

# %%
# With a client, every pass runs on the cluster of this client. Without a client, every pass runs in
# threads of this process. The result is the same.
paths = f"{folder}/reference.zarr", f"{folder}/prediction.zarr"
with Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"):
    on_a_cluster = probdice.compare(*paths, merge="prediction")
local = probdice.compare(*paths, merge="prediction")
print(on_a_cluster.score, local.score)

# %%
figure = local.plot("views")
