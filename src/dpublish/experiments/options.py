"""What experiments with parts share: which methods, budgets and datasets a run has."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from dpublish.errors import InvalidParameter, require_known
from dpublish.privacy.epsilon import parse_epsilon
from dpublish.storage.files import write_text


def choose(
    methods: Sequence[str] | None,
    epsilons: Sequence[str] | None,
    *,
    usual_methods: Sequence[str],
    usual_epsilons: Sequence[str],
    known: Collection[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Take what the user named, or the usual methods and budgets; refuse unknown ones."""
    names = tuple(usual_methods if methods is None else methods)
    for name in names:
        require_known("method", name, known)
    amounts = tuple(usual_epsilons if epsilons is None else epsilons)
    for amount in amounts:
        parse_epsilon(amount)
    if not names or not amounts:
        raise InvalidParameter("name at least one method and one epsilon")
    return names, amounts


def present_datasets(
    names: Sequence[str],
    known: Collection[str],
    missing_file: Callable[[str], str | None],
    folder: Path | None,
) -> tuple[list[str], list[str]]:
    """Keep the datasets whose files are there; say of the others what they need."""
    present, notes = [], []
    for name in names:
        require_known("dataset", name, known)
        missing = missing_file(name)
        if missing is None:
            present.append(name)
        else:
            place = "no data folder was named" if folder is None else f"it is not in {folder}"
            notes.append(f"{name} was left out: it needs {missing}, and {place}")
    if not present:
        reasons = notes or ["name at least one dataset"]
        raise InvalidParameter("; ".join(reasons) + " (--data-folder, or DPUBLISH_DATA)")
    return present, notes


def write_figure(drawn: str | None, path: Path) -> Path | None:
    """Write a drawing, if there is one."""
    if drawn is None:
        return None
    write_text(path, drawn, replaces=True)
    return path
