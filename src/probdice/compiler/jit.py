"""Compile kernels with Numba, and cache the compiled code."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

# Private parts of Numba. If a Numba version lacks `FunctionCache`, kernels are compiled in every
# process. If it lacks `event`, compilation is not reported.
try:
    from numba.core.caching import FunctionCache
except ImportError:
    FunctionCache = None  # type: ignore[assignment, misc]
try:
    from numba.core import event
except ImportError:
    event = None  # type: ignore[assignment]

P = ParamSpec("P")
R = TypeVar("R")

# These flags let LLVM vectorise sums. LLVM must not assume that NaN and infinity do not occur,
# because the checks and the rules for zeros rely on both.
FASTMATH = {"reassoc", "contract", "nsz", "arcp"}


# The "numpy" error model is required, because loops are not vectorised if a division could raise an
# error.
_OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy"}
_njit: Any = numba.njit  # the annotations of njit and intrinsic are incomplete
_intrinsic: Any = intrinsic
_FunctionCache: Any = object if FunctionCache is None else FunctionCache
_event: Any = event
_Listener: Any = object if event is None else event.Listener

PACKAGE = Path(__file__).parent.parent
SOURCES = hashlib.sha256(
    b"".join(
        path.read_bytes()
        for folder in ("compiler", "engine/kernels")
        for path in sorted((PACKAGE / folder).glob("*.py"))
    )
).digest()


class _Cache(_FunctionCache):  # type: ignore[misc]
    """A cache of compiled code on disk.

    It is discarded if the file of the called function, or any file in `compiler` or
    `engine/kernels`, changes. Numba itself checks only the file of the called function, so it would
    not detect changes to functions in other files.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = SOURCES, self._cache_file._source_stamp

    # If the disk is full or a file is corrupt, kernels are compiled again and the comparison
    # continues. Unpickling a corrupt file may raise any exception.

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            with suppress(OSError):
                self.flush()  # replaces the corrupt index with an empty one
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel on first use, and cache the code on disk if possible.

    The kernel runs without the GIL.
    """
    compiled: Any = _njit(**_OPTIONS)(function)
    # RuntimeError means that Numba finds no writable cache folder. The other errors mean that this
    # version of Numba has a different cache. In both cases, no code is stored on disk.
    with suppress(RuntimeError, AttributeError, TypeError):
        compiled._cache = _Cache(function)
    dispatcher: Callable[P, R] = compiled
    return dispatcher


class _Watcher(_Listener):  # type: ignore[misc]
    def __init__(self, on_begin: Callable[[], None], on_end: Callable[[], None]) -> None:
        self.begin_callback, self.end_callback = on_begin, on_end
        self.depth = 0  # compiling a kernel also compiles the functions that it calls

    def on_start(self, event: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            self.begin_callback()

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.end_callback()


def watch_compiler(on_begin: Callable[[], None], on_end: Callable[[], None]) -> None:
    """Call `on_begin` before and `on_end` after this process compiles a kernel.

    Neither function is called if the compiled code is loaded from the cache.
    """
    if _event is not None:
        _event.register("numba:compile", _Watcher(on_begin, on_end))


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only kernels call, without a wrapper for calls from Python."""
    compiled: Callable[P, R] = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(
        function
    )
    return compiled


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Inline a short function into each of its compiled callers, for use in inner loops.

    Numba passes an array as about ten arguments, so a call may take longer than the function
    itself.
    """
    compiled: Callable[P, R] = _njit(
        no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True, **_OPTIONS
    )(function)
    return compiled


# Bit operations use the width of the floating-point number. With Numba's 64-bit integers, only half
# as many float32 values would fit in a vector.
_WIDTHS = {types.float32: (32, 23), types.float64: (64, 52)}  # total bits and fraction bits


def _from_bits(change: Callable[[Any, Any, int, int], Any]) -> Any:
    """Return a compiled function that applies `change` to the bits of a floating-point number."""

    @_intrinsic
    def function(_typing: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            width, digits = _WIDTHS[value]
            bits = builder.bitcast(args[0], ir.IntType(width))
            new_bits = change(
                builder, bits, digits, ((1 << (width - 1 - digits - 1)) - 1) << digits
            )
            return builder.bitcast(new_bits, args[0].type)

        return value(value), generate

    return function


def _mantissa(builder: Any, bits: Any, digits: int, one: int) -> Any:
    fraction = builder.and_(bits, bits.type((1 << digits) - 1))
    return builder.or_(fraction, bits.type(one))


def _exponent(builder: Any, bits: Any, digits: int, one: int) -> Any:
    # The exponent becomes the last bits of 2^digits. This avoids a conversion from an integer, for
    # which there is no vector instruction.
    return builder.or_(builder.lshr(bits, bits.type(digits)), bits.type(one + (digits << digits)))


mantissa = _from_bits(_mantissa)  # returns the mantissa of a positive number, in [1, 2)
exponent = _from_bits(_exponent)  # returns the exponent of a positive number, plus a constant


@_intrinsic
def alike(_typing: Any, number: Any, value: Any) -> Any:
    """Convert `number` to the floating-point type of `value`, to avoid mixed types."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.cast(builder, args[0], signature.args[0], signature.return_type)

    return value(types.float64, value), generate


@_intrinsic
def sign_of(_typing: Any, value: Any) -> Any:
    """Return an integer that is negative if the sign bit of a floating-point number is set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(signature.return_type))

    integer: Any = types.int32 if value == types.float32 else types.int64
    return integer(value), generate


@_intrinsic
def smaller(_typing: Any, x: Any, y: Any) -> Any:
    """Return the smaller of two floating-point numbers that are not negative.

    Their bits are compared as integers, because some processors execute a minimum of integers and
    an addition of floating-point numbers at the same time, but not two floating-point operations.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = ir.IntType(_WIDTHS[x][0])
        a, b = [builder.bitcast(arg, integer) for arg in args]
        least = builder.select(builder.icmp_signed("<", a, b), a, b)
        return builder.bitcast(least, args[0].type)

    return x(x, x), generate


@_intrinsic
def prefetch(_typing: Any, rows: Any, row: Any, column: Any) -> Any:
    """Prefetch the cache line of an element of a two-dimensional array, without waiting for it.

    The element need not exist, because a prefetch never fails.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        offset = ir.IntType(64)(0)
        for axis in range(2):
            stride = builder.extract_value(array.strides, axis)
            offset = builder.add(offset, builder.mul(args[1 + axis], stride))
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.gep(builder.bitcast(array.data, byte), [offset])
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        load = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # The arguments select read access, the second-level cache, and data (not instructions).
        builder.call(load, [address, number(0), number(2), number(1)])
        return context.get_dummy_value()

    return types.none(rows, types.int64, types.int64), generate
