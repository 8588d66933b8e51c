"""The rank of an attention head's token-mixing matrix, and what it is worth.

Pure functions on arrays. With q, k, v of shape (N, d) and a feature map phi, the factors
F = phi(q) and G = phi(k) give the mixing matrix A = F G^T (bidirectional) or A = tril(F G^T)
(causal); softmax attention has A = exp(q k^T / sqrt(d)). `A v` is the head's output.
"""
