"""The console of Rich, with every text escaped before it reaches the terminal."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from probdice.text.escaping import visible

__all__ = ["console"]


class _EscapingConsole(Console):
    """A console that prints its own control codes but none that a text contains."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def console(*, stderr: bool = False, width: int | None = None) -> Console:
    """Return a console that takes text as it is: no markup, no highlighting, no escape codes."""
    return _EscapingConsole(
        stderr=stderr, width=width, highlight=False, markup=False, soft_wrap=True
    )
