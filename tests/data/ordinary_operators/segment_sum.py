import torch


def segment_sum(x, segments, count: int):
    """Sum of the rows of each segment."""
    return x.new_zeros(count, x.shape[1]).index_add_(0, segments, x)


def get_inputs():
    return [torch.randn(2048, 64), torch.randint(0, 100, (2048,)).sort().values, 100]
