"""Vector instructions for the block kernels, written as LLVM vectors.

LLVM doesn't find them by itself: it unrolls loops of 16 words before it looks for vectors, and then can't
rule out that the arrays overlap. Every function here is a handful of instructions on a machine with wide
registers, and more of them, but still right, on any other.
"""

from __future__ import annotations

from llvmlite import ir  # type: ignore[import-untyped]  # ships no types
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from sojourn.interest.index.compiling import Untyped, inner

ROW_WORDS = 16
LANES = 8

_WORD = ir.IntType(64)
_ROW = ir.VectorType(_WORD, ROW_WORDS)
_NUMBERS = ir.VectorType(ir.DoubleType(), LANES)


def _address(
    context: Untyped, builder: Untyped, kind: Untyped, array: Untyped, offset: Untyped, vector: Untyped
) -> Untyped:
    """Return the address of a vector in a contiguous array, so many entries from its start."""
    data = make_array(kind)(context, builder, array).data  # type: ignore[no-untyped-call]  # ships no types
    return builder.bitcast(builder.gep(data, [offset]), vector.as_pointer())


def _load(builder: Untyped, address: Untyped, vector: Untyped) -> Untyped:
    return builder.load(address, align=8, typ=vector)


def _row(context: Untyped, builder: Untyped, kind: Untyped, array: Untyped, index: Untyped) -> Untyped:
    """Load a row of 16 words."""
    offset = builder.mul(index, ir.Constant(_WORD, ROW_WORDS))
    return _load(builder, _address(context, builder, kind, array, offset, _ROW), _ROW)


def _store_row(context: Untyped, builder: Untyped, kind: Untyped, array: Untyped, row: Untyped) -> None:
    builder.store(row, _address(context, builder, kind, array, ir.Constant(_WORD, 0), _ROW), align=8)


def _filled(builder: Untyped, row: Untyped) -> Untyped:
    """Return which words of a row have any bit."""
    filled = builder.icmp_unsigned("!=", row, ir.Constant(_ROW, None))
    return builder.zext(builder.bitcast(filled, ir.IntType(ROW_WORDS)), _WORD)


def _take_row(_typing: Untyped, among: Untyped, rows: Untyped, _index: Untyped) -> Untyped:
    def generate(context: Untyped, builder: Untyped, signature: Untyped, arguments: Untyped) -> Untyped:
        row = _row(context, builder, signature.args[1], arguments[1], arguments[2])
        _store_row(context, builder, signature.args[0], arguments[0], row)
        return context.get_dummy_value()

    return types.void(among, rows, types.int64), generate


def _keep_row(_typing: Untyped, among: Untyped, rows: Untyped, _index: Untyped) -> Untyped:
    def generate(context: Untyped, builder: Untyped, signature: Untyped, arguments: Untyped) -> Untyped:
        mine = _row(context, builder, signature.args[0], arguments[0], ir.Constant(_WORD, 0))
        row = _row(context, builder, signature.args[1], arguments[1], arguments[2])
        kept = builder.and_(mine, row)
        _store_row(context, builder, signature.args[0], arguments[0], kept)
        return _filled(builder, kept)

    return types.uint64(among, rows, types.int64), generate


def _keep_between(
    _typing: Untyped, among: Untyped, rows: Untyped, _first: Untyped, _last: Untyped
) -> Untyped:
    def generate(context: Untyped, builder: Untyped, signature: Untyped, arguments: Untyped) -> Untyped:
        mine = _row(context, builder, signature.args[0], arguments[0], ir.Constant(_WORD, 0))
        first = _row(context, builder, signature.args[1], arguments[1], arguments[2])
        last = _row(context, builder, signature.args[1], arguments[1], arguments[3])
        kept = builder.and_(mine, builder.xor(first, last))
        _store_row(context, builder, signature.args[0], arguments[0], kept)
        return _filled(builder, kept)

    return types.uint64(among, rows, types.int64, types.int64), generate


def _lanes_inside(
    _typing: Untyped, numbers: Untyped, _offset: Untyped, _low: Untyped, _high: Untyped
) -> Untyped:
    def generate(context: Untyped, builder: Untyped, signature: Untyped, arguments: Untyped) -> Untyped:
        address = _address(context, builder, signature.args[0], arguments[0], arguments[1], _NUMBERS)
        values = _load(builder, address, _NUMBERS)
        low, high = (_spread(builder, end) for end in arguments[2:])
        # Ordered comparisons: a NaN is in no range.
        inside = builder.and_(
            builder.fcmp_ordered(">=", values, low), builder.fcmp_ordered("<=", values, high)
        )
        return builder.zext(builder.bitcast(inside, ir.IntType(LANES)), _WORD)

    return types.uint64(numbers, types.int64, types.float64, types.float64), generate


def _spread(builder: Untyped, value: Untyped) -> Untyped:
    """Return a vector that has the value in every lane."""
    single = builder.insert_element(
        ir.Constant(_NUMBERS, ir.Undefined), value, ir.Constant(ir.IntType(32), 0)
    )
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(single, ir.Constant(_NUMBERS, ir.Undefined), everywhere)


take_row: Untyped = intrinsic(_take_row)
"""take_row(among, rows, i): set the 16 words `among` to a row."""
keep_row: Untyped = intrinsic(_keep_row)
"""keep_row(among, rows, i): keep what a row has too; return which words are left with a bit."""
keep_between: Untyped = intrinsic(_keep_between)
"""keep_between(among, rows, i, j): keep what one of two rows has; return which words are left with a bit."""
lanes_inside: Untyped = intrinsic(_lanes_inside)
"""lanes_inside(numbers, offset, low, high): return as bits which of 8 numbers lie in a closed range."""


@inner
def watched() -> int:
    """Make Numba watch this file: kernels contain what it says, and must be compiled anew when it changes."""
    return 0
