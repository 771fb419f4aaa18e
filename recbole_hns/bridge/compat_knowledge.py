"""RecBole 1.2.1's KGAT, KGIN and MCCLK without the compiled packages that they import for one call.

KGAT takes ``dgl`` below 1.0, which has no builds for Python 3.11 and later, to count edges; KGIN and
MCCLK take ``torch_scatter``, which has to be compiled, for a mean and a softmax. The same is a few lines
of SciPy and torch. Where ``torch_scatter`` is installed, it is used. :func:`apply` is called by
:mod:`.compat`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from recbole.config import Config
from recbole.data.dataset import Dataset
from recbole.model.knowledge_aware_recommender import KGAT, kgin, mcclk


def scatter_mean(src: torch.Tensor, index: torch.Tensor, dim_size: int, dim: int = 0) -> torch.Tensor:
    """The mean of the rows of ``src`` that go to each of ``dim_size`` places; 0 where none does."""
    total = src.new_zeros(dim_size, *src.shape[1:]).index_add(0, index, src)
    count = torch.bincount(index, minlength=dim_size).clamp(min=1)
    return total / count.view(-1, *[1] * (src.dim() - 1))


def scatter_softmax(src: torch.Tensor, index: torch.Tensor, dim: int = 0) -> torch.Tensor:
    """The softmax of each column of ``src``, (n, d), among the rows that share an index."""
    places = index[:, None].expand_as(src)
    highest = src.new_full((int(index.max()) + 1, src.shape[1]), -torch.inf)
    highest = highest.scatter_reduce(0, places, src.detach(), "amax")
    weights = (src - highest[index]).exp()
    return weights / torch.zeros_like(highest).index_add(0, index, weights)[index]


@contextlib.contextmanager
def scatter_at_hand() -> Iterator[None]:
    """Let an ``import torch_scatter`` succeed, for as long as it takes and if it would not."""
    if importlib.util.find_spec("torch_scatter") is not None:
        yield
        return
    stand_in = types.ModuleType("torch_scatter")
    vars(stand_in).update(scatter_mean=scatter_mean, scatter_softmax=scatter_softmax)
    sys.modules["torch_scatter"] = stand_in
    try:
        yield
    finally:
        del sys.modules["torch_scatter"]


def attention_of_structure(self: KGAT) -> torch.Tensor:
    """KGAT's initial attention: Σ_r D_r⁻¹ A_r over the relations r of the collaborative graph."""
    heads, tails, relations = (x.cpu().numpy() for x in (self.all_hs, self.all_ts, self.all_rs))
    total = sp.coo_matrix(tuple(self.matrix_size))
    for r in range(1, self.n_relations):
        own = relations == r
        A = sp.coo_matrix((np.ones(own.sum()), (heads[own], tails[own])), shape=total.shape)
        degree = np.asarray(A.sum(axis=1)).ravel()
        total = total + sp.diags(np.divide(1, degree, where=degree > 0, out=np.zeros_like(degree))) @ A
    total = total.tocoo()
    indices = torch.from_numpy(np.stack([total.row, total.col]).astype(np.int64))
    values = torch.from_numpy(total.data.astype(np.float32))
    return torch.sparse_coo_tensor(indices, values, self.matrix_size).to(self.device)


class _WithoutDGL:
    """A data set that makes no graph of ``dgl``: KGAT only keeps it."""

    def __init__(self, dataset: Dataset):
        self._dataset = dataset

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)

    def ckg_graph(self, form: str = "coo", value_field: str | None = None) -> Any:
        return None if form == "dgl" else self._dataset.ckg_graph(form, value_field)


def apply() -> None:
    """Put the stand-ins in their places; doing so again changes nothing."""
    if hasattr(KGAT.__init__, "__wrapped__"):
        return
    original_init = KGAT.__init__

    @functools.wraps(original_init)
    def __init__(self: KGAT, config: Config, dataset: Dataset) -> None:
        original_init(self, config, _WithoutDGL(dataset))

    KGAT.__init__, KGAT.init_graph = __init__, attention_of_structure
    for module in (kgin, mcclk):
        module.Aggregator.forward = scatter_at_hand()(module.Aggregator.forward)
