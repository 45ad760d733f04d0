"""`dpublish completion`: a script with which a shell completes commands, methods and settings."""

import click

from dpublish.cli.output import emit
from dpublish.errors import InvalidParameter


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell; load it once from its start-up file.

    \b
    bash:  dpublish completion bash > ~/.dpublish-complete.bash
           echo '. ~/.dpublish-complete.bash' >> ~/.bashrc
    zsh:   dpublish completion zsh > ~/.dpublish-complete.zsh
           echo '. ~/.dpublish-complete.zsh' >> ~/.zshrc
    fish:  dpublish completion fish > ~/.config/fish/completions/dpublish.fish
    """  # noqa: D301 - click keeps lines after it
    from click.shell_completion import get_completion_class

    from dpublish.cli.main import command

    kind = get_completion_class(shell)
    if kind is None:
        raise InvalidParameter(f"there is no completion for {shell}")
    emit(kind(command, {}, "dpublish", "_DPUBLISH_COMPLETE").source() + "\n")
