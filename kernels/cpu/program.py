"""Runs a recorded program: a list of instructions that several threads walk together.

Everything is an address or a count in 64-bit integers, so the program holds for every step: what changes
from step to step is in the header and in the arrays that it points to. Threads take fixed shares of each
instruction, or pieces of large ones, and meet at a barrier after it; no result depends on the shares.
An instruction begins with the address of its operation, so only operations that a model has are compiled.
"""

from __future__ import annotations

from kernels.cpu.attention import page_of
from kernels.cpu.layout import ASLEEP_STEP, SPAN_ROWS, SPLIT_ROWS, WIDTH, Head, Meet
from kernels.cpu.machine import (
    atomic_add,
    atomic_load,
    atomic_swap,
    call,
    clear,
    compiled,
    field,
    load32,
    load64,
    pause,
    store64,
)
from kernels.cpu.rowwise import CHUNK, PAGE

# ---- waiting -----------------------------------------------------------------------------------


@compiled
def _wait(header: int, place: int, target: int) -> None:
    """Until header[place] reaches `target`: some turns at once, then giving the processor away."""
    turns = 0
    while atomic_load(header + 8 * place) < target:
        turns += 1
        pause()
        if turns > 256 and turns % 16 == 0:
            call(field(header, Head.YIELD), ())


@compiled
def _meet(header: int, meetings: int) -> int:
    """All threads arrive here before any goes on; returns the number of meetings so far."""
    meetings += 1
    atomic_add(header + 8 * Head.ARRIVED, 1)
    threads = field(header, Head.THREADS)
    _wait(header, Head.ARRIVED, field(header, Head.BASE) + meetings * threads)
    return meetings


# ---- the walk ----------------------------------------------------------------------------------


@compiled
def _execute(header: int, tid: int) -> None:
    """This thread's share of the instructions [begin, end)."""
    program = field(header, Head.PROGRAM)
    scratch = field(header, Head.SCRATCH) + tid * field(header, Head.SCRATCH_STRIDE)
    one_row, split = field(header, Head.M) == 1, field(header, Head.SPLIT)
    meetings = 0
    for i in range(field(header, Head.BEGIN), field(header, Head.END)):
        at = program + 8 * WIDTH * i
        meet = load64(at + 8)
        call(load64(at), (header, at + 16, i, tid, scratch))
        if (one_row and meet == Meet.ROWS) or (not split and meet == Meet.SPLIT):
            continue
        if meet:
            meetings = _meet(header, meetings)
    _meet(header, meetings)


@compiled
def _find_spans(header: int) -> bool:
    """Cut the step's rows into spans of one sequence; False if a number is out of its range."""
    n_rows = field(header, Head.M)
    spans = field(header, Head.SPANS)
    tokens = field(header, Head.TOKENS)
    sequences, positions = field(header, Head.SEQUENCE), field(header, Head.POSITIONS)
    places = field(header, Head.PLACES)
    capacity = PAGE * field(header, Head.TABLE_STRIDE)
    count, longest = 0, 0
    m = 0
    while m < n_rows:
        n, last, furthest = 0, 0, 0
        sequence = load32(sequences + 4 * m)
        if not 0 <= sequence < field(header, Head.N_SEQUENCES):
            return False
        while m + n < n_rows and n < SPAN_ROWS and load32(sequences + 4 * (m + n)) == sequence:
            position, token = load32(positions + 4 * (m + n)), load32(tokens + 4 * (m + n))
            place = load32(places + 4 * (m + n))
            if not (0 <= position <= place < capacity and 0 <= token < field(header, Head.N_VOCAB)):
                return False
            last = max(last, position)
            furthest = max(furthest, place)
            n += 1
        for i in range(furthest // PAGE + 1):
            if not 0 <= page_of(header, m, i) < field(header, Head.N_PAGES):
                return False
        store64(spans + 24 * count, m)
        store64(spans + 24 * count + 8, n)
        store64(spans + 24 * count + 16, last // PAGE + 1)
        longest = max(longest, last // PAGE + 1)
        count += 1
        m += n
    store64(header + 8 * Head.N_SPANS, count)
    store64(header + 8 * Head.SPLIT, int(n_rows <= SPLIT_ROWS and longest > CHUNK))
    for r in range(field(header, Head.R)):
        if not 0 <= load32(field(header, Head.LOGIT_ROWS) + 4 * r) < n_rows:
            return False
    return True


@compiled
def _begin(header: int) -> int:
    """Let the workers start on the program; returns how many must be woken, -1 for a bad step."""
    if not _find_spans(header):
        return -1
    clear(field(header, Head.COUNTERS), 8 * field(header, Head.END))
    store64(header + 8 * Head.BASE, atomic_load(header + 8 * Head.ARRIVED))
    atomic_add(header + 8 * Head.EPOCH, 1)
    count = 0
    for tid in range(1, field(header, Head.THREADS)):
        place = header + 8 * (Head.ASLEEP + ASLEEP_STEP * tid)
        if atomic_swap(place, 0) == 1:
            store64(place + 8, 1)
            count += 1
    return count


@compiled
def _work(header: int, tid: int, epoch: int) -> int:
    """A worker's life until it has waited so long that it should sleep (or must end).

    Returns the number of the last program that it ran; -1 at the end.
    """
    turns = 0
    while True:
        now = atomic_load(header + 8 * Head.EPOCH)
        if now != epoch:
            if field(header, Head.STOP):
                return -1
            epoch = now
            _execute(header, tid)
            turns = 0
            continue
        turns += 1
        pause()
        if turns % 32 == 0:
            call(field(header, Head.YIELD), ())
        if turns > 8192:
            place = header + 8 * (Head.ASLEEP + ASLEEP_STEP * tid)
            atomic_swap(place, 1)
            # A program that came meanwhile: sleep only if its sender already counts on waking us.
            if atomic_load(header + 8 * Head.EPOCH) == epoch or atomic_swap(place, 0) == 0:
                return epoch
            turns = 0


BEGIN = -1


def enter(header: int, tid: int, epoch: int) -> int:
    """`_begin` for tid BEGIN, thread 0's share for 0, else `_work`: one entry, compiled once."""
    if tid > 0:
        return int(_work(header, tid, epoch))
    if tid == BEGIN:
        return int(_begin(header))
    _execute(header, tid)  # a literal 0 would be compiled on its own
    return 0
