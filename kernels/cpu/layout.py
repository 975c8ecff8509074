"""The integers that the program's recorder and its interpreter agree on."""

from __future__ import annotations

from enum import IntEnum


class Meet(IntEnum):
    """When the threads wait for each other after an instruction."""

    NEVER = 0
    ALWAYS = 1
    ROWS = 2
    """Unless the step has one row: then each thread has computed it for itself."""
    COPIES = 3
    """Always, and each thread has computed a single row for itself."""
    SPLIT = 4
    """If several threads share one row's attention."""


class Attention(IntEnum):
    """The operands of `attention.place`, `attend` and `finish` of one layer, in an array of their own.

    Addresses, sizes in bytes, and kernels; `ROWS` rows are the capacity of `QUERIES` (kv head, row, head of
    the group, dim).
    """

    QKV = 0
    QKV_STRIDE = 1
    HEADS = 2
    KV_HEADS = 3
    DIM = 4
    Q_NORM = 5
    K_NORM = 6
    EPS = 7
    NORMALISE = 8
    ROTATE = 9
    ANGLES = 10
    ANGLES_STRIDE = 11
    QUERIES = 12
    SCALE = 13
    PUT_KEY = 14
    PUT_VALUE = 15
    KEYS = 16
    VALUES = 17
    NUMBER_BYTES = 18
    ROWS = 19
    PRODUCTS = 20
    SOFTMAX = 21
    ACCUMULATE = 22
    MERGE = 23
    PARTS = 24
    SLOTS = 25
    DIVIDE = 26
    OUT = 27
    OUT_STRIDE = 28
    CODE = 29
    CODED = 30
    CODED_STRIDE = 31
    GATE = 32
    """Kernel for the gates that follow each head of q; 0 if there are none."""
    CAUSAL = 33
    WINDOW = 34
    """Tokens that a row sees at most, or 0."""
    WINDOW_PER_ROW = 35
    CHUNK = 36
    """Address of `attention.chunk`, which is too long to be compiled into each of its callers."""


class Delta(IntEnum):
    """The operands of `delta.delta` of one layer, in an array of their own.

    `STATES` and `TAILS` are the layer's slots of `STATE_BYTES` (v-head, key dim, value dim) and `TAIL_BYTES`
    (tap, column), float32.
    """

    MIXED = 0
    MIXED_STRIDE = 1
    K_HEADS = 2
    V_HEADS = 3
    DIM = 4
    TAPS = 5
    CONVOLUTION = 6
    PANEL_STRIDE = 7
    DT_BIAS = 8
    A = 9
    NORM = 10
    EPS = 11
    SCALE = 12
    STATES = 13
    STATE_BYTES = 14
    TAILS = 15
    TAIL_BYTES = 16
    CONVOLVE = 17
    UNIT = 18
    GATES = 19
    RECUR = 20
    NORMALISE = 21
    SWIGLU = 22
    OUT = 23
    OUT_STRIDE = 24
    CODED = 25
    CODED_STRIDE = 26
    RECORD_BYTES = 27
    GATES_AT = 28
    """Column of alpha in a row of `MIXED`; beta follows."""
    LOG = 29
    LOG_STRIDE = 30
    """Where q|k|v|alpha|beta of tried rows are kept."""
    STATES_AT = 31
    """Where in the scratch memory the states of tried rows begin."""


class Experts(IntEnum):
    """The operands of the operations in `experts` of one layer, in an array of their own.

    `GATE`, `UP` and `DOWN` begin seven operands each, see `Stack`. `CHOSEN` is (row, slot) int32, `WEIGHTS`
    (row, slot + 1) float32 with the shared expert's last; `PAIRS` holds row * used + slot by expert, those
    of expert e from `STARTS`[e] to `STARTS`[e + 1]; `ACTIVE` the number of experts that have any, then them.
    """

    SCORES = 0
    SCORES_STRIDE = 1
    N = 2
    USED = 3
    CHOSEN = 4
    WEIGHTS = 5
    STARTS = 6
    PAIRS = 7
    ACTIVE = 8
    INNER = 9
    OUTPUTS = 10
    COLUMNS = 11
    """Blocks of 32 inner columns whose weights stay in the cache."""
    PRIVATE = 12
    SWIGLU = 13
    ACTIVATION = 14
    ACTIVATION_STRIDE = 15
    ACTIVATION_SLOT = 16
    CODED = 17
    CODED_STRIDE = 18
    CODED_SLOT = 19
    SHARED = 20
    SHARED_STRIDE = 21
    OUT = 22
    OUT_STRIDE = 23
    WEIGH = 24
    ADD = 25
    GATE = 26
    UP = 33
    DOWN = 40


class Stack(IntEnum):
    """The operands of a stack of matrices: product kernels, rows, and the bytes from expert to expert."""

    KERNELS = 0
    X = 1
    X_STRIDE = 2
    W = 3
    PANEL_STRIDE = 4
    K = 5
    EXPERT_BYTES = 6


WIDTH = 20
"""Integers of an instruction: its operation's address, barrier flag, then operands."""


class Head(IntEnum):
    """Places in the header, in integers; what threads write lies 64 bytes apart."""

    EPOCH = 0
    ARRIVED = 8
    STOP = 16
    THREADS = 17
    PROGRAM = 18
    BEGIN = 19
    END = 20
    BASE = 21
    YIELD = 22
    M = 23
    R = 24
    TOKENS = 25
    POSITIONS = 26
    SEQUENCE = 27
    TABLE = 28
    TABLE_STRIDE = 29
    LOGIT_ROWS = 30
    LOGITS = 31
    LOGITS_STRIDE = 32
    SPANS = 33
    N_SPANS = 34
    SCRATCH = 35
    SCRATCH_STRIDE = 36
    L2 = 37
    N_VOCAB = 38
    N_SEQUENCES = 39
    N_PAGES = 40
    SPLIT = 41
    COUNTERS = 42
    SLOTS = 43
    PLACES = 44
    """Of each row (int32): where its key and value lie."""
    BASES = 45
    """Of each row: the place of its sequence's first row in the step."""
    ENDS = 46
    """Of each row: the place after its sequence's last row in the step."""
    PARENTS = 47
    """Of each row: the row before it in its text; 0 if that is always the one before."""
    GOES_ON = 48
    """Of each row, where there are parents: whether it may move on its parent's state in place."""
    LOGS = 49
    """Of each sequence: the first row of its log, -1 if it is not tried; 0 if none is."""
    ASLEEP = 56


ASLEEP_STEP = 8
"""Integers between the places of two workers: asleep (0, 1), and whether it must be woken."""

MOST_TRIED = 32
"""Most tried rows of a sequence."""

SPAN_ROWS = 8
"""Most rows of one sequence whose attention is computed together."""

SPLIT_ROWS = 4
"""Steps of up to so many rows share out the chunks of one row's attention, if it has several."""

GATED_ROWS = 32
"""Rows whose gates and ups are held at once."""

AHEAD = 4096
"""How far ahead weights are fetched into the cache, in bytes."""

SHARED_ROWS = 16
"""From so many rows on, threads take pieces of work when they are free instead of fixed shares."""
