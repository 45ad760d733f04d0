"""A release as a page asks for it: what from, by which method, at what price, under which name."""

import json
import shlex
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, Self

from dpublish.core.catalog import STREAMS
from dpublish.core.method import Method, settings_of
from dpublish.core.registry import make_method
from dpublish.core.released import Release
from dpublish.core.run import Progress
from dpublish.core.settings import method_settings
from dpublish.data.schema import Schema
from dpublish.data.schema_file import dumps_toml, load_schema
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.publishing import publish
from dpublish.studio.desk import Desk

SETTING = "set-"
"""How the names of fields begin that hold a setting of the method."""
_DIGITS = 15
_TEXTS = ("dataset", "data", "schema", "method", "epsilon", "purpose", "where", "sign", "rows")


@dataclass(frozen=True)
class Wanted:
    """What a page was asked to publish; the texts of its fields.

    >>> wanted = Wanted.of({"dataset": "people", "method": "histogram", "set-columns": "age"})
    >>> wanted.settings, wanted.query()
    ({'columns': 'age'}, {'dataset': 'people', 'method': 'histogram', 'set-columns': 'age'})
    """

    dataset: str = ""
    data: str = ""
    schema: str = ""
    method: str = ""
    epsilon: str = ""
    purpose: str = ""
    where: str = ""
    sign: str = ""
    rows: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """Read the fields of a form, or of an address."""
        texts = {name: fields.get(name, "").strip() for name in _TEXTS}
        settings = {
            name.removeprefix(SETTING): text.strip()
            for name, text in fields.items()
            if name.startswith(SETTING) and text.strip()
        }
        return cls(**texts, settings=settings)

    def query(self, **changes: str) -> dict[str, str]:
        """Write the fields as an address has them; empty ones are left out."""
        found = {name: str(getattr(self, name)) for name in _TEXTS}
        found |= {SETTING + name: text for name, text in self.settings.items()}
        return {name: text for name, text in (found | changes).items() if text}

    def content(self, method: Any, schema: Schema) -> str:
        """All that is published and paid for, as one text, however its fields were written.

        What the schema says is part of it: the guarantee that was confirmed follows from that.
        """
        told = {
            "dataset": self.dataset,
            "data": str(PurePosixPath(self.data)),
            "schema": str(PurePosixPath(self.schema)),
            "declared": sha256(dumps_toml(schema).encode("utf-8", "replace")).hexdigest(),
            "where": self.where,
            "method": method.name,
            "settings": settings_of(method),
            "epsilon": format_epsilon(self.exact),
        }
        return json.dumps(told, sort_keys=True, default=str)

    def require(self, *names: str) -> None:
        """Refuse a request in which one of these fields is empty."""
        for name in names:
            if not getattr(self, name):
                raise InvalidParameter(f"{_NAMES.get(name, name)} is missing; choose one")

    @property
    def is_stream(self) -> bool:
        """Whether the method publishes step by step."""
        return self.method in STREAMS

    @cached_property
    def made(self) -> Method[Any]:
        """The method, with its settings; refuses those that do not fit."""
        if self.is_stream:
            raise InvalidParameter(f"{self.method} publishes a stream: start one under Streams")
        known = {each.name for each in method_settings(self.method)}
        return make_method(self.method, {n: t for n, t in self.settings.items() if n in known})

    @property
    def exact(self) -> Fraction:
        """What it costs."""
        return parse_epsilon(self.epsilon)

    @property
    def n_records(self) -> int | None:
        """How many rows there are, if that is public."""
        plain = self.rows.replace(",", "")
        if not plain:
            return None
        if not plain.isdecimal() or len(plain) > _DIGITS:
            raise InvalidParameter("write the public number of rows as digits, such as 20000")
        return int(plain)

    def read_schema(self, desk: Desk) -> Schema:
        """Read the schema's file."""
        self.require("schema")
        found = load_schema(desk.schema(self.schema))
        return self.made.prepare(found) if isinstance(self.made, PersonalSettings) else found

    def command(self, desk: Desk, output: str) -> str:
        """Write the command that does the same in a shell."""
        words = ["dpublish", "release", "--method", self.method]
        for name, text in self.settings.items():
            words += [f"--{name.replace('_', '-')}", text]
        source = desk.source(self.data)
        words += ["--data", source.location]
        words += ["--table", source.table] if source.table else []
        words += ["--schema", str(desk.files / self.schema)]
        words += ["--where", self.where] if self.where else []
        words += ["--epsilon", self.epsilon, "--ledger", desk.shown_ledger]
        words += ["--dataset", self.dataset]
        words += ["--purpose", self.purpose] if self.purpose else []
        words += ["--sign", str(desk.files / self.sign)] if self.sign else []
        return shlex.join([*words, "-o", str(desk.releases / output)])

    def publish(self, desk: Desk, output: Path, progress: Progress) -> Release:
        """Publish; the same call as that of the command line.

        Privacy:
            That of `publishing.publish`: the ledger is debited before any row is read.
        """
        schema = self.read_schema(desk)
        source, key = desk.source(self.data), desk.file(self.sign) if self.sign else None
        chosen, where = self.made, self.where or None
        output.parent.mkdir(parents=True, exist_ok=True)
        with (
            desk.open_ledger() as ledger,
            closing(
                open_table(
                    source.location,
                    schema,
                    table=source.table,
                    columns=chosen.reads(schema),
                    where=where,
                )
            ) as table,
        ):
            return publish(
                chosen,
                table,
                output,
                ledger=ledger,
                dataset=self.dataset,
                epsilon=format_epsilon(self.exact),
                purpose=self.purpose,
                progress=progress,
                sign=key,
            )


_NAMES = {"data": "the table", "schema": "the schema", "dataset": "the dataset"}
