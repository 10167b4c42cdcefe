"""Trace of a forward: the work of each operation, and the longest chain of reductions behind each result.

Rounding errors of sums that follow each other add up, those of sums beside each other do not. So the reduction
length of a result is the sum over the longest chain of operations that lead to it, not over the whole forward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch


class UnusableOperator(Exception):
    """The code does something that no definition can express."""


class Operation(NamedTuple):
    """One operation of a forward."""

    name: str
    """Name in PyTorch: `aten.mm.default`."""
    length: int
    """Numbers that it adds up for one number of its result; 1 if it adds nothing up."""
    flops: int
    """Floating-point operations of a product or convolution; 0 for others."""
    elements: int
    """Elements of its largest operand or result; 0 if it only moves numbers."""
    looked_up: int = 0
    """Elements that it reads of its table; 0 if it is no lookup."""
    amplifies: bool = False
    """True if its errors vary from element to element: small relative errors become large ones, or the number of
    terms depends on data."""


_RATIO = frozenset(
    """
    sum mean var std var_mean std_mean norm linalg_vector_norm logsumexp dot vdot mv native_layer_norm
    native_group_norm native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional
    _batch_norm_with_update cudnn_batch_norm _fused_rms_norm mse_loss smooth_l1_loss huber_loss
    binary_cross_entropy nansum prod trace avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d
    _adaptive_avg_pool3d adaptive_avg_pool1d _cdist_forward _euclidean_dist native_layer_norm_backward
    native_group_norm_backward native_batch_norm_backward mkldnn_rnn_layer
    """.split()  # noqa: SIM905 - a paragraph of words reads better than a list of strings
)
"""Operations that add up as many numbers as their largest operand has for one number of their smallest result."""

_SCANS = frozenset({"cumsum", "cumprod", "logcumsumexp", "_softmax", "_log_softmax", "_safe_softmax"})
"""Operations whose length is the size along `dim`."""

_SCATTERS = frozenset(
    "scatter_add scatter_reduce index_add index_put index_reduce _index_put_impl_ segment_reduce".split()  # noqa: SIM905
)
"""Operations that add a data-dependent number of rows: at most all of them."""

_BAGS = frozenset({"_embedding_bag", "_embedding_bag_forward_only"})
_LOOKUPS = frozenset({"embedding", "index_select", "index", "gather", "take", *_BAGS})
"""Operations that read the elements of their table that integers name."""

_AMPLIFIERS = frozenset(
    """
    var std var_mean std_mean native_layer_norm native_group_norm native_batch_norm _native_batch_norm_legit
    _native_batch_norm_legit_functional _batch_norm_with_update cudnn_batch_norm
    cumsum cumprod logcumsumexp
    exp exp2 expm1 _softmax _log_softmax _safe_softmax logsumexp pow sin cos tan sinh cosh log log1p sigmoid tanh
    """.split()  # noqa: SIM905
)
"""Operations whose error can exceed that of a sum of their result's size: a scan passes through larger sums."""

_LOSSES = frozenset({"nll_loss_forward", "nll_loss2d_forward"})


def operation_trace() -> Any:  # noqa: ANN401 - a class of torch, which is imported late
    """Return a dispatch mode that lists the operations inside it, and refuses random ones.

    It has `operations`, a list of `Operation`; `chain_of(tensor)`, the indices of the operations in the longest
    chain behind a tensor; `longest_chain(tensors)`, its length; `guard(tensors)`, which names tensors that no
    operation may write to; and `uses`, by the name of such a tensor the indices of the lookups into it, and -1 for
    any other use.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class ForwardTrace(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.operations: list[Operation] = []
            self._chains: dict[int, tuple[int, ...]] = {}
            self._guarded: dict[int, str] = {}
            self.uses: dict[str, set[int]] = {}
            self._storages: list[Any] = []  # They stay alive, so that no other storage gets the key of one.

        def guard(self, tensors: dict[str, torch.Tensor]) -> None:
            self._guarded |= {self._key(tensor): name for name, tensor in tensors.items()}

        def chain_of(self, tensor: torch.Tensor) -> tuple[int, ...]:
            return self._chains.get(self._key(tensor), ())

        def longest_chain(self, tensors: Any) -> int:  # noqa: ANN401
            chains = [self.chain_of(t) for t in tree_leaves(tensors) if isinstance(t, torch.Tensor)]
            return max((self._length(chain) for chain in chains), default=0)

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            kwargs = kwargs or {}
            if torch.Tag.nondeterministic_seeded in func.tags:
                raise UnusableOperator(
                    f"it draws random numbers ({func}), so no result can be compared; remove them"
                    + (
                        "; a module in `eval()` mode has no dropout"
                        if "dropout" in str(func) or "bernoulli" in str(func)
                        else ""
                    )
                )
            result = func(*args, **kwargs)
            if not func.is_view and func.namespace != "prim":  # those of `prim` only ask for facts
                self._record(func, args, kwargs, result)
            return result

        def _record(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:  # noqa: ANN401
            operands = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
            results = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
            written = _written_tensors(func, args, kwargs)
            for tensor in written:
                if name := self._guarded.get(self._key(tensor)):
                    raise UnusableOperator(
                        f"it writes to its input `{name}` ({func}); a definition needs a function that leaves its "
                        "inputs as they are"
                    )
            operation = _operation(func, args, kwargs, operands, results, result)
            chain = max((self.chain_of(tensor) for tensor in operands), key=self._length, default=())
            self.operations.append(operation)
            if operation.length > 1:
                chain = (*chain, len(self.operations) - 1)
            for position, tensor in enumerate(operands):
                if name := self._guarded.get(self._key(tensor)):
                    is_table = position == 0 and operation.looked_up
                    self.uses.setdefault(name, set()).add(len(self.operations) - 1 if is_table else -1)
            for tensor in (*results, *written):
                key = self._key(tensor)
                self._chains[key] = max(self._chains.get(key, ()), chain, key=self._length)

        def _key(self, tensor: torch.Tensor) -> int:
            storage = tensor.untyped_storage()
            self._storages.append(storage)
            return int(storage._cdata)

        def _length(self, chain: tuple[int, ...]) -> int:
            return sum(self.operations[index].length for index in chain)

    return ForwardTrace()


def _written_tensors(func: Any, args: Any, kwargs: Any) -> list[Any]:  # noqa: ANN401
    """Return the tensors that an operation writes to."""
    import torch
    from torch.utils._pytree import tree_leaves

    arguments = func._schema.arguments
    values = {argument.name: value for argument, value in zip(arguments, args, strict=False)} | kwargs
    targets = [values.get(a.name) for a in arguments if a.alias_info is not None and a.alias_info.is_write]
    return [tensor for tensor in tree_leaves(targets) if isinstance(tensor, torch.Tensor)]


def _operation(
    func: Any,  # noqa: ANN401
    args: Any,  # noqa: ANN401
    kwargs: dict[str, Any],
    operands: list[torch.Tensor],
    results: list[torch.Tensor],
    result: Any,  # noqa: ANN401
) -> Operation:
    import torch
    from torch.utils.flop_counter import flop_registry

    packet = func._overloadpacket
    name = packet.__name__.removeprefix("_foreach_")
    name = name if name.startswith("_") else name.removesuffix("_")
    sizes = [t.numel() for t in results if t.numel()]
    operand_sizes = [t.numel() for t in operands]
    largest = max((*operand_sizes, *sizes), default=0)
    if not sizes or not operands:
        return Operation(str(func), 1, 0, 0)
    if name in _LOOKUPS:
        table = operands[1].numel() * operands[0].shape[-1] if name in _BAGS else max(sizes)
        length = operands[1].numel() if name in _BAGS else 1
        return Operation(str(func), max(1, length), 0, table if name in _BAGS else 0, table, name in _BAGS)
    count = flop_registry.get(packet)
    if count is not None:
        flops = int(count(*args, **kwargs, out_val=result))
        return Operation(str(func), max(1, flops // (2 * max(sizes))), flops, largest)
    length = 1
    computes = torch.Tag.pointwise in func.tags
    by_name = dict(zip([argument.name for argument in func._schema.arguments], args, strict=False)) | kwargs
    if name in _RATIO:
        length = -(-max(operand_sizes) // min(sizes))
    elif name in _SCANS:
        first, dimension = operands[0], by_name.get("dim", -1)
        length = first.shape[dimension] if first.ndim else 1
    elif name in _LOSSES:
        length = -(-operands[1].numel() // max(sizes))
    elif name in _SCATTERS:
        length = _scatter_length(name, by_name, operands)
    else:
        return Operation(str(func), 1, 0, largest if computes else 0, amplifies=name in _AMPLIFIERS)
    amplifies = name in _AMPLIFIERS or (name in _SCATTERS and length > 1)
    return Operation(str(func), max(1, length), 0, largest, amplifies=amplifies)


def _scatter_length(name: str, by_name: dict[str, Any], operands: list[torch.Tensor]) -> int:
    """Return the most numbers that one element of a scatter's result can receive."""
    if name in ("index_put", "_index_put_impl_"):
        if not by_name.get("accumulate", False):
            return 1
        return max((t.numel() for t in by_name.get("indices") or () if t is not None), default=1)
    source = by_name.get("source", by_name.get("src", by_name.get("data", operands[-1])))
    dimension = by_name.get("dim", 0)
    return int(source.shape[dimension]) if getattr(source, "ndim", 0) else 1
