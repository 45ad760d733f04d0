"""`dpublish key`, `sign` and `verify`: show whose release it is, and that it is unchanged."""

import os
import sys
from pathlib import Path

import click

from dpublish.cli.group import Group, complete_files
from dpublish.cli.output import json_option, say, say_json
from dpublish.core.folder.folder import manifest_name, sign_folder
from dpublish.core.folder.signing import (
    PASSPHRASE,
    PassphraseNeeded,
    PublicKey,
    SigningKey,
    create_key,
    named_key,
    public_path,
)
from dpublish.core.folder.verification import verify_folder
from dpublish.errors import InvalidParameter

sign_option = click.option(
    "--sign",
    "sign_path",
    metavar="FILE",
    help="Sign it with this private key; see: dpublish key create",
    shell_complete=complete_files,
)


def read_signing_key(path: str | None) -> SigningKey | None:
    """Read a private key; ask for its passphrase if it is encrypted and someone can answer."""
    if path is None:
        return None
    try:
        return SigningKey.read(path)
    except PassphraseNeeded:
        return SigningKey.read(path, _passphrase(path, is_new=False))


def say_signed(key: SigningKey | None) -> None:
    """Print the fingerprint of the key that signed, if there is one."""
    if key is not None:
        say(f"  signed with {key.public.fingerprint}")


def _passphrase(path: str, *, is_new: bool) -> str:
    """Take a passphrase from the variable, or ask for it if someone can answer."""
    given = os.environ.get(PASSPHRASE)
    if given == "":
        raise InvalidParameter(
            f"the variable {PASSPHRASE} is empty; put the passphrase of {path} into it"
        )
    if given is not None:
        return given
    if not sys.stderr.isatty():
        need = "is to be encrypted" if is_new else "is encrypted"
        raise InvalidParameter(
            f"{path} {need}, and there is no terminal to ask on; put the passphrase into "
            f"{PASSPHRASE}"
        )
    asked: str = click.prompt("passphrase", hide_input=True, confirmation_prompt=is_new, err=True)
    return asked


@click.group(cls=Group)
def key() -> None:
    """Create the key with which an owner signs releases."""


@key.command()
@click.argument("path", shell_complete=complete_files)
@click.option(
    "--encrypt",
    is_flag=True,
    help=f"Encrypt it with a passphrase, which is asked for or taken from {PASSPHRASE}.",
)
def create(path: str, encrypt: bool) -> None:
    """Create a key to sign with.

    PATH (owner.key) is the private key, which stays with you; owner.pub is the public key.
    Give it to readers by another way than the releases, such as on your web site: whoever could
    replace both could sign in your name.
    """
    made = create_key(path, _passphrase(path, is_new=True) if encrypt else None)
    say(f"created {path} (keep it secret) and {public_path(path)} (give it to readers)")
    say(f"  fingerprint: {made.fingerprint}")


@key.command()
@click.argument("path", shell_complete=complete_files)
def fingerprint(path: str) -> None:
    """Print the fingerprint of a public key, to compare it."""
    say(PublicKey.read(path).fingerprint)


@click.command()
@click.argument("release", shell_complete=complete_files)
@click.option(
    "--key", "path", required=True, help="Your private key.", shell_complete=complete_files
)
def sign(release: str, path: str) -> None:
    """Sign a release that was published before; writes release.sig and changes nothing else."""
    signing = read_signing_key(path)
    if signing is not None:
        before, now = named_key(Path(release)), signing.public.fingerprint
        sign_folder(release, signing)
        say(f"signed {release} with the key {now}")
        if before not in (None, now):
            say(f"  this replaces a signature with another key, {before}")


@click.command()
@click.argument("release", shell_complete=complete_files)
@click.option(
    "--key",
    "path",
    help="The owner's public key; it must not come with the release.",
    shell_complete=complete_files,
)
@json_option
def verify(release: str, path: str | None, as_json: bool) -> None:
    """Check that a release is as it was published and, with --key, who signed it.

    Every file is compared with the release's manifest; those that were changed, are missing or
    were added are named.  Needs no ledger.  With --json, "ok" says whether all that was checked
    is right, and "signature" what came of the signature: valid, other key, changed, unreadable,
    none, or not checked (without --key).

    \b
    dpublish verify ages/ --key owner.pub
    """  # noqa: D301 - click keeps lines after it
    owner = None if path is None else PublicKey.read(path)
    found = verify_folder(release, owner)
    if as_json:
        say_json(found.to_dict())
    found.require_right()
    if as_json:
        return
    say(f"{release}: every file is as {manifest_name(Path(release))} lists it")
    if owner is not None:
        say(f"signed with the key given, {owner.fingerprint}")
    elif found.is_signed:
        say("its signature was NOT checked: name the owner's public key with --key")
    else:
        say(
            "it is not signed: whoever can change a file can change the list, too; compare it "
            "with the ledger (dpublish ledger verify), or ask its owner to sign it"
        )
