"""`dpublish key`, `sign` and `verify`: show whose release it is, and that nobody changed it."""

import os
import sys
from pathlib import Path

import click

from dpublish.cli.output import json_option, say, say_json
from dpublish.errors import InvalidParameter
from dpublish.release.folder import (
    differences,
    is_signed,
    load,
    manifest_name,
    sign_folder,
)
from dpublish.release.signing import (
    PassphraseNeeded,
    PublicKey,
    SigningKey,
    create_key,
    public_path,
)

PASSPHRASE = "DPUBLISH_KEY_PASSPHRASE"
"""The variable from which a passphrase is taken instead of asking for it."""

sign_option = click.option(
    "--sign",
    "sign_path",
    metavar="FILE",
    help="Sign it with this private key; see: dpublish key create",
)


def read_signing_key(path: str | None) -> SigningKey | None:
    """Read a private key; ask for its passphrase if it is encrypted and someone can answer."""
    if path is None:
        return None
    try:
        return SigningKey.read(path, os.environ.get(PASSPHRASE))
    except PassphraseNeeded:
        if not sys.stderr.isatty():
            raise InvalidParameter(
                f"{path} is encrypted; put its passphrase into the variable {PASSPHRASE}"
            ) from None
    return SigningKey.read(path, click.prompt("passphrase", hide_input=True, err=True))


@click.group()
def key() -> None:
    """Make the key with which an owner signs releases."""


@key.command()
@click.argument("path")
@click.option(
    "--encrypt",
    is_flag=True,
    help=f"Encrypt it with a passphrase, which is asked for or taken from {PASSPHRASE}.",
)
def create(path: str, encrypt: bool) -> None:
    """Make a key: PATH (owner.key), which stays with you, and owner.pub, which readers need.

    Hand out the public key by another way than the releases, such as on your web site: whoever
    could replace both could sign in your name.
    """
    passphrase = None
    if encrypt:
        passphrase = os.environ.get(PASSPHRASE) or click.prompt(
            "passphrase", hide_input=True, confirmation_prompt=True, err=True
        )
    made = create_key(path, passphrase)
    say(f"created {path} (keep it secret) and {public_path(path)} (give it to readers)")
    say(f"  fingerprint: {made.fingerprint}")


@key.command()
@click.argument("path")
def fingerprint(path: str) -> None:
    """Print the fingerprint of a public key, to compare it by telephone."""
    say(PublicKey.read(path).fingerprint)


@click.command()
@click.argument("release")
@click.option("--key", "path", required=True, help="Your private key.")
def sign(release: str, path: str) -> None:
    """Sign a release that was published before; writes release.sig and changes nothing else."""
    signing = read_signing_key(path)
    if signing is not None:
        sign_folder(release, signing)
        say(f"signed {release} with the key {signing.public.fingerprint}")


@click.command()
@click.argument("release")
@click.option("--key", "path", help="The owner's public key; it must not come with the release.")
@json_option
def verify(release: str, path: str | None, as_json: bool) -> None:
    """Check that a release is as it was published and, with --key, who signed it.

    Every file is compared with the release's manifest; those that were changed, are missing or
    were added are named.  Needs no ledger.

    \b
    dpublish verify ages/ --key owner.pub
    """  # noqa: D301 - click keeps lines after it
    owner = None if path is None else PublicKey.read(path)
    found = differences(release)
    if as_json:
        told = found.to_plain() | {"signed": is_signed(release)}
        say_json(told | {"checked_with": None if owner is None else owner.fingerprint})
    found.require_none(Path(release))
    load(release, key=owner)
    if as_json:
        return
    say(f"{release}: every file is as {manifest_name(Path(release))} lists it")
    if owner is not None:
        say(f"signed with the key given, {owner.fingerprint}")
    elif is_signed(release):
        say("its signature was NOT checked: name the owner's public key with --key")
    else:
        say(
            "it is not signed: whoever can change a file can change the list, too; compare it "
            "with the ledger (dpublish ledger verify), or ask its owner to sign it"
        )
