"""Rehearsals of a plan as work in the background: what they are about, and their keys.

A rehearsal reads public rows only, spends nothing, and is kept in memory alone.  Its key is a
digest of all that it depends on, so that the same one is computed once.
"""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from glob import glob
from hashlib import sha256
from pathlib import Path
from typing import Any

from dpublish.core.folder.folder import HEAD, folder_hash
from dpublish.core.method import Method
from dpublish.core.run import Progress
from dpublish.data.schema import Schema
from dpublish.data.schema_file import dumps_toml
from dpublish.errors import InputError, InvalidParameter
from dpublish.planning.goals import Goal
from dpublish.planning.measures import Measure, measurer_class, require_rehearsed
from dpublish.planning.rehearsal import Rehearsal
from dpublish.planning.rehearse import EPSILONS, REPEATS, describe, rehearse
from dpublish.planning.stand_in import SIMULATED, parse_shares
from dpublish.privacy.epsilon import format_epsilon
from dpublish.storage.address import is_address
from dpublish.studio.asked import Asked, read_count
from dpublish.studio.desk import Desk
from dpublish.studio.jobs import Job, Jobs
from dpublish.studio.study import Study
from dpublish.studio.visit import address

ORIGINS = {
    "release": "an earlier release of the studio's folder, which is public",
    "table": "a public table of the studio's folder",
    SIMULATED: "a simulation from the schema, with the shares that are stated",
}
"""What may stand in for the private rows."""
DEFAULT_TRIED = ", ".join(format_epsilon(each) for each in EPSILONS)
_MOST_REPEATS = 50
_MOST_TRIED = 20
_KEY = "rehearsal"


@dataclass(frozen=True)
class Rehearsing:
    """A rehearsal of one plan.

    Attributes:
        study: The plan.
        method: Its method.
        schema: What is publicly known of the private table.
    """

    study: Study
    method: Method[Any]
    schema: Schema

    @classmethod
    def of(cls, study: Study) -> "Rehearsing":
        """Prepare the rehearsal of a plan; refuse a method that is not rehearsed."""
        if study.is_stream:
            require_rehearsed(study.wanted.method, "streams")
        method, schema = study.method, study.schema
        if not isinstance(method, Method) or schema is None:
            raise InvalidParameter("choose a schema and a method, with its settings, to rehearse")
        require_rehearsed(method.name, method.task)
        return cls(study, method, schema)

    @property
    def asked(self) -> Asked:
        """The fields of the page."""
        return self.study.asked

    @cached_property
    def goal(self) -> Goal | None:
        """What the release is for."""
        return Goal.parse(self.asked.goal, self.schema) if self.asked.goal else None

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """What is measured."""
        return measurer_class(self.method, self.schema, self.goal).measures

    @cached_property
    def about(self) -> str:
        """A digest of what is rehearsed, whatever stands in."""
        return _digest(describe(self.method), dumps_toml(self.schema), str(self.goal))

    def is_of(self, key: str) -> bool:
        """Whether a key is that of a rehearsal of this plan."""
        return key.startswith(f"{_KEY}-{self.about}-")

    def start(self, jobs: Jobs) -> Job:
        """Begin the rehearsal, or find the same one."""
        stand_in, digest = self._stand_in()
        options = self._options()
        told = {name: str(text) for name, text in options.items()}
        rest = _digest(digest, json.dumps(told, sort_keys=True))
        key = f"{_KEY}-{self.about}-{rest}"

        def work(progress: Progress) -> Rehearsal:
            return rehearse(
                self.method, self.schema, stand_in=stand_in, progress=progress, **options
            )

        back = address("/plan", **replace(self.study.stated, rehearsal=key).query())
        title = f"Rehearsing {self.method.name}"
        return jobs.start_once(key, title, work, back=back, is_aside=True)

    def _options(self) -> dict[str, Any]:
        asked = self.asked
        repeats = read_count(asked.repeats, "the number of repeats") or REPEATS
        tried = [each.strip() for each in asked.tried.split(",") if each.strip()]
        if repeats > _MOST_REPEATS or len(tried) > _MOST_TRIED:
            raise InvalidParameter(
                f"take at most {_MOST_TRIED} epsilons and {_MOST_REPEATS} repeats; the command "
                "line takes more"
            )
        return {
            "epsilons": tried or None,
            "n_records": self.study.n_records,
            "repeats": repeats,
            "wanted": asked.enough or None,
            "goal": self.goal,
        }

    def _stand_in(self) -> tuple[Any, str]:
        """Find the rows that stand in, and a digest of them."""
        find = {"release": self._earlier, "table": self._table, SIMULATED: self._simulation}
        if self.asked.origin not in find:
            raise InvalidParameter(
                "choose what stands in for the private rows: an earlier release, a public table, "
                "or a simulation"
            )
        return find[self.asked.origin]()

    def _earlier(self) -> tuple[Any, str]:
        if not self.asked.release:
            raise InvalidParameter("choose the earlier release that stands in")
        folder = self._desk.release(self.asked.release)
        if not (folder / HEAD).is_file():
            raise InvalidParameter(
                f"{self.asked.release} is a stream, which gives no rows to rehearse on; take "
                "another release, a public table or a simulation"
            )
        return folder, _digest(str(folder), folder_hash(folder))

    def _table(self) -> tuple[Any, str]:
        """Find a public table; one that is to be published from is refused."""
        asked = self.asked
        if not asked.public:
            raise InvalidParameter("choose the public table that stands in")
        found = self._desk.file(asked.public)
        if self._is_private(found):
            raise InvalidParameter(
                f"{asked.public} is the table of this plan, which is private: a rehearsal would "
                "show what it holds and spend nothing; take a public table"
            )
        if asked.is_public != "yes":
            raise InvalidParameter(
                f"confirm that {asked.public} is public: a rehearsal shows what its rows are like, "
                "and no budget pays for that"
            )
        state = found.stat()
        return str(found), _digest(str(found), str(state.st_mtime_ns), str(state.st_size))

    def _is_private(self, found: Path) -> bool:
        """Whether a file is the table that the plan is about or a named source, by any name."""
        name, sources = self.asked.wanted.data, self._desk.sources
        located = [each.location for each in sources.values() if not is_address(each.location)]
        private = {path for each in located for path in (each, *glob(each)) if Path(path).exists()}
        if name and name not in sources:
            with suppress(InputError):  # it is not there
                private.add(str(self._desk.file(name)))
        return any(found.samefile(each) for each in private) or (
            not name and self._has_the_schema(found)
        )

    def _has_the_schema(self, found: Path) -> bool:
        """Whether the schema of the plan lies beside a file, and is called like it."""
        schema = self._desk.schema(self.asked.wanted.schema)
        return found.parent == schema.parent and found.name.partition(".")[0] == schema.stem

    def _simulation(self) -> tuple[Any, str]:
        shares = parse_shares(self.asked.shares, "what is stated of shares")
        return shares, _digest(json.dumps(shares, sort_keys=True, default=str))

    @property
    def _desk(self) -> Desk:
        return self.study.desk


def rehearsals(jobs: Jobs) -> list[Job]:
    """List the rehearsals that run."""
    return [job for job in jobs.running() if job.key.startswith(f"{_KEY}-")]


def _digest(*texts: str) -> str:
    return sha256("\0".join(texts).encode()).hexdigest()[:32]
