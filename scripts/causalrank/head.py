"""A head as an approximation sees it: its factors, and which mixing matrix of theirs is meant."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .low_rank import leading_right_vectors, right_vectors_of_product
from .mixing import divided_by_row_sums, from_kernel, matrix, normalized_factors


@dataclass(frozen=True)
class Head:
    """Factors F, G of shape (N, D), q and k themselves for softmax, and which matrix of theirs.

    `largest_rank` is the largest to which the matrix will be truncated.
    """

    F: np.ndarray
    G: np.ndarray
    feature_map: str
    mask: str
    normalization: str
    largest_rank: int = 0

    @cached_property
    def A(self) -> np.ndarray:
        return matrix(self.F, self.G, self.feature_map, self.mask, self.normalization)

    @cached_property
    def right_vectors(self) -> np.ndarray:
        """Right singular vectors of A, shape (N, r): the first `largest_rank`, or all there are."""
        factored = self.feature_map != "softmax" and self.mask == "bidirectional"
        if not factored or self.F.shape[1] >= len(self.F):
            return leading_right_vectors(self.A, self.largest_rank)
        F, G = self.F, self.G
        if self.normalization == "row":
            F, G = normalized_factors(F, G)
        return right_vectors_of_product(F, G)

    def of_kernel(self, K: np.ndarray) -> np.ndarray:
        """Kernel values K, shape (N, N), masked and normalized as A is."""
        return from_kernel(K, self.mask, self.normalization)

    def of_entries(self, A: np.ndarray) -> np.ndarray:
        """A with some entries changed, shape (N, N): divided by its row sums again if A is."""
        return divided_by_row_sums(A) if self.normalization == "row" else A
