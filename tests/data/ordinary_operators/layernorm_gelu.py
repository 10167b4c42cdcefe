import torch.nn.functional as F


def layernorm_gelu(x, weight, bias, eps):
    """LayerNorm over the features, then GELU."""
    return F.gelu(F.layer_norm(x, (x.shape[-1],), weight, bias, eps))
