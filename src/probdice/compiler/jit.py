"""How every kernel is compiled."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

# Not part of Numba's public interface. Where a version lacks the one, kernels are compiled in every
# process; where it lacks the other, compiling is not reported.
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

# What lets LLVM vectorise sums, short of assuming that NaN and infinity do not exist: the checks
# and the rules for zeros rely on both.
FASTMATH = {"reassoc", "contract", "nsz", "arcp"}


# The numpy error model: a loop with a division that could raise is not vectorised.
_OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy"}
_njit: Any = numba.njit  # the types of both lack what they can do
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
    """Compiled code on disk, valid for one state of all kernel sources.

    Numba looks only at the file of the function that is called; a change to a function in another
    file that it calls would go unseen.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = SOURCES, self._cache_file._source_stamp

    # A full disk, or damaged files, cost compiling again, never the comparison. Whatever unpickling
    # a damaged file may raise is caught.

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            with suppress(OSError):
                self.flush()  # an empty index takes the place of what it leads to
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first use, without the GIL; keep the machine code where a folder allows it."""
    compiled: Any = _njit(**_OPTIONS)(function)
    # RuntimeError: Numba finds no folder that it may write its cache to. Others: this version of
    # Numba keeps its cache in another way, so that nothing is kept on disk.
    with suppress(RuntimeError, AttributeError, TypeError):
        compiled._cache = _Cache(function)
    dispatcher: Callable[P, R] = compiled
    return dispatcher


class _Watcher(_Listener):  # type: ignore[misc]
    def __init__(self, began: Callable[[], None], ended: Callable[[], None]) -> None:
        self.began, self.ended = began, ended
        self.depth = 0  # a kernel compiles the functions that it calls

    def on_start(self, event: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            self.began()

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.ended()


def watch_compiler(began: Callable[[], None], ended: Callable[[], None]) -> None:
    """Call these whenever a kernel is compiled, not loaded, from now on in this process."""
    if _event is not None:
        _event.register("numba:compile", _Watcher(began, ended))


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile for use in kernels only: without what a call from Python needs."""
    compiled: Callable[P, R] = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(
        function
    )
    return compiled


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile into the code of every caller: for short functions of arrays in the innermost loops.

    An array is passed as some ten numbers, so a call may cost more than the function itself.
    """
    compiled: Callable[P, R] = _njit(
        no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True, **_OPTIONS
    )(function)
    return compiled


# The fields of a floating number, built at its own width: numba computes integers with 64 bits,
# and then only half as many fit in a vector.
_WIDTHS = {types.float32: (32, 23), types.float64: (64, 52)}  # bits in all, and of the fraction


def _from_bits(change: Callable[[Any, Any, int, int], Any]) -> Any:
    """A function of one floating number that changes its bits."""

    @_intrinsic
    def function(_typing: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            width, digits = _WIDTHS[value]
            bits = builder.bitcast(args[0], ir.IntType(width))
            changed = change(builder, bits, digits, ((1 << (width - 1 - digits - 1)) - 1) << digits)
            return builder.bitcast(changed, args[0].type)

        return value(value), generate

    return function


def _mantissa(builder: Any, bits: Any, digits: int, one: int) -> Any:
    fraction = builder.and_(bits, bits.type((1 << digits) - 1))
    return builder.or_(fraction, bits.type(one))


def _exponent(builder: Any, bits: Any, digits: int, one: int) -> Any:
    # The exponent becomes the last bits of 2^digits: a floating number without a conversion
    # from integer, which has no vector form.
    return builder.or_(builder.lshr(bits, bits.type(digits)), bits.type(one + (digits << digits)))


mantissa = _from_bits(_mantissa)  # of a positive number: between 1 and 2
exponent = _from_bits(_exponent)  # of a positive number, plus a constant


@_intrinsic
def alike(_typing: Any, number: Any, value: Any) -> Any:
    """A number in the floating type of a value: mixed types are computed in the wider one."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.cast(builder, args[0], signature.args[0], signature.return_type)

    return value(types.float64, value), generate


@_intrinsic
def sign_of(_typing: Any, value: Any) -> Any:
    """An integer that is negative where the sign bit of a floating number is set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(signature.return_type))

    integer: Any = types.int32 if value == types.float32 else types.int64
    return integer(value), generate
