"""Rules of the gate: every number that can change a verdict, with its unit, its reason and where it was measured.

A change of a value or a name changes what a verdict means, so it comes with a higher `GATE_VERSION`. A test
compares a fingerprint of this module and of `lab/operator/input_rules` with the version. Prose may change freely.

"Chosen" in a docstring means that the value is a judgement call: no measurement is known that derives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Correctness: the bound of an element.

ROUNDING_STEPS: Final = 16
"""Rounding steps in the accumulation type that any implementation may take in addition to its reduction. Chosen: a
few operations of a kernel before and after the reduction."""

REDUCTION_STEP_SHARE: Final = 0.5
"""Rounding steps per unit of the growth of a reduction of length `n`: `sqrt(n)` for random values, whose errors
mostly cancel, and `n` for correlated ones. From error analysis: half a unit in the last place per addition."""

DEFAULT_SLACK: Final = 2.0
"""Factor over the bound of an element where a definition gives none. The reference in its own precision must stay
within the bound at every judgement, which calibrates it."""

SUBNORMALS: Final = (1, 4)
"""Absolute slack of an element of an 8-bit or a wider type, in smallest subnormals. Chosen: four of an
8-bit type would be half of its smallest normal number."""

ZERO_SLACK: Final = 2.0**-52
"""Slack of an element whose float64 reference is zero, as a share of the largest input. Terms that cancel to zero
in float64, such as those of `1 + erf(x)`, leave that much. Derived: the spacing of float64 at one."""

MISMATCH_BOUNDS: Final = (4.0, 16.0)
"""Bounds that an allowed mismatch of an 8-bit or a wider type may be off by. Chosen: a code or two."""

MISMATCH_SLICE: Final = (32, 0.25)
"""Elements that a slice along an axis needs, and the share of them that may be mismatches. Chosen: rounding
spreads the mismatches that a definition allows; what leaves a column out does not."""

TRUNCATION_ULPS: Final = 0.12
"""Mean error toward zero, in units in the last place, of truncated results. Chosen: half of them give twice it."""

TRUNCATION_ROWS: Final = 16
"""Rows at least whose errors are compared. Chosen: rounded factors of rows move half of them the other way."""

TRUNCATION_VALUES: Final = 64
"""Results of a row at least that count there. Chosen: their mean error scatters by 0.04 of a unit."""

TRUNCATION_PIECE: Final = 256
"""Results of a piece of an output with too few or too short rows. Chosen."""

NORM_SHARE: Final = 0.75
"""Norm-wise bound, as a share of the norm of the bounds of the elements.

Rounding comes near a bound at only a few elements at once, and at the usual slack of 2 the error analysis itself
fills half of one. Measured over seven operators, three types, sizes up to 50,257 and every distribution: other
orders of summation filled at most 0.52 of it, and naive serial float32 sums 0.63. A few elements may be unlucky
together, so a single element may use all of its bound.
"""

CANCELLING_STEPS: Final = 256
"""Rounding steps that the norm-wise bound allows at least where terms cancel, relative to the size of a sum of
random terms. Shares of the bound in products of length 64 to 65,536: float32 sums in order at most 0.07, three
products of bfloat16 parts at most 0.7, factors of TF32 at least 1.3 (measured)."""

LARGE_RESULT: Final = 2.0**64
"""Magnitude above which a finite result of inputs that hold the lowest number of their type is not graded. Chosen:
other results are seldom so large."""

NEAR_MISS_BOUNDS: Final = 2.0
"""Errors up to this many bounds may be rounding where one large element rules a row: the error of the row is then
one draw, not a mean. Measured on a serial float32 softmax over 8192 columns with such a row: 41 of 4973 draws
missed the bound, the worst by a factor of 1.5."""

CHOICE_SHIFT: Final = 2.0**-20
"""Share of an input by which rounding may seem to move it: 16 unit roundoffs of float32, about what a few steps of
a kernel add up to."""

CHOICE_MOVES: Final = 2
"""Random moves, each in both directions, under which the integers of a reference must stay the same. More than
one, because a choice may survive a single move by luck."""

REORDER_BLOCK: Final = 32
"""Elements of a block when the reference sums in blocks. Chosen: the width of a warp."""

REORDER_MAX_BLOCKS: Final = 1024
"""Longest chain of additions when the reference sums in blocks; longer sums get larger blocks. Each addition is a
launch on a GPU. Chosen to bound that time."""

LEAST_SCALAR: Final = 2.0**-20
"""Least number below 1 at which versions are judged, as a share of the declared one. Chosen: an epsilon of 1e-6
reaches 1e-12."""

LARGEST_SCALAR: Final = 16
"""Largest number from 1 on, as a multiple of the declared one, and the inverse of the least one. Chosen."""

COUNTED_SECONDS: Final = (0.5, 30.0)
"""Seconds of a call in the build that counts lines from which on its workload gets no further one, and of all its
calls together. Chosen: that build is tens of times as slow, and small calls run most lines."""

BURST_CALLS: Final = 4096
"""Calls of a burst at most. Chosen: more than tables or rings that a version can prepare."""

BURST_SECONDS: Final = 0.6
"""Seconds of a burst at most. Chosen: some hundred calls of a millisecond."""

BURST_PAIRS: Final = 5
"""Pairs of bursts, of both versions. Chosen: load does not slow the same side in all of them."""

BURST_SHARE: Final = 0.1
"""Part of a gain, in logarithms, that must be in one of the pairs. Chosen: page faults that both versions pay in
bursts leave an honest gain little of its size."""

BURST_NOISE: Final = 0.05
"""Noise of the best of these pairs, in logarithms. Chosen: a loss beyond it is none."""

NUMBERS_SHARE: Final = 0.5
"""Share of the graded calls whose new memory holds random numbers and no poison. Chosen: both are common."""

CALLER_STACK: Final = 512 << 10
"""Bytes of the stack of a thread that calls a version once on a CPU: macOS's for threads that a program starts."""

CALLER_REGION: Final = 3
"""Threads of a parallel region that such a call is made in, by one of them. Chosen: any may be the one."""

CALLER_TEAMS: Final = (3, 6, 16, 64, 260)
"""OpenMP threads that further such threads have. Chosen: no powers of two, cores of common machines, and more than
most tables have. On two cores a sum into shared parts was wrong in 1 of 16 regions of 16 threads, and in nearly
all of 64 (measured)."""

CALLER_LEVELS: Final = (4, 2)
"""OpenMP threads of one more, and how many levels of regions have so many. Chosen."""
CALLER_LIMIT: Final = (6, 5)
"""OpenMP threads that one more such thread has, and how many of them it may have at a time. Chosen: a part that is
neither all nor one, as a limit or a busy machine leaves it."""

PAGES_BYTES: Final = 64 << 20
"""Bytes of inputs up to which they are copied to pages of their own. Chosen to bound the memory."""

CALLER_SIGNALS: Final = 1e-4
"""Seconds between a timer's signals that arrive during a call. Chosen: most calls get some."""

CALLER_SECONDS: Final = 0.2
"""Seconds of cores that a call takes above which no larger team makes it. Chosen: a short region of a team that
has few cores takes tens of times as long."""

# Limits of a side.

MESSAGE_SECONDS: Final = 60.0
"""Wall time of one message to a side. Chosen: the first call also loads and compiles."""

MEMORY_DIVISOR: Final = 2
"""A side and its children may take the machine's memory divided by this. Chosen."""

MESSAGE_BYTES: Final = 1 << 20
"""Longest message that the grader accepts from a worker. Chosen."""

MESSAGE_STALL_SECONDS: Final = 10.0
"""Time that a worker may take to finish a message that it began. Chosen."""

STOP_SECONDS: Final = 20.0
"""Time that a process may take to stop. A core that others keep busy, or a page that is read from disk, may delay
it this long."""

MAX_PROCESSES: Final = 64
"""Processes that a worker may have started at a time. Chosen."""

LARGEST_FILE_BYTES: Final = 1 << 30
"""Largest file that a worker may write. Chosen."""

MAX_OPEN_FILES: Final = 4096
"""Files that a worker may have open. Chosen."""

MAX_THREADS: Final = 4096
"""Limit of a worker's user on processes and threads. Chosen: PyTorch and OpenMP start many threads."""

SHARED_MEMORY_BYTES: Final = 256 << 20
"""Size of the shared memory folder that a worker sees. Chosen."""

# Probes.

EDITS: Final = 3
"""Edits in place of each input. Chosen."""

DRAW_TRIES: Final = 4
"""Draws, for a definition that draws its own inputs, until no discrete choice depends on rounding; and tries of an
edit whose result is a near miss. Chosen: a near miss is one draw in a hundred, see `NEAR_MISS_BOUNDS`."""

EDIT_FACTOR: Final = 1.25
"""An edited element becomes this multiple of the largest magnitude, plus `EDIT_OFFSET`. Sums and maxima then
depend on it. Chosen."""

EDIT_OFFSET: Final = 1.0
"""Added to an edited element, so that it changes even where all values are zero."""

NEAR_EDITS: Final = (8, 14)
"""Negative binary logarithms, least and most, of the share of its size by which an edit moves each element.
Chosen: the steps of an optimizer, and those that a checksum in low precision does not see."""

EDITED_SIZES: Final = 3
"""Timed sizes, drawn for each judgement, at which an element is edited. Chosen: all sizes would take seconds."""

HELD_CALLS: Final = (256, 8192)
"""Range of the calls, drawn for each judgement, over which a result is held. Chosen: more than a ring has."""

HELD_SECONDS: Final = 0.3
"""Seconds after which no further call is made while a result is held. Chosen."""

OWN_SHARE: Final = 0.5
"""Share of the elements other than zero that may be right without own kernels. Chosen: beyond constants."""

TRAINING_STEPS: Final = 4
"""Steps of the training loop, with two calls each. Chosen."""

TIMED_TRAINING_STEPS: Final = 2
"""The same at a timed size, drawn for each judgement: the second step sees weights that changed in place."""

WEIGHT_UPDATE: Final = 0.1
"""Share of the update direction that a training step subtracts from a weight. Chosen: larger than any rounding."""

CHANGED_WEIGHTS: Final = (8, 64)
"""Different weights after which a weight cache must have stopped growing: more of small ones, so that their sum
exceeds `LEAK_BYTES` several times. Chosen."""

LIBRARY_SHARE: Final = 0.25
"""Share of a call's elements that PyTorch's operators may compute. Chosen: kernels prepare a few small tensors."""

LIBRARY_ELEMENTS: Final = 16
"""Elements that a call counts for at least there. Chosen: of fewer, the share says nothing."""

PROBE_ELEMENTS: Final = 1 << 20
"""Elements of the workload at which the probes run, where there is one that small. Chosen to bound their time."""

PROBE_OUTPUTS: Final = 256
"""Outputs of the workload of the probes, where there is one. Chosen: an edit of an empty input shows nothing."""

PROBE_ELEMENTS_INTERPRETED: Final = 1 << 13
"""The same for an interpreter, which is about a thousand times slower."""

TIMED_PROBE_ELEMENTS: Final[Mapping[str, int]] = {"cpu": 1 << 24, "cuda": 1 << 28}
"""The same for the probe that times repeated calls, by device. Chosen: a call must be long against the clock."""

EDITED_ELEMENTS: Final[Mapping[str, int]] = {"cpu": 1 << 24, "cuda": 1 << 26}
"""Elements of a timed size at which an element is edited, at most, by device. Chosen: its reference takes long."""

STORAGE_FACTOR: Final = 2
"""Multiple of its outputs' bytes that a returned tensor's memory may have. Chosen: outputs may share memory."""

STORAGE_BYTES: Final = 1 << 20
"""Bytes that the memory of a returned tensor may have beyond that multiple. Chosen."""

LEFT_THREADS: Final = 5
"""Threads that many calls may leave running. Chosen."""

THREADS_AFTER_TIMING: Final = (4, 32)
"""Threads of a timed version's process, at most: for each core, and besides. Chosen: OpenMP keeps some."""

LEFT_FILES: Final = 8
"""Files that many calls may leave open, and processes unreaped. Chosen: a library opens a few at first."""

IDLE_SECONDS: Final = 0.1
"""Seconds for which a version's process runs without a call after it was timed. Chosen."""

IDLE_SHARE: Final = 0.2
"""Share of that time which its threads may keep cores busy. Chosen."""

LEAK_BYTES: Final = 64 << 20
"""Memory that `CHANGED_WEIGHTS` calls may keep besides half of the weights. Chosen: allocators keep some."""

STEADY_GROWTH: Final = (1 << 20, 2, 0.5)
"""Bytes that many calls may keep; beyond that, the times that as many calls follow, and the share of the growth
that each of these may keep. Chosen: an allocator's growth ends, a leak's does not."""

LEFT_MAPPINGS: Final = 256
"""Mappings of memory that many calls may leave. Chosen: a process may have 65,530."""

# Probes: results that are kept, told by the time of a repeated call.

KEPT_SHARE: Final = 0.5
"""A repeated call that takes less than this share of a fresh one's time computed nothing. Chosen."""

COMPUTED_SHARE: Final = 0.8
"""From this share on, the fewest looks of `REPEAT_LOOKS` are enough. Chosen."""

REPEAT_LOOKS: Final = (2, 5, 20)
"""Looks to take: at least, at most where the share is `KEPT_SHARE` or more, and before a result counts as kept.
Measured: on a loaded machine five looks called a square that was computed from its inputs a cache, because the
calls on fresh inputs may all have been disturbed."""

REPEATED_SIZES: Final = 3
"""Timed sizes at which calls are repeated: the largest one that is quick enough, and drawn ones. Chosen."""

REPEAT_PAIRS: Final = 3
"""Pairs of calls, one fresh and one repeated, in a look. Chosen."""

REPEAT_CLOCK_TICK: Final = 1e-6
"""Seconds that a fresh call counts for at least, so that nothing is divided by zero."""

BUSY_CLOCK_SECONDS: Final = 2e-4
"""Seconds of a core from which on the process's own clock counts too. A hand-over alone keeps a core busy for up
to 0.1 ms (measured)."""

# Inputs that arrive late.

EARLY_START_CAPABILITY: Final = (9, 0)
"""First compute capability at which a kernel can start before the one ahead of it has ended. From CUDA's
documentation of programmatic dependent launch."""

LATE_NANOSECONDS: Final = 1_000_000
"""Time after which late inputs are written: longer than the host takes to launch the kernels of a call."""

LATE_BLOCKS: Final = 16
"""Blocks of the kernel that writes late inputs: few, so that most multiprocessors are free for what starts
early."""

LATE_THREADS: Final = 1024
"""Threads per block of that kernel: enough to copy 20 GB/s."""

# A gain under other conditions.

CONCURRENT_CALLS: Final = 4
"""Times that a version that gains is called from `CONCURRENT_THREADS` at once, on a CPU. Chosen."""

CONCURRENT_THREADS: Final = 3
"""Threads that call at once, each several times. Chosen: two workspaces are too few for three."""

CONCURRENT_REPEATS: Final = 20
"""Calls of each thread at a time, of which the last is graded. Chosen: short calls seldom meet otherwise."""

CONCURRENT_SIZES: Final = 3
"""Further sizes, drawn for each judgement, at which they call. Chosen: buffers may be used at some sizes only."""

CONCURRENT_ELEMENTS: Final = 1 << 22
"""Elements of such a size, at most. Chosen to bound the time."""

CROWD: Final = 24
"""Threads that call at once at one small size. Chosen: workspaces in turn are seldom more than 16."""

CROWD_ELEMENTS: Final = (1 << 10, 1 << 17)
"""Least and largest number of elements of that size, where there is one. Chosen: calls must meet, in little
time."""

CONDITION_CALLS: Final = 3
"""Calls of a version that gains in a process whose environment names benchmarks, and for the last of them a
launcher alone, on one busy core. Chosen."""

UNSEEN_ROUNDS: Final = 6
"""Rounds for which a version that gains is timed against the best one at a shape of each class. Chosen: they
decide nothing."""

UNSEEN_LOSS: Final = 0.5
"""Speedup over the best version at an unseen shape below which a version is rolled back, shown twice. Chosen: a
version made for the declared shapes, not noise."""

UNSEEN_ELEMENTS: Final[Mapping[str, int]] = {"cpu": 1 << 22, "cuda": 1 << 28}
"""Elements of such a shape, at most, by device. Chosen to bound the time."""

# Timing: blocks of calls.

CPU_FLUSH_BYTES: Final = 96 << 20
"""Memory that the grader writes before each call on a CPU: more than the caches hold on the machines that the lab
was built on."""

L2_BYTES: Final = 64 << 20
"""L2 cache that a block on a GPU must exceed twofold to count as cold: above the 50 MB of an H100 or H200."""

BLOCK_SECONDS: Final = 2e-3
"""Length that a block of calls on a GPU aims at: long against the hand-over to the worker."""

BLOCK_MEMORY_DIVISOR: Final = 32
"""A block may take the GPU's memory divided by this. Chosen."""

ASSUMED_BANDWIDTH: Final = 3e12
"""Bytes per second by which the length of a call is guessed when the calls of a block are counted: about an
H100."""

ASSUMED_LAUNCH_SECONDS: Final = 2e-6
"""Launch time in that guess: about what a node of a CUDA graph costs."""

MIN_SLOTS: Final = 4
"""Calls that a block on a GPU aims at, at least. Chosen."""

MAX_SLOTS: Final = 256
"""Calls of a block at most. Chosen."""

# Timing: rounds.

WARM_UP_ROUNDS: Final = 3
"""Rounds before the first that counts. Chosen."""

MIN_ROUNDS: Final[Mapping[str, int]] = {"cpu": 10, "cuda": 8}
"""Rounds per workload at least, by device. Chosen: a round on a GPU is a block of several calls."""

MAX_ROUNDS: Final[Mapping[str, int]] = {"cpu": 40, "cuda": 40}
"""Rounds per workload at most, by device. Chosen."""

TIMING_SECONDS: Final[Mapping[str, float]] = {"cpu": 0.5, "cuda": 0.2}
"""Seconds after which no round beyond the least is started, by device. Chosen: a judgement on an H200 stays under
8 s."""

INTERVAL_WIDTH: Final[Mapping[str, float]] = {"cpu": 0.005, "cuda": 0.002}
"""Rounds stop early where half of the speedup's 95 % interval is no wider than this share, by device. Chosen."""

GRADED_ELEMENTS: Final = 1 << 20
"""Elements of an input above which only a share of the timed rounds on a CPU is graded: grading a larger output
costs far more than the call."""

GRADED_SHARE: Final = 1 / 3
"""That share. Chosen; the rounds are drawn at random."""

SINGLE_CALL_FACTOR: Final = 3.0
"""A block of a single call may take this multiple of a call among many, plus `SINGLE_CALL_SECONDS`; beyond that,
one call does the work of others. Chosen."""

SINGLE_CALL_SECONDS: Final = 50e-6
"""Seconds that a block of a single call may take in addition. Chosen."""

SINGLE_CALL_RETRIES: Final = 11
"""Further blocks of a single call that are timed until one is short enough: a busy host delays single calls.
Chosen."""

SLOW_CLOCK_SHARE: Final = 0.9
"""Rounds in which the GPU's clock was below this share of its median are left out. Chosen."""

# Timing: a GPU that is not idle.

IDLE_COPY_SHARE: Final = 0.8
"""A copy that reaches less than this share of the measured rate, `IDLE_COPY_TRIES` times in a row, was not alone
on the GPU, or the GPU is throttled. Chosen."""

IDLE_COPY_TRIES: Final = 3
"""Tries of that copy. Chosen."""

IDLE_COPY_BYTES: Final = 1 << 30
"""Bytes of that copy: far beyond every L2 cache."""

ANSWER_SHARE: Final = 0.9
"""A call on a CPU that takes less than this share of an empty message to the reference's process is answered by
something else than the worker. Chosen: hand-overs of processes differ by a few percent."""

ANSWER_LOOKS: Final = 9
"""Empty messages of which the fastest counts, since load only lengthens them. Chosen."""

# Timing: the events of the worker against the grader's clock.

CLOCK_SHARE: Final = 0.02
"""Share of a block by which the two clocks may differ. Chosen."""

HAND_OVER_SECONDS: Final = 30e-6
"""Seconds by which the hand-over of a block varies. Chosen; on one busy host a process that waits longer answered
0.3 to 0.4 ms later (measured)."""

CLOCKS_DISAGREE: Final = 1.5
"""Multiple of the events' seconds above which the grader's clock is a finding, if each block of a side shows it.
Chosen."""

LAUNCH_SECONDS: Final = 1.5e-6
"""Cost of one more launch per call for the host, where calls are launched one by one. Chosen."""

NEAREST_BLOCKS: Final = 3
"""Least disturbed blocks whose distance tells how uncertain the hand-over is. Chosen."""

DISTANCE_FACTOR: Final = 2
"""The clocks may differ by this multiple of that distance. Chosen."""

NARROW_SHARE: Final = 0.1
"""Single blocks are conclusive where the distance is no more than this share of a block; else the captured block
is replayed. Chosen."""

CLOCK_RUNS: Final = 48
"""Blocks, and replays, that are run at most until one shows that nothing is hidden: a disturbance passes, hidden
work does not. Chosen."""

REPLAY_SECONDS: Final = 0.03
"""Length of a replay. Chosen: 2 % of it leave room for a process that answers 0.4 ms late,
see `HAND_OVER_SECONDS`."""

LATE_ANSWER_SHARE: Final = 1 / 3
"""Share of a block by which a process may always answer later than the reference's, because of where it runs.
Chosen."""

# Statistics.

RESAMPLES: Final = 2000
"""Resamples of a bootstrap interval. Chosen."""

CONFIDENCE: Final = 0.95
"""Confidence of every interval. Convention."""

CAMPAIGN_FALSE_WINS: Final = 0.05
"""Largest chance that a campaign, however long, accepts a version that gains nothing. Judgement `n` may spend
`6 / (pi * n)**2` of it, which sums to all of it. This is alpha spending: judgements are few, and each compares
with another best version, so that e-values over paired ratios would need a model of their noise. How many variants
were tried does not count, because a judgement's times are its own."""

TWIN_FLOORS: Final = 3.0
"""Noise floors by which the best version may differ from its own second process while a gain is confirmed; beyond
them the floor does not describe the machine of today, or the version is fast only now and then. Chosen: one of
twenty differences lies beyond one floor, and hardly any beyond three."""

MIN_FLOOR: Final = 0.002
"""Least noise floor: the few comparisons behind a floor cannot show a smaller one."""

FALLBACK_FLOOR: Final = 0.02
"""Noise floor where none was measured on the machine. Chosen."""

NOISE_COMPARISONS: Final = 6
"""A/A comparisons behind a noise floor. Chosen: each takes as long as the timing of a judgement."""

CANARY_RATIO: Final = 1.3
"""Least time on a GPU of a side that does its work twice, as a multiple of the other's. Chosen; 3.6 on an H200."""

NOISE_SIZES: Final[Mapping[str, tuple[str, ...]]] = {
    "cpu": ("256x1024", "2048x1024", "4096x1024"),
    "cuda": ("256x1024", "2048x1024", "4096x4096"),
}
"""Workloads of the A/A comparison by device: a small, a middle and a large one. A GPU's large one is beyond its
caches. A CPU's caches are written over before each call, and grading anything larger would take most of the
time."""

# Energy.

ENERGY_LEAD_SECONDS: Final = 0.3
"""Seconds of calls before the counter is read. Chosen: clocks and power have settled by then."""

ENERGY_WINDOW_SECONDS: Final = 1.0
"""Seconds for which the counter is read: tens of its steps, which are tens of milliseconds long."""

ENERGY_MARGIN_SECONDS: Final = 0.3
"""Seconds of calls after the window. Chosen."""

ENERGY_PAIRS: Final = 6
"""Readings of each side in a batch: even, because the best version's readings are compared two by two."""

ENERGY_MIN_STEPS: Final = 4
"""Steps of the counter that a reading needs. Chosen."""

ENERGY_TIME_SHARE: Final = 0.8
"""Replays that take less than this share of the timed blocks' time are implausible. Chosen: the board may hold
other clocks than in the short timed blocks."""

ENERGY_TIME_SHARE_WARM: Final = 0.5
"""The same where the timed blocks fit the L2 cache. Chosen."""

# Plausibility.

BANDWIDTH_MARGIN: Final = 1.1
"""A bandwidth up to this multiple of the fastest measured repetition counts as possible. Chosen: a measured
bandwidth is no physical limit."""

# Sanitizers.

SANITIZED_ELEMENTS: Final = 1 << 22
"""Elements of a workload that the sanitizers run, where there is one that small: the tools slow kernels by ten to
hundreds of times."""

SANITIZED_CALLS: Final = 2
"""Calls per workload under a sanitizer: the first compiles, the second finds what the first left behind."""

SANITIZER_PADDING_BYTES: Final = 4096
"""Memory after each buffer under memcheck. Without it, a write past one buffer may land in the next one, where it
is allowed."""

# Decision. A campaign may set the first three.

REGRESSION: Final = 0.05
"""A workload that is slower by this share or more rolls the version back. Chosen."""

SMALL_GAIN: Final = 0.02
"""A gain below it is timed again. Chosen: small gains are where chance decides."""

INCUMBENT_SLOWDOWN: Final = 1.3
"""Time of the best version over the reference's, as a multiple of what it was when the version was accepted on
this machine, beyond which nothing is compared with it. Chosen: both move together with the machine."""

RETIMING_AFTER: Final = 2
"""INVALID judgements of a round by `INCUMBENT_SLOWDOWN` after which the best version is timed again. Chosen: load
passes, a record that load spoilt does not."""

RETIMED_SECONDS: Final = 1.1
"""Seconds of the best version when it is timed again, as a multiple of those when it was accepted, up to which its
new time beside the reference may take the place of the old one, and from which on that time differs from it. Load
only lengthens times, so an honest version takes no longer on an idle machine than when it was accepted. Chosen:
the rest is for noise between sessions."""

MAX_REPEATS: Final = 3
"""Repetitions of the timing before a small or unclear gain counts as ambiguous. Chosen."""

SURE_LOSS_FLOORS: Final = 3
"""A loss beyond this many noise floors needs no confirmation. The floor is that of a mean over three workloads.
With normal noise the slowest of the three lies within two floors in 95 of 100 comparisons, and beyond three in one
of 1000."""

UNLIKE_GAIN_DIVISOR: Final = 3
"""Two looks at a gain are unlike if they differ by more than the floor and by more than the smaller gain divided
by this. Measured: on a virtual machine of two cores two looks at the same parallel kernel showed a gain, one of
them twice the other."""
