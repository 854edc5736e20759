"""A Rich console that escapes control codes in all text that it prints."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from probdice.text.escaping import visible

__all__ = ["console"]


class _EscapingConsole(Console):
    """A console that prints its own control codes and escapes control codes in text."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def console(*, stderr: bool = False, width: int | None = None) -> Console:
    """Return a console that escapes control codes and disables markup and highlighting."""
    return _EscapingConsole(
        stderr=stderr, width=width, highlight=False, markup=False, soft_wrap=True
    )
