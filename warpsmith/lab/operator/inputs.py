"""Fresh inputs, which the grader draws anew for every call."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from math import inf, prod
from typing import TYPE_CHECKING, Any

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.definition import DEPENDENT_INTEGERS, Definition, TensorSpec, Workload
from warpsmith.errors import BadDefinition, CompanionFailed
from warpsmith.lab.operator import captured, input_rules
from warpsmith.lab.operator.captured import CapturedCalls
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.integer_range import ANY, POSITIONS, find_integer_range
from warpsmith.lab.operator.promises import (
    are_beginnings,
    find_near_mean,
    find_sentinels,
    is_promised,
    reaches_end,
)
from warpsmith.lab.operator.values.distributions import (
    ADVERSARIAL,
    ALONE,
    DISTRIBUTIONS,
    FULL,
    IGNORED,
    IN_RANGE,
    MASKED_PAIRS,
    MASKS,
    MIXED_ROWS,
    OTHER_SIGNS,
    RELATED_INPUTS,
    REPLACEABLE,
    shape_values,
    vary_nan_bits,
)
from warpsmith.lab.operator.values.masks import draw_booleans, place_sentinel
from warpsmith.lab.operator.values.range_values import Limits, arrange_rows
from warpsmith.lab.operator.values.related_values import (
    draw_distinct,
    draw_offsets,
    draw_zipf,
    fill_integers,
    order_distinct,
    order_integers,
    plant_ends,
    relate_input,
    vary_signs,
)

if TYPE_CHECKING:
    import torch

PARAMETRIC = ("normal:<mean>:<deviation>", "uniform:<low>:<high>")
"""Distributions of floating-point inputs with numbers, which are arithmetic over axes; weights need them."""

INTEGERS = ("integers:<low>:<high>", "offsets:<total>", "zipf:<count>", "distinct:<count>")
"""Distributions of integers, with numbers as arithmetic over axes: uniform, cut points of groups, skewed ids, and
ids below a count of which none repeats in a row, as far as the count allows."""

_LARGEST_DRAW = 1 << 25
"""Number of values of an input up to which several draws are made at once."""

_INDEPENDENT = ("normal", "uniform", "large", "tiny", "shifted", "lowered", "far")
"""Distributions with independent values, so that many tensors can be drawn at once."""


_WHOLE = (RELATED_INPUTS, IN_RANGE, FULL, IGNORED, OTHER_SIGNS)
"""Distributions of a whole call."""

_ROUNDED_BY_GPU = ("bfloat16", "float16")
"""Types in which a GPU draws normal values as in float32, and rounds each as it is written, in a single pass."""

_AT_ANY_SCALE = ("constant", "sorted", "sparse", "one_hot")
"""Adversarial distributions that keep the scale of a parametric one, such as `normal:0:0.02` of weights."""


class Inputs:
    """Source of inputs of one workload; each `draw` gives new values."""

    def __init__(self, file: DefinitionFile, workload: Workload, seed: int, device: str) -> None:
        import torch

        self._file = file
        self._definition: Definition = file.definition
        self._workload = workload
        self._device = device
        self._key, self._draws = seed, 0
        self._generator = torch.Generator(device=device)

    def draw(self, distribution: str | None = None, *, quick: bool = False) -> dict[str, torch.Tensor]:
        """Draw one set of tensors by name, on the grader's device.

        Args:
            distribution: replaces the workload's distribution.
            quick: a CPU draws part by part. Every value is drawn: a kernel could recognize a block that
                repeats, and compute it once.

        Raises:
            BadDefinition: the definition's own generator fails, or a distribution is unknown or impossible.
        """
        self._reseed()
        if self._file.inputs is not None:
            return self._own(self._workload)
        return next(self._together(1, distribution, quick))

    def draw_several(
        self, count: int, distribution: str | None = None, *, quick: bool = False
    ) -> Iterator[dict[str, torch.Tensor]]:
        """Draw `count` sets, as many at once as memory allows, since a draw costs more on the host than on the
        GPU.

        If the definition draws its own inputs, this needs an axis to draw along.

        Raises:
            BadDefinition: as `draw`.
        """
        own = self._file.inputs is not None
        if own and self._definition.drawn_along is None:
            yield from (self.draw() for _ in range(count))
            return
        specs = self._definition.tensor_inputs.values()
        largest = max((prod(self._definition.shape(spec, self._workload)) for spec in specs), default=0)
        limit = max(_LARGEST_DRAW // max(largest, 1), 1)  # An axis may be empty.
        for first in range(0, count, limit):
            part_count = min(limit, count - first)
            self._reseed()
            yield from self._cut(part_count) if own else self._together(part_count, distribution, quick)

    def _reseed(self) -> None:
        """Seed the next draw by a hash: a generator's state, and so its next values, follow from its values."""
        self._draws += 1
        digest = hashlib.blake2b(f"{self._key} {self._draws}".encode(), digest_size=8).digest()
        self._generator.manual_seed(int.from_bytes(digest) >> 1)

    def _together(self, count: int, distribution: str | None, quick: bool) -> Iterator[dict[str, torch.Tensor]]:
        import torch

        specs = self._definition.tensor_inputs
        whole = distribution if distribution in _WHOLE else None
        distribution = None if whole else distribution
        is_alone = distribution in (*ALONE, MASKED_PAIRS) or self._masks_one(distribution)
        alone = self._pick_input(distribution) if is_alone else None
        calls = self._captured.choose_calls(self._workload.axes, count, self._generator) if self._captured else []
        forms = {name: distribution if alone in (None, name) else None for name in specs}
        try:
            drawn = {
                name: self._captured_tensors(name, calls, forms[name])
                or self._tensors(spec, forms[name], quick, count)
                for name, spec in specs.items()
            }
        except torch.OutOfMemoryError as error:
            raise CompanionFailed(f"The device has no memory left for inputs: {error}") from error
        for name, number in self._sentinels.items() if distribution is not None else ():
            drawn[name] = [place_sentinel(tensor, number, self._generator) for tensor in drawn[name]]
        if distribution in (*ADVERSARIAL, MIXED_ROWS) or whole == RELATED_INPUTS:
            self._equal_offsets(drawn)
        if whole == RELATED_INPUTS:
            self._relate(drawn)
        for name, number in self._sentinels.items() if whole == IGNORED else ():
            drawn[name] = [torch.full_like(tensor, number) for tensor in drawn[name]]
        end = int(torch.randint(3, (), generator=self._generator, device=self._device)) if whole == FULL else 0
        for name in self._independent_integers if whole == FULL else ():
            low, high = self.integer_limits(name) or (0, 1)
            limit = (low, high - 1, None)[end]  # the same end of all ranges, or numbers by chance
            drawn[name] = [fill_integers(tensor, self._generator, limit) for tensor in drawn[name]]
        for name, limits in self._ranges.items() if whole == IN_RANGE else ():
            drawn[name] = [arrange_rows(tensor, limits, self._generator) for tensor in drawn[name]]
        for name in self._near_mean if whole == OTHER_SIGNS else ():
            drawn[name] = [vary_signs(tensor, self._generator) for tensor in drawn[name]]
        yield from ({name: tensors[part] for name, tensors in drawn.items()} for part in range(count))

    def _masks_one(self, distribution: str | None) -> bool:
        """Return True in half of the draws of masks, where one input has them: what masked weights multiply has
        none."""
        import torch

        options: dict[str, Any] = {"generator": self._generator, "device": self._device}
        return distribution in MASKS and bool(torch.randint(2, (), **options))

    def _pick_input(self, distribution: str | None) -> str | None:
        """Draw a floating-point input that any values may stand in; None without one.

        A mask of pairs stands in one that has such, in half of the draws in the smallest, which several share.
        """
        import torch

        options: dict[str, Any] = {"generator": self._generator, "device": self._device}
        specs = self._definition.tensor_inputs
        names = [name for name, spec in specs.items() if self._holds_any_value(spec)]
        if distribution == MASKED_PAIRS:
            sizes = {name: self._definition.shape(specs[name], self._workload) for name in names}
            names = [name for name in names if len(sizes[name]) > 1 and 0 not in sizes[name]] or names
            least = min((prod(sizes[name]) for name in names), default=0)
            if int(torch.randint(2, (), **options)):
                names = [name for name in names if prod(sizes[name]) == least]
        chosen = torch.randint(max(len(names), 1), (), **options)
        return names[int(chosen)] if names else None

    def _holds_any_value(self, spec: TensorSpec) -> bool:
        """Return True for a floating-point input in whose place adversarial values may stand.

        Those of an activation with a mean and a deviation have its scale; the narrowest types have no room for
        them.
        """
        dtype = self._definition.dtype(spec, self._workload)
        is_scaled = spec.distribution.startswith("normal:") and spec.role != "weight"
        has_room = not dtype.startswith("float8")
        return is_floating(dtype) and (spec.distribution in REPLACEABLE or (is_scaled and has_room))

    def _relate(self, drawn: dict[str, Sequence[torch.Tensor]]) -> None:
        """Replace inputs by values of others, in random order: the first one of each type stays."""
        import torch

        options: dict[str, Any] = {"generator": self._generator, "device": self._device}
        order = [list(drawn)[index] for index in torch.randperm(len(drawn), **options).tolist()]
        order.sort(key=lambda name: name in self._relatable)
        for position, name in enumerate(order):
            sources = [source for source in self._relatable.get(name, ()) if source in order[:position]]
            if sources:
                source = sources[int(torch.randint(len(sources), (), **options))]
                pairs = zip(drawn[source], drawn[name], strict=True)
                drawn[name] = [self._hold_range(name, *pair) for pair in pairs]

    def _equal_offsets(self, drawn: dict[str, Sequence[torch.Tensor]]) -> None:
        """Give inputs of cut points up to the same total the same ones, in half of the draws, as queries and keys
        of one sequence have."""
        import torch

        cuts: dict[tuple[object, ...], str] = {}
        for name, spec in self._definition.tensor_inputs.items():
            kind, *texts = spec.distribution.split(":")
            if kind == "offsets" and int(torch.randint(2, (), generator=self._generator, device=self._device)):
                sizes = self._definition.sizes(self._workload)
                total, shape = evaluate(texts[0], sizes), self._definition.shape(spec, self._workload)
                first = cuts.setdefault((total, shape, self._definition.dtype(spec, self._workload)), name)
                drawn[name] = [tensor.clone() for tensor in drawn[first]]

    def _hold_range(self, name: str, source: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        """Return values of another input, and own ones where a value is out of the input's range."""
        related = relate_input(source, own, self._generator)
        if own.is_floating_point():
            least, most = self.range_limits(name) or (-inf, inf)
            is_inside = (related.double() >= least) & (related.double() <= most)
            return related if least == -inf else related.where(is_inside, own)
        low, high = self.integer_limits(name) or (0, 0)
        return related.where((related >= low) & (related <= high - 1), own)

    @cached_property
    def _near_mean(self) -> list[str]:
        return find_near_mean(self._definition, self._workload) if self._captured is None else []

    @cached_property
    def _relatable(self) -> dict[str, list[str]]:
        """Input that may hold any value of its range to the others of its type. No promise in words names it."""
        definition = self._definition
        dtypes = {name: definition.dtype(spec, self._workload) for name, spec in definition.tensor_inputs.items()}
        relatable = {}
        kinds = {name: spec.distribution.split(":")[0] for name, spec in definition.tensor_inputs.items()}
        finite = [name for name, kind in kinds.items() if kind not in (*MASKS, "nonfinite")]
        related = [
            name
            for name, spec in definition.tensor_inputs.items()
            if (
                spec.distribution in REPLACEABLE or self.range_limits(name)
                if is_floating(dtypes[name])
                else self.integer_limits(name)
            )
        ]
        for name in related if self._captured is None else ():
            others = [other for other in finite if other != name and dtypes[other] == dtypes[name]]
            if others and not is_promised(definition, name):
                relatable[name] = others
        return relatable

    def draw_alias(self, *, same_shape: bool) -> tuple[str, ...]:
        """Draw two inputs, of which callers may pass the beginning of the first one as the second one; with
        `same_shape`, two or more of which they may pass one as all. Empty without such inputs."""
        import torch

        definition = self._definition
        shapes = {name: definition.shape(spec, self._workload) for name, spec in definition.tensor_inputs.items()}
        limits = {name: self.integer_limits(name) or self.range_limits(name) for name in self._relatable}
        pairs = [
            (first, second)
            for second, others in (self._relatable if self._file.inputs is None else {}).items()
            for first in others
            if 0 < prod(shapes[second]) <= prod(shapes[first])
            and (not same_shape or shapes[first] == shapes[second])
            and (limits[second] is None or limits.get(first) == limits[second])
        ]
        self._reseed()
        options: dict[str, Any] = {"generator": self._generator, "device": self._device}
        if not pairs:
            return ()
        first, second = pairs[int(torch.randint(len(pairs), (), **options))]
        others = [name for source, name in pairs if source == first and name != second] if same_shape else []
        count = int(torch.randint(len(others) + 1, (), **options))
        if int(torch.randint(2, (), **options)):  # all of them, as queries, keys and values are one tensor
            count = len(others)
        order = torch.randperm(len(others), **options)[:count].tolist()
        return (first, second, *(others[index] for index in order))

    @cached_property
    def _sentinels(self) -> dict[str, int]:
        """Input of integers to the number that it may hold too, by a promise such as `label == ignore_index`."""
        return find_sentinels(self._file, self._workload)

    def _cut(self, count: int) -> Iterator[dict[str, torch.Tensor]]:
        """Make one longer draw along the definition's axis and cut it into parts."""
        axis = self._definition.drawn_along
        assert axis is not None
        length = self._workload.axes[axis]
        update = {"axes": {**self._workload.axes, axis: length * count}}
        drawn = self._own(self._workload.model_copy(update=update))
        specs = self._definition.tensor_inputs
        for part in range(count):
            yield {
                name: tensor.narrow(specs[name].shape.index(axis), part * length, length)
                if axis in specs[name].shape
                else tensor
                for name, tensor in drawn.items()
            }

    @property
    def adversarial_distributions(self) -> tuple[str, ...]:
        """Return the further distributions that apply; none if the definition draws its own inputs."""
        if self._file.inputs is not None:
            return ()
        whole = {
            RELATED_INPUTS: self._relatable,
            IN_RANGE: self._ranges,
            FULL: self._independent_integers,
            IGNORED: self._sentinels,
            OTHER_SIGNS: self._near_mean,
        }
        return (*ADVERSARIAL, *(name for name, inputs in whole.items() if inputs))

    @property
    def has_square(self) -> bool:
        """Return True if a call is small, and a floating-point input that any values may stand in has as many rows
        as columns."""
        specs = [spec for spec in self._definition.tensor_inputs.values() if self._holds_any_value(spec)]
        shapes = [self._definition.shape(spec, self._workload) for spec in specs]
        is_small = self._definition.elements(self._workload) <= input_rules.PAIR_ELEMENTS
        return is_small and any(len(shape) > 1 and 1 < shape[-2] == shape[-1] for shape in shapes)

    @property
    def _independent_integers(self) -> list[str]:
        return [name for name in self._definition.tensor_inputs if self.integer_limits(name)]

    @property
    def _ranges(self) -> dict[str, Limits]:
        limits = {name: self.range_limits(name) for name in self._definition.tensor_inputs}
        return {name: each for name, each in limits.items() if each}

    def range_limits(self, name: str) -> Limits | None:
        """Return the least and the largest value that a draw of a floating-point input with a declared range may
        give; None without one."""
        import torch

        spec = self._definition.tensor_inputs[name]
        dtype = self._definition.dtype(spec, self._workload)
        is_uniform = spec.distribution.split(":")[0] == "uniform" and is_floating(dtype)
        if not is_uniform or self._file.inputs is not None or self._captured is not None:
            return None
        _, factor, shift = self._parametric(spec.distribution)
        below = 1 - 2.0**-24  # the largest number that float32 draws
        most = 1.0 if reaches_end(self._definition, name, factor + shift) else below
        ends = torch.tensor([0.0, most]) * factor + shift
        least, most = sorted(ends.to(getattr(torch, dtype)).double().tolist())
        return least, most

    def has_independent_values(self, name: str) -> bool:
        """Return True if each value of a floating-point input is drawn by itself, and so may stand anywhere."""
        spec = self._definition.tensor_inputs[name]
        form = self._workload.distribution if spec.distribution == "workload" else spec.distribution
        is_drawn = self._file.inputs is None and is_floating(self._definition.dtype(spec, self._workload))
        return is_drawn and self._captured is None and form.split(":")[0] in _INDEPENDENT

    def _own(self, workload: Workload) -> dict[str, torch.Tensor]:
        assert self._file.inputs is not None
        try:
            drawn: dict[str, torch.Tensor] = self._file.inputs(workload, self._generator, self._device)
        except Exception as error:
            raise BadDefinition(f"{self._file.path}: inputs() fails: {type(error).__name__}: {error}") from error
        if not isinstance(drawn, dict) or set(drawn) != set(self._definition.tensor_inputs):
            raise BadDefinition(f"{self._file.path}: inputs() must return {list(self._definition.tensor_inputs)}.")
        for name, spec in self._definition.tensor_inputs.items():
            shape = self._definition.shape(spec, workload)
            if tuple(drawn[name].shape) != shape:
                raise BadDefinition(
                    f"{self._file.path}: inputs() draws `{name}` as {tuple(drawn[name].shape)} at "
                    f"{workload.name}, but its shape is {shape}."
                )
        return drawn

    @cached_property
    def _captured(self) -> CapturedCalls | None:
        """Calls that the workload draws from; None for another distribution."""
        digest = captured.split_form(self._workload.distribution)
        return captured.load_calls(self._file.path.with_name(captured.FILE), digest) if digest else None

    def _captured_tensors(
        self, name: str, calls: list[int | None], distribution: str | None
    ) -> list[torch.Tensor] | None:
        """Draw one input from the chosen calls; None if they lack it, or another distribution takes its place."""
        if self._captured is None:
            return None
        spec = self._definition.tensor_inputs[name]
        dtype = self._definition.dtype(spec, self._workload)
        if distribution is not None and self._holds_any_value(spec):
            return None
        shape = self._definition.shape(spec, self._workload)
        return self._captured.draw_input(name, shape, dtype, calls, self._generator)

    def _tensors(
        self, spec: TensorSpec, distribution: str | None, quick: bool, count: int
    ) -> Sequence[torch.Tensor]:
        """Draw `count` values of one input."""
        import torch

        shape = self._definition.shape(spec, self._workload)
        dtype = self._definition.dtype(spec, self._workload)
        general = "normal" if self._captured else self._workload.distribution
        own = general if spec.distribution == "workload" else spec.distribution
        if not is_floating(dtype):
            return [self._integers(spec, own, shape, dtype, distribution) for _ in range(count)]
        name, factor, shift = self._form(spec, own, distribution)
        in_parts = quick and self._device == "cpu" and dtype != "float64"
        rounded = name == "normal" and (factor, shift) == (1.0, 0.0) and self._device != "cpu"
        drawn_type = dtype if dtype == "float64" or (rounded and dtype in _ROUNDED_BY_GPU) else "float32"

        def draw(shape: tuple[int, ...]) -> torch.Tensor:
            values = self._normal_parts(shape) if in_parts else self._normal(shape, drawn_type)
            values = shape_values(name, values, dtype, self._generator).contiguous()
            if (factor, shift) != (1.0, 0.0):
                scaled = values * factor + shift
                most = min(torch.finfo(kind).max for kind in (getattr(torch, dtype), scaled.dtype))
                values = scaled.clamp(-most, most).where(values.isfinite(), scaled)
            return vary_nan_bits(name, values.to(getattr(torch, dtype)), self._generator)

        if name in _INDEPENDENT and not in_parts and count > 1:
            return draw((count, *shape)).unbind()
        return [draw(shape) for _ in range(count)]

    def _form(self, spec: TensorSpec, own: str, distribution: str | None) -> tuple[str, float, float]:
        """Return the distribution that an input has, with the factor and the shift of its values: its own, or the
        drawn one where that may take its place."""
        if distribution is not None and spec.distribution in REPLACEABLE:
            own = distribution
        name, factor, shift = self._parametric(own)
        is_scaled = distribution in _AT_ANY_SCALE and spec.distribution.startswith("normal:")
        if distribution is not None and (is_scaled or (self._holds_any_value(spec) and factor > 0)):
            name = distribution
        if name not in DISTRIBUTIONS:
            names = ", ".join((*DISTRIBUTIONS, *PARAMETRIC))
            raise BadDefinition(f"{self._file.path}: unknown distribution `{name}`; known: {names}.")
        return name, factor, shift

    def _parametric(self, form: str) -> tuple[str, float, float]:
        """Split one of `PARAMETRIC` into its name, and the factor and the shift of its values."""
        kind, *texts = form.split(":")
        if kind not in ("normal", "uniform") or len(texts) != 2:
            return form, 1.0, 0.0
        try:
            first, second = (float(evaluate(text, self._definition.sizes(self._workload))) for text in texts)
        except ValueError as error:
            forms = ", ".join(PARAMETRIC)
            raise BadDefinition(
                f"{self._file.path}: the distribution `{form}` has no value: {error}; known: {forms}."
            ) from error
        return (kind, second, first) if kind == "normal" else (kind, second - first, first)

    def _normal(self, shape: tuple[int, ...], dtype: str) -> torch.Tensor:
        import torch

        return torch.randn(shape, generator=self._generator, device=self._device, dtype=getattr(torch, dtype))

    def _normal_parts(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Draw normal values on the CPU part by part, so that both passes over a part meet it in a cache."""
        import torch

        values = torch.empty(shape)
        flat, size = values.view(-1), input_rules.QUICK_DRAW_VALUES
        for first in range(0, flat.numel(), size):
            flat[first : first + size].normal_(generator=self._generator)
        return values

    def _integers(
        self, spec: TensorSpec, form: str, shape: tuple[int, ...], dtype: str, distribution: str | None = None
    ) -> torch.Tensor:
        """Draw integers by one of `INTEGERS`; by default 0 to 127, and 0 to 1 for booleans.

        An adversarial distribution orders values in the range of those that were drawn. Offsets stay.
        """
        import torch

        kind, *texts = form.split(":")
        if not (texts_given := bool(texts)):
            kind, texts = "integers", ["0", "2" if dtype == "bool" else "128"]
        try:
            numbers = [int(evaluate(text, self._definition.sizes(self._workload))) for text in texts]
            drawn = self._drawn_integers(kind, numbers, shape, are_beginnings(self._definition, spec))
        except torch.OutOfMemoryError:
            raise
        except (ValueError, RuntimeError) as error:
            forms = ", ".join(INTEGERS)
            raise BadDefinition(
                f"{self._file.path}: integers cannot be drawn as `{form}` in the shape {shape}: {error}; "
                f"known: {forms}."
            ) from error
        if drawn.numel() and distribution in (*ADVERSARIAL, MIXED_ROWS):
            if kind == "distinct":
                drawn = order_distinct(drawn, numbers[0], self._generator)
            elif kind not in DEPENDENT_INTEGERS:
                drawn = self._extreme_integers(drawn, None if texts_given else dtype)
                if texts_given and kind == "integers":
                    drawn = plant_ends(drawn, numbers[0], numbers[1] - 1, self._generator)
        return drawn.to(getattr(torch, dtype))

    def _extreme_integers(self, drawn: torch.Tensor, dtype: str | None) -> torch.Tensor:
        """Return other integers of the same range; with a type, which has no declared range, by chance any that
        the reference computes with."""
        import torch

        options: dict[str, Any] = {"generator": self._generator, "device": self._device}
        if dtype == "bool" and drawn.ndim > 1 and int(torch.randint(2, (), **options)):
            return draw_booleans(drawn.shape, self._generator).long()
        if dtype and dtype != "bool" and self._integer_range and int(torch.randint(2, (), **options)):
            limits = torch.iinfo(getattr(torch, dtype))
            end = min(limits.max + 1, torch.iinfo(torch.int64).max)  # what randint takes
            if self._integer_range == ANY:
                low, high = limits.min, end
            elif self._integer_range == POSITIONS:
                choice = int(torch.randint(len(input_rules.LARGEST_POSITIONS), (), **options))
                low, high = 0, min(input_rules.LARGEST_POSITIONS[choice], end)
            else:
                low, high = 0, min(self._definition.sizes(self._workload)[self._integer_range], end)
            drawn = torch.randint(low, max(high, 1), drawn.shape, **options)
            if self._integer_range == ANY:
                drawn = plant_ends(drawn, limits.min, limits.max, self._generator)
            if int(torch.randint(2, (), **options)):
                return drawn
        return order_integers(drawn, self._generator)

    @cached_property
    def _integer_range(self) -> str | None:
        return find_integer_range(self._file)

    def integer_limits(self, name: str) -> tuple[int, int] | None:
        """Return the least integer that an input may hold by itself and the one after the largest; None where its
        values fit each other, are no integers or have no such range."""
        import torch

        definition, spec = self._definition, self._definition.tensor_inputs[name]
        dtype = definition.dtype(spec, self._workload)
        kind, *texts = spec.distribution.split(":")
        sizes = definition.sizes(self._workload)
        if self._file.inputs is not None or kind in DEPENDENT_INTEGERS or dtype == "bool" or is_floating(dtype):
            return None
        limits = torch.iinfo(getattr(torch, dtype))
        match kind, [int(evaluate(text, sizes)) for text in texts]:
            case "integers", [low, high]:
                return low, high
            case "zipf", [count]:
                return 0, count
        match self._integer_range:
            case None:
                return 0, min(128, limits.max + 1)
            case "any":
                return limits.min, limits.max + 1
            case "positions":
                return 0, min(max(input_rules.LARGEST_POSITIONS), limits.max + 1)
            case axis:
                return 0, min(sizes[axis], limits.max + 1)

    def _drawn_integers(
        self, kind: str, numbers: list[int], shape: tuple[int, ...], is_open: bool
    ) -> torch.Tensor:
        import torch

        match kind, numbers:
            case "integers", [low, high]:
                return torch.randint(low, high, shape, generator=self._generator, device=self._device)
            case "offsets", [total] if len(shape) == 1 and total >= 0:
                return draw_offsets(shape[0], total, self._generator, are_beginnings=is_open)
            case "zipf", [count] if count > 0:
                return draw_zipf(shape, count, self._generator)
            case "distinct", [count] if count > 0:
                return draw_distinct(shape, count, self._generator)
            case _:
                raise ValueError("the distribution is unknown, or its numbers do not fit")
