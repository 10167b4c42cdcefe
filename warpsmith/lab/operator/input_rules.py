"""Rules of the gate about workloads and inputs: the sizes and values at which a version is judged.

Each states where it comes from, as those in `gate_rules` do. A changed value needs a higher `GATE_VERSION`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ODD_SIZES: Final[Mapping[str, int]] = {"ones": 1, "primes": 67, "uneven": 129}
"""Size of every variable axis in the odd workloads that the lab derives. No tile divides the last two."""

TRIED_STEPS: Final = (3, -3, 129)
"""Elements by which an axis gets longer where it is tried whether a definition's own inputs come at other sizes.
The first that works is enough. Chosen: small steps, and one beyond a small tile."""

NEAR_SHAPES: Final = 4
"""Unseen shapes near the declared ones that a judgement draws at most. Chosen to bound the time of a judgement."""

NEAR_SHAPES_INTERPRETED: Final = 1
"""The same for an interpreter, which is about a thousand times slower."""

NEAR_ELEMENTS: Final = 1 << 20
"""Elements of all tensors of a near shape together: every distribution is judged there, in float64. Chosen."""

NEAR_ROOM: Final = 4
"""Factor by which a drawn shape may exceed that where its axes are no longer than a tile. Chosen: several axes
multiply."""

LONG_STEPS: Final = (2048, 4096)
"""Divisors of the size of a shape that is long along one axis. Chosen: large tiles, of which a kernel may take two
at a time and forget the last of an odd number."""

LONG_ELEMENTS: Final = 1 << 24
"""Elements of a shape that is long along one axis. Chosen: axes that no caller may shorten multiply with it."""

NEAR_ELEMENTS_INTERPRETED: Final = 1 << 14
"""The same for an interpreter, which is about a thousand times slower."""

NEAR_DISTANCE: Final = 7
"""Distance by which a size near a declared one may differ from it: less than `TILE`."""

TILE: Final = 8
"""No size near a declared one is a multiple of it, so that no tile divides the size. Chosen."""

SKEW_FACTOR: Final = 16
"""Factor between the axes of a skewed shape and those that it is derived from. Chosen."""

EDGE_SHAPES: Final = 3
"""Shapes with one element along an axis, each along another one. Chosen: a single sequence, token and column."""

SINGLE_ROWS: Final = 4
"""Most single rows of judged shapes. Chosen: a step of decoding has one, as long as that of training."""

LIMIT_SHARE: Final = 0.25
"""Share of the drawn numbers that are a limit of their range, or 0, 1, -1 or near 1 within it. Chosen."""

NEAR_ONE_BITS: Final = 10
"""Negative binary logarithm of its distance from 1, at most. Chosen: a mean's decay is near 1, few draws are."""

ALIKE_NUMBERS: Final = 0.25
"""Share of the calls with other numbers of which two are alike, as far as their ranges go. Chosen: what divides by
their difference fails there."""

WHOLE_SHARE: Final = 0.25
"""Share of the other drawn real numbers that are whole, or a half more, as far as the range has such. Chosen:
exponents and factors of callers are."""

WHOLE_NUMBERS: Final = 8
"""Largest size of such a number. Chosen."""

NOISE_OF_SUMS: Final = 2.0**-21
"""Error of each sum, as a share of its absolute terms, in calls of the reference that show how far a result moves.
Chosen: tensor cores cut off each of dozens of additions at a rounding of float32."""

NOISY_CALLS: Final = 4
"""Such calls. Chosen: one of two scores that differ by a rounding is the larger one in half of them."""

NOISE_ROOM: Final = 8
"""Factor of that distance within which a result beside numbers of the source decides nothing. Chosen."""

LEAST_SHARE: Final = 0.05
"""Least declared number below 1 that is judged at 0 too, where results stay finite. Chosen: smaller ones are what
keeps a quotient finite, such as an epsilon."""

NEARBY_BITS: Final = (14, 7, 3)
"""Negative binary logarithms of the relative distances of numbers that a version is called with in turn. Chosen:
near ones have one whole part up to 16384, or one float16; far ones differ in the result where it has few bits."""

SIZE_SHARE: Final = 0.25
"""Share of the other drawn integers that are a size of the call, one less or one more. Chosen."""

SPECIAL_CALLS: Final = 8
"""Calls of a size with numbers that are special together, or sizes, at most. Chosen: two near shapes meet all."""

TINY_SIZE: Final = 17
"""Every size of a tiny shape is below it. Chosen: narrower than a vector of most kernels."""

TINY_SHAPES: Final = 3
"""Tiny shapes that a judgement draws. Chosen: they take no time."""

ROUND_SIZES: Final = (8, 16, 32, 64, 128, 1024)
"""Divisors of the sizes of a round shape, which callers use. Chosen: what tiles divide, or tails have."""

POWER_SHAPES: Final = 2
"""Round shapes whose sizes are powers of two. Chosen: trees have an even number of levels, or an odd one."""

KEPT_SHAPES: Final[Mapping[str, int]] = {"cpu": 3, "cuda": 2}
"""Shapes that keep some sizes of a judged one beside odd ones, by device. Chosen: filters of two sizes keep
theirs, and one shape is left to chance."""

KEPT_SIZES: Final = 0.25
"""Share of the other sizes of a shape at a number of the source that are those of a judged shape. Chosen."""

ROUND_ELEMENTS: Final = 1 << 17
"""Elements of a workload that a round shape is derived from. Chosen: there is one for each of `ROUND_SIZES`."""

WHOLE_ELEMENTS: Final[Mapping[str, int]] = {"cpu": 1 << 24, "cuda": 1 << 28}
"""Elements of a drawn shape, by device, above which only sampled rows are graded. Chosen to bound the time."""

LARGER_FACTORS: Final = (1.05, 1.5, 4.0)
"""Least factor of a drawn size over the largest judged one; largest factor along an axis of whose sums the
definition does not say how long they are; and along any other. Chosen: an honest sum may lose its precision in a
much longer one. Beyond the second factor, rounding errors of a sum need not cancel."""

FAR_LENGTHS: Final = (1 << 20, 1 << 21)
"""Sizes of a shape that is far beyond the judged ones along one axis, on a CPU. Chosen: counters of 16 bits
overflow, and rows leave caches and stacks. On a GPU honest kernels hold a row."""

SHAPE_TRIES: Final = 8
"""Draws of the other axes of such a shape until no tensor has a size below zero. Chosen: a filter often exceeds an
image, if both are drawn."""

FAR_WIDTH: Final = 8
"""Size of its other axes, exclusive. Chosen: rows for several distributions, in little time."""

SHORT_LENGTHS: Final = ((1 << 15, 1 << 16), (1 << 16, 1 << 17))
"""The same of further ones. From the ranges of signed and unsigned 16-bit integers, which places are kept in."""

COUNTED_LENGTHS: Final = (9 << 21, 10 << 21)
"""The same where no result is rounded, and little else has elements. Derived: a float counts to 2^24, and a
twentieth of inputs that are mostly equal is not."""

FAR_ELEMENTS: Final = 1 << 21
"""Elements up to which the largest drawn size goes along an axis of rows, or where no result is rounded. Chosen:
callers have more rows than a small definition, and counters of 16 bits overflow."""

LARGER_BYTES: Final[Mapping[str, int]] = {"cpu": 1 << 30, "cuda": 1 << 32}
"""Bytes of a call at that shape, at most, by device. Chosen to bound its time."""

SAMPLED_ROWS: Final = 64
"""Rows, at least, that are graded of a call whose reference takes too long, besides the first and last. Chosen."""

SAMPLED_ELEMENTS: Final = 1 << 22
"""Elements of the rows that are graded there, if more rows are needed for that many. Chosen to bound the time."""

EDITED_WEIGHTS: Final = 2
"""Weights that are edited in several ways at odd, timed and larger sizes. Chosen to bound the time."""

EDITED_WHOLE: Final = 1 << 22
"""Elements of a drawn size up to which all of a call is graded after an edit in place; beyond it sampled rows, or
those that were edited. Chosen to bound the time."""

EDIT_DRAWS: Final = 3
"""Draws of such an edit until the earlier result is wrong after it. Chosen: calls may read a part of a table."""

STRIDED_ELEMENTS: Final[Mapping[str, int]] = {"cpu": 1 << 24, "cuda": 1 << 26}
"""Elements of a timed size, at most, by device, at which inputs of any layout come once in a layout drawn for each
judgement. Chosen: its reference takes long."""

OFFSET_LIMITS: Final = (1 << 32, 1 << 31)
"""Elements that a tensor must exceed to show offsets of too few bits; the first one that memory has room for.
From the ranges of unsigned and signed 32-bit integers."""

OFFSET_FACTOR: Final = 1.05
"""Factor by which that tensor exceeds the limit, so that one of twenty sampled rows lies beyond it. Chosen."""

OFFSET_DRAW_SECONDS: Final = 2.0
"""Seconds that a definition may take to draw the inputs of such a call. Chosen to bound a judgement's time."""

OFFSET_MEMORY_SHARE: Final = 0.8
"""Share of the GPU's free memory that such a call may take with its inputs and outputs. Chosen."""

OFFSET_WAIT_SECONDS: Final = 60.0
"""Seconds that such a call waits for memory of the GPU that others hold. Chosen above any other check's time."""

DISTRIBUTION_TURNS: Final = 3
"""Odd workloads over which an interpreter spreads the adversarial distributions, because it is about a thousand
times slower. Chosen."""

DRAWN_DISTRIBUTIONS: Final = 5
"""Adversarial distributions, drawn for each judgement, at a drawn shape. Chosen to bound a judgement's time."""

WIDE_NUMBERS: Final = 0.5
"""Share of the drawn numbers of a wide range whose distance from an end, or from zero, is drawn by its logarithm.
Chosen: small widths and large ones are used alike."""

WIDE_SPAN: Final = 2.0**20
"""Inverse of the least distance from zero or an end that is drawn so, as a share of the range. Chosen."""

GUIDED_SHAPES: Final[Mapping[str, int]] = {"cpu": 8, "cuda": 3}
"""Shapes that a judgement draws at the numbers of the version's source, by device. Chosen to bound its time: on a
GPU many kernels are compiled anew for each."""

GUIDED_ELEMENTS: Final = 1 << 23
"""Elements of all of them together, without the first one. Chosen to bound a judgement's time."""

GUIDED_ROOM: Final = 1 << 16
"""Elements of such a shape, if its size along the axis that it is about leaves them. Chosen to bound the time."""

GUIDED_BEYOND: Final = 64
"""Distance beyond a number up to which a size is drawn: a tile. Chosen."""

GUIDED_FACTORS: Final = (1.5, 3.0)
"""Least and largest factor of a size far beyond a number: a part that is left out is no rounding error. Chosen."""

CALL_SECONDS: Final = 3.0
"""Seconds that a call, and its reference in all orders, may take at a guided or a far shape, as a shorter call
says. Chosen: many numbers are no sizes, and some references loop over an axis in Python."""

CALL_PART: Final = 128
"""Factor by which that call is shorter. Chosen: a loop in Python takes little time."""

CALL_PARTS: Final[Mapping[str, tuple[int, ...]]] = {"cpu": (CALL_PART, 32, 8), "cuda": (CALL_PART,)}
"""The same, by device, where a shorter call says too little, or a version is slow there. Chosen: on a GPU many
kernels are compiled anew for each."""

CALL_GROWTH: Final = 16
"""Factor between the times of calls at two of these parts, at most. Derived: a quadratic kernel's."""

SLOW_PART_SECONDS: Final = 10.0
"""Seconds that a call at the next part may take by that factor. Chosen: well within the time of a message."""

COLLIDING_FACTORS: Final = (1, 31, 33, 37, 64, 100, 128, 256, 512, 1000, 1024)
"""Factors of one size in keys that are sums of two. From hash functions in use, powers of two, and of ten."""

COLLIDING_SIZES: Final = (1100, 1500)
"""Second size of shapes that share such keys. Chosen: above all factors, and short where work is quadratic."""

COLLIDING_SECONDS: Final[Mapping[str, float]] = {"cpu": 3.0, "cuda": 0.5}
"""Seconds after which no further one is called, by device. Chosen: some versions are compiled for each shape."""

MANY_SHAPES: Final = 300
"""Tiny shapes that are called one after the other. Chosen: more than eight bits count."""

MANY_SIZES: Final = 4096
"""Tiny shapes that there are, about, from which those are drawn. Chosen: calls of 0.002 s on a CPU."""

LIVE_TENSORS: Final = 4
"""Tensors as large as its largest that a reference holds at once. Chosen: terms, products and sums."""

MEMORY_SHARE: Final = 0.5
"""Share of the machine's free memory that they may take. Chosen: workers and inputs take the rest."""

CALL_START: Final = 0.01
"""Seconds of that call that do not grow with its size. Chosen: what handing over and a hundred operators take."""

GUIDED_NUMBERS: Final = 6
"""Calls of a judgement in which a number of the call is one of the version's source. Chosen."""

PLANTED_SHARES: Final = (0.5, 0.25)
"""Share of the draws and rows in which numbers of the source are planted alike, and of the elements where not one
element a row is such a number. Chosen."""

SCALAR_STEP: Final = 2.0**-20
"""Distance of the neighbours of a number of the call from it, relative to it. Chosen: it survives float32."""

LARGEST_NUMBER: Final = 2.0**40
"""Largest number of a call that is drawn from the version's source where it may be any. Chosen."""

LARGE_FACTOR: Final = 50
"""Standard deviation of the distribution `large`. Chosen: exponentials of it overflow without a shift."""

TINY_FACTOR: Final = 1e-3
"""Standard deviation of the distribution `tiny`. Chosen."""

WIDE_EXPONENT: Final = 56
"""Inputs of the distribution `wide` are scaled by a power of two from minus this to this. Chosen: squares fit."""

HUGE_SHARE: Final = 0.8
"""Share of the type's largest exponent that the distribution `huge` has. Chosen: sums do not overflow."""

FAINT_SHARE: Final = 0.7
"""Share of the type's least exponent that the distribution `faint` has. Chosen: squares underflow, and values do
not."""

LOWEST_ROWS: Final = 0.25
"""Share of the rows of the distribution `lowest` that hold nothing but the lowest finite number. Chosen."""

NONFINITE_ROWS: Final = 0.5
"""Share of the rows with NaN or infinities where an input has them. Chosen."""

LONGEST_STEP: Final = 16
"""Largest step of the progressions of integers that are drawn. Chosen."""

SEQUENCES: Final = 5
"""Binary logarithm of the sequences, all alike, that integers consist of at most. Chosen: a batch of prompts."""

NARROW_BITS: Final = (3, 7, 8, 15, 16)
"""Bits of small integers beside any others, as in half a byte, a byte and two, with a sign and without."""

NEAR_INTEGERS: Final = 8
"""Binary logarithm of the distance of integers that are near each other, at most. Chosen: ids of
one millisecond; from 2^61 on a float64 takes them for one."""

RUN_INTEGERS: Final = 6
"""Binary logarithm of the length of runs of equal integers, at most. Chosen: a warp, and more."""

RELATED_FACTORS: Final = (-1.0, 0.5)
"""Factors of an input that is a multiple of another one. Chosen: both are exact, and no value leaves its type."""

ALIASED_SHARE: Final = 0.25
"""Share of the drawn shapes at which an input is a view of the beginning of another one. Chosen to bound the
time; where two inputs have the same shape, they are one tensor at each."""

OVERLAPPED_SHARE: Final = 0.25
"""Share of the calls with one tensor as several inputs in which the second one begins further on in the memory of
the first one instead, by an element or a row. Chosen: neighbors in time are passed so."""

SHIFT: Final = 3
"""Mean of the distribution `shifted`, in standard deviations. Chosen."""

FAR_SHIFT: Final = 256
"""The same of the distribution `far`. Chosen: a variance from a mean of squares loses 16 bits."""

LOWERED_SHIFT: Final = 200
"""The distribution `lowered` has this mean, negated, in half of its draws, and an eighth to a half of it in the
others. Chosen: exponentials underflow without a shift; some that do not vanish beside a guard such as 1e-9."""

END_BLOCKS: Final = 6
"""Binary logarithm of the number of blocks of a row whose ends alone are not zero in `one_hot`, at most. Chosen:
one of 64 terms is no rounding."""

ZERO_ROWS: Final = 0.125
"""Share of the rows of the distribution `sparse` that are zero throughout. Chosen: padding and pruned rows are."""

MASK_RUN: Final = 256
"""Neighboring rows of the distribution `masked_rows` that share a mask, where it is not one row's own. Chosen: a
run holds a whole tile of up to 128 rows."""

PADDED_SHIFT: Final = 2.0**30
"""Rows of the distribution `padded_rows` that a finite mask hides have this mean, negated, or the lowest number of
their type. Chosen: programs add masks of -1e9."""

SCALED_ROW_EXPONENT: Final = 6
"""Rows of the distribution `scaled_rows` are scaled by powers of two from minus this up to below it. Chosen."""

HEAVY_END: Final = 7
"""Last slices of an axis, at most, that the distribution `heavy_end` makes larger. Chosen: less than a tile."""

HEAVY_FACTOR: Final = 64
"""Factor of those values. Chosen."""

PART_PERIODS: Final = 0.25
"""Share of the slices of the distribution `periodic` whose period is a half or a quarter of the axis. Chosen: most
lanes are powers of two."""

PLAIN_PAIRS: Final = 0.25
"""Share of the draws of the distribution `patterned` whose pairs are 1, and of `masked_pairs` whose pairs are no
zeros. Chosen: weights of a pattern differ, and additive masks are exact."""

PAIR_CALLS: Final = 3
"""Calls with each pattern of pairs where an input has as many rows as columns. Chosen: few shapes have, and a
pattern that is nearly causal is one of many."""

PAIR_ELEMENTS: Final = 1 << 18
"""Elements of such a call, at most. Chosen to bound the time."""

NEGATED_SHARE: Final = 0.25
"""Share of the elements of an input near its mean that change their sign in `other_signs`. Chosen."""

CLEARED_SHARE: Final = 0.125
"""Share of them that are zero there. Chosen: pruned weights are."""

OTHER_SCALES: Final = (1.0, 1.0, 0.25, 4.0)
"""Factors of such an input, by chance. Chosen: training moves weights so far."""

RUN_VALUES: Final = 6
"""Binary logarithm of the length of runs of equal values in the distribution `runs`, at most. Chosen: a warp, and
more."""

LARGEST_POSITIONS: Final = (1 << 12, 1 << 20)
"""Integers without a declared range are below one of these, by chance, beside floating-point numbers. Chosen:
tokens of a sequence, which many references can still compute with, and of the longest."""

SENTINEL_SHARE: Final = 0.125
"""Share of the integers of an input that are a number of the call which it may hold by a promise. Chosen."""

SENTINEL_ELEMENTS: Final = 16
"""Elements that such an input needs. Chosen: a mean over nothing else is none."""

EXCEPTIONS: Final = 3
"""Elements of a row, at most, that are exceptions to its order or mask. Chosen: who looks at a sample misses
them."""

TREND_SHARE: Final = 0.25
"""Share of the draws of the distribution `sorted` that have noise. Chosen: series rise so."""

TREND_NOISE: Final = 2.0**-5
"""Standard deviation of that noise. Chosen: a sample of a row is sorted, and its neighbors are not."""

SPARSE_SHARE: Final = 0.05
"""Share of the values that the distribution `sparse` keeps. Chosen."""

HOLES_SHARE: Final = 0.2
"""Share of zeros in the distribution `ones`. Chosen."""

NEAR_TIE_ULPS: Final = 4
"""Largest distance of a value of a `near_tie` row from the common value, in units in the last place. Chosen."""

QUICK_DRAW_VALUES: Final = 1_000_003
"""Values that a quick draw on a CPU draws at a time: they fit a cache. Chosen."""

PADDINGS: Final = (5, 64)
"""Elements between the rows of a padded tensor, by chance: an odd number, so that rows start at every alignment;
or what a slice of a wider tensor leaves."""

GAP_ELEMENTS: Final = 1 << 20
"""Elements of a tensor above which a transposed or expanded one has no gaps. Chosen: each byte of a gap is
checked."""

SHIFT_BYTES: Final = 64
"""Bytes below which a tensor of any layout begins after an aligned address: by an odd multiple of one, two, four
or more elements, each as often. From the widest vectors of a CPU: slices keep a part of their alignment."""

EXPANDED_ALONE_SHARE: Final = 0.375
"""Share of the expanded tensors of which a single axis is expanded, however many there are. Chosen: kernels often
take for granted that no more are."""

SLICE_STEPS: Final = (2, 3, 4)
"""Steps between the elements of a sliced tensor along its last axis, by chance: queries and keys, or those and
values, in one tensor; and a channel of four."""

BEGIN_STEPS: Final[Mapping[str, int]] = {"cpu": 64, "cuda": 512}
"""Multiples of bytes at which the first tensor of a call begins in its page, by chance and by device. From
PyTorch's allocators: a tensor seldom begins with a page, and timed ones must not be known by that."""

GUARD_BYTES: Final = 4096
"""Length of the guard band around every tensor in shared memory: one page."""

PLACED_ROWS: Final = 5
"""Rows that are called again in other batches where a definition is batch invariant. Chosen."""

BATCH_LENGTHS: Final = (2, 3, 4, 8, 16)
"""Lengths of batches that serving has, and that such rows are always placed in. Chosen."""

BATCH_TRIES: Final = 3
"""Other batches of random length that such rows are placed in, besides one of a single row. Chosen."""

BATCH_TEAMS: Final = (0, 16, 96)
"""Numbers of OpenMP threads of which the calls of such rows have one, the same in all batches; 0 is the usual one.
Chosen: machines of many cores, where a kernel may split a row that few others stand beside."""

LONGEST_BATCH: Final = 1 << 13
"""Length of the longest batch that such rows are placed in, where callers may choose it. Chosen: other kernels for
large batches begin at hundreds of rows."""

BATCH_ELEMENTS: Final = 1 << 19
"""Elements of a call with a batch that is longer than the workload, at most. Chosen to bound the time."""

BATCH_NUMBERS: Final = 3
"""Such batches with a length at a number of the version's source. Chosen to bound the time."""

VIEWED_AXES: Final = 4
"""Axes that are halved or doubled for calls on the same elements in another shape. Chosen: few have more."""

VIEW_TRIES: Final = 4
"""Such shapes of a workload that are tried until the reference holds at one. Chosen to bound the time."""

MIXED_SIZES: Final = 4
"""Sizes of a crowd whose threads each call at their own, the largest there are. Chosen: long calls meet more."""

OTHER_VALUES_SHARE: Final = 0.5
"""Share of the repeated calls, and of the rows that are placed in other batches, whose values have an adversarial
distribution where the reference holds. Chosen: what goes by values must go by these too."""

LARGEST_NEIGHBOR: Final = 0.25
"""Share of the batches in which another row than those that are compared holds the largest numbers. Chosen."""

COPIED_NEIGHBORS: Final = 0.5
"""Share of the batches in which rows beside those that are compared are copies of them. Chosen: requests
repeat."""

COPIED_PARTS: Final = 0.5
"""Share of these in which only a first part of an axis is copied. Chosen: requests share prompts."""

FIRST_CALLS: Final = (4, 8)
"""Sizes whose first call comes again after all larger ones: the first so many, and others by chance until there
are so many. Chosen: the first ones come before a version can have seen much."""

FIRST_CALL_SHARE: Final = 0.5
"""Share of those others that are taken. Chosen: no version can know which."""

FIRST_CALL_ELEMENTS: Final = (1 << 6, 1 << 18)
"""Elements of such a call, at least and at most. Chosen: few bits tell little, and many take memory."""

LATE_DISTRIBUTIONS: Final = 2
"""Adversarial distributions, besides rows that mix them, that follow many calls on the same normal inputs. Chosen:
what a version takes from those calls, it has taken by then."""

DRIFT_CALLS: Final = 60
"""Calls while a weight drifts, each after a step in the same direction; the last one is graded. Chosen: together
the steps are far more than rounding, in little time."""

DRIFT_STEPS: Final = (16, 20)
"""Negative binary logarithms, least and most, of the share of its size by which a weight moves in such a step, as
far as its type shows it. Chosen: below `gate_rules.NEAR_EDITS`, as the steps of a small learning rate are."""
