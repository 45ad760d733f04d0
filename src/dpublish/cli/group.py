"""Groups of commands: they print their help, and suggest what a mistyped word may have meant."""

from difflib import get_close_matches
from typing import Any

import click


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
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        advice = f"did you mean {' or '.join(near)}?" if near else f"see: {ctx.command_path} --help"
        raise click.UsageError(f"there is no command {name!r}; {advice}", ctx)


class MethodCommand(click.Command):
    """A command that takes a method's settings as options, and completes their names."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """List own options and, once --method is there, those of its settings."""
        found = super().shell_complete(ctx, incomplete)
        method = ctx.params.get("method")
        if not incomplete.startswith("-") or not method:
            return found
        from click.shell_completion import CompletionItem

        from dpublish.core.registry import method_settings
        from dpublish.core.stream_catalog import STREAMS, stream_settings
        from dpublish.errors import DPublishError

        try:
            settings = stream_settings(method) if method in STREAMS else method_settings(method)
        except DPublishError:
            return found
        names = ((f"--{item.name.replace('_', '-')}", item.help) for item in settings)
        return [
            *found,
            *(
                CompletionItem(name, help=text)
                for name, text in names
                if name.startswith(incomplete)
            ),
        ]


def complete_methods(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """List the methods whose names begin as typed, with what they publish."""
    from click.shell_completion import CompletionItem

    from dpublish.core.catalog import CATALOG
    from dpublish.core.stream_catalog import STREAMS

    return [
        CompletionItem(name, help=entry.publishes)
        for name, entry in {**CATALOG, **STREAMS}.items()
        if name.startswith(incomplete)
    ]
