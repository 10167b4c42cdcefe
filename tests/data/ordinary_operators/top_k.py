import torch


def top_k(x, k):
    """The k largest values of each row, and where they are; of equal values the first."""
    values, indices = torch.sort(x, dim=-1, descending=True, stable=True)
    return values[:, :k], indices[:, :k]


def get_inputs():
    return [torch.randn(128, 1024), 8]
