"""What a publication says of itself: title, license, contact, source; public text of the owner.

```toml
[publication]
title = "Visits by ward"
license = "CC-BY-4.0"
contact = "statistics@hospital.example"
source = "https://hospital.example/visits"
```

It changes no number.  Releases carry it in release.json, in datapackage.json and in the report.
"""

from dataclasses import dataclass, fields
from typing import Any

import msgspec

from dpublish.data.file_keys import convert_keys, describe_keys
from dpublish.errors import InvalidSchema, about

_KEYS = {
    "title": "text, what the publication is called",
    "description": "text, what it is about",
    "license": 'text, such as "CC-BY-4.0", or the address of its text',
    "contact": "text, an e-mail address or a web address",
    "source": "text, where the table comes from: a name or a web address",
    "publisher": "text, who publishes it",
    "audience": "text, for whom it is made",
}


@dataclass(frozen=True)
class Publication:
    """What the owner says of what is published.

    Attributes:
        title: What the publication is called.
        description: What it is about.
        license: Under which terms it may be used: an identifier such as CC-BY-4.0, or an address.
        contact: Whom to ask: an e-mail address or a web address.
        source: Where the table comes from: a name or a web address.
        publisher: Who publishes it.
        audience: For whom it is made, and maybe for what.

    >>> Publication(title="Visits", license="CC-BY-4.0").to_dict()
    {'title': 'Visits', 'license': 'CC-BY-4.0'}
    """

    title: str | None = None
    description: str | None = None
    license: str | None = None
    contact: str | None = None
    source: str | None = None
    publisher: str | None = None
    audience: str | None = None

    def __post_init__(self) -> None:
        for key, text in self.to_dict().items():
            if not isinstance(text, str) or not text.strip():
                raise InvalidSchema(f"publication: {key} must be {_KEYS[key]}, or left out")

    def to_dict(self) -> dict[str, str]:
        """Return what is stated, by name."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: text for name, text in found.items() if text is not None}


def require_publication(stated: object) -> None:
    """Refuse what is no publication, such as a dictionary of its words."""
    if stated is not None and not isinstance(stated, Publication):
        raise InvalidSchema(
            f"publication must be a Publication, not {type(stated).__name__}; write "
            'Publication(title="...", license="...")'
        )


class _PublicationFile(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of a publication, with their types."""

    title: str | None = None
    description: str | None = None
    license: str | None = None
    contact: str | None = None
    source: str | None = None
    publisher: str | None = None
    audience: str | None = None


def publication_schema() -> dict[str, Any]:
    """Describe the table [publication] as a JSON Schema."""
    return describe_keys(_PublicationFile, _KEYS)


def read_publication(plain: Any) -> Publication | None:
    """Read the table [publication] of a schema file."""
    if plain is None:
        return None
    with about("publication:"):
        found = convert_keys(plain, _PublicationFile, _KEYS)
    return Publication(**msgspec.structs.asdict(found))
