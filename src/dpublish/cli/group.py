"""Groups of commands: they print their help, and suggest what a mistyped word may have meant."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dpublish.core.settings import Setting

SETTING_ALIASES = {"epsilon_column": "preference"}
"""Settings by the names that people look for."""
_ADDRESS = "postgresql://"  # how the address of a ledger on a server begins


class Group(click.Group):
    """A group that answers an unknown command with the nearest known ones."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one gets a suggestion."""
        name = args[0]
        known = self.list_commands(ctx)
        if name in known or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        near = get_close_matches(name, known)
        advice = f"did you mean {' or '.join(near)}?" if near else f"see: {ctx.command_path} --help"
        raise click.UsageError(f"there is no command {name!r}; {advice}", ctx)


class MethodCommand(click.Command):
    """A command that takes a method's settings as options, and completes their names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; one that is neither known nor a setting gets a suggestion."""
        given = [word.partition("=")[0] for word in args if word.startswith("--")]
        try:
            rest = super().parse_args(ctx, args)
        except click.MissingParameter as missing:
            for name in missing.param.opts if missing.param is not None else ():
                self._suggest(ctx, [word for word in given if word not in self._options()], name)
            raise
        if not ctx.resilient_parsing and (settings := _settings_of(ctx)):
            known = {*map(_option, settings), *map(_as_option, SETTING_ALIASES)}
            unknown = [word.partition("=")[0] for word in ctx.args if word.startswith("--")]
            self._suggest(ctx, [word for word in unknown if word not in known], *self._options())
        return rest

    def _options(self) -> list[str]:
        return [name for param in self.params for name in param.opts if name.startswith("--")]

    def _suggest(self, ctx: click.Context, unknown: Sequence[str], *known: str) -> None:
        """Refuse the first unknown option that is nearly one of the known ones."""
        for word in unknown:
            if near := get_close_matches(word, known, n=1, cutoff=0.75):
                raise click.UsageError(f"there is no option {word!r}; did you mean {near[0]}?", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """List own options and, once --method is there, those of its settings and their values."""
        from click.shell_completion import CompletionItem

        found = super().shell_complete(ctx, incomplete)
        settings = _settings_of(ctx)
        if incomplete.startswith("-"):
            names = [(_option(item), item.help) for item in settings]
        else:
            last = ctx.args[-1] if ctx.args else ""
            asked = [item for item in settings if _option(item) == last]
            names = [(choice, "") for item in asked for choice in _choices(item)]
        items = [CompletionItem(name, help=text or None) for name, text in names]
        return [*found, *(item for item in items if item.value.startswith(incomplete))]


def _settings_of(ctx: click.Context) -> "list[Setting]":
    """List the settings of the method that was named; none if there is no such method."""
    method = ctx.params.get("method")
    if not method:
        return []
    from dpublish.core.catalog import STREAMS
    from dpublish.core.registry import method_settings
    from dpublish.errors import DPublishError
    from dpublish.methods.streams.method import stream_settings

    try:
        return stream_settings(method) if method in STREAMS else method_settings(method)
    except DPublishError:
        return []


def _option(item: "Setting") -> str:
    return _as_option(item.name)


def _as_option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _choices(item: "Setting") -> list[str]:
    """List the values of a setting that takes one of a few."""
    return item.type_name.split(" | ") if " | " in item.type_name else []


def complete_methods(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """List the methods whose names begin as typed, with what they publish."""
    from click.shell_completion import CompletionItem

    from dpublish.core.catalog import CATALOG, STREAMS
    from dpublish.core.plugins import plugins

    known = {name: entry.publishes for name, entry in {**CATALOG, **STREAMS}.items()}
    known |= {name: f"a method of {point.value}" for name, point in plugins().items()}
    return [
        CompletionItem(name, help=text)
        for name, text in known.items()
        if name.startswith(incomplete)
    ]


def complete_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Let the shell complete the name of a file or folder."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def complete_ledgers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Let the shell complete the name of a ledger: a file, or the beginning of an address."""
    from click.shell_completion import CompletionItem

    if incomplete.startswith(_ADDRESS):
        return []
    begun = [CompletionItem(_ADDRESS)] if incomplete and _ADDRESS.startswith(incomplete) else []
    return begun + complete_files(ctx, param, incomplete)
