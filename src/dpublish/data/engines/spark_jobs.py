"""Run tasks on a Spark cluster, and hide why they failed if they did.

Spark's errors quote rows and tracebacks.  Of an error only is looked at which of the few fixed
messages of our tasks it holds.
"""

import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

from dpublish.data.engines.messages import _draws
from dpublish.data.engines.source import quietly
from dpublish.data.engines.spark_files import SparkFiles
from dpublish.data.engines.spark_plan import IGNORING
from dpublish.data.engines.spark_tasks import BLOBS, LOST, LostRows, Task, run_task
from dpublish.errors import DPublishError, InvalidParameter, UnreadableData

T = TypeVar("T")
_GONE = (LOST, "Checkpoint block")  # the second is Spark's word for kept rows that are lost


@dataclass(frozen=True)
class Job:
    """A plan of what tasks do; nothing runs before its blobs are fetched."""

    data: Any

    def map(self, task: Task, yields: str = BLOBS) -> "Job":
        """Run a task on every partition."""
        run = partial(run_task, ship(task))
        with silent():
            return Job(self.data.mapInArrow(run, yields))

    def exchange(self, width: int) -> "Job":
        """Send all blobs of one target to the same of `width` tasks."""
        return Job(self.data.repartition(width, "target"))

    def blobs(self) -> list[Any]:
        """Run everything and fetch what comes out of the last tasks."""
        return [blob.as_buffer() for blob in self.data.select("blob").toArrow().column("blob")]


def ship(task: Task) -> bytes:
    """Pickle a task for the workers, which have this package but not that of a foreign kernel."""
    cloudpickle: Any = import_module("pyspark.cloudpickle")
    with ExitStack() as stack:
        for module in _foreign(task):
            if module.__name__ not in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.register_pickle_by_value(module)
                stack.callback(cloudpickle.unregister_pickle_by_value, module)
        return _pickle(task, cloudpickle.Pickler)


def _pickle(task: Task, pickler: Any) -> bytes:
    """Pickle a task unless it holds a stream of random words, which each worker would repeat."""

    class Checked(pickler):  # type: ignore[misc]
        def reducer_override(self, item: Any) -> Any:
            if _draws(item):
                raise InvalidParameter(
                    "a kernel with a random generator cannot go to Spark, where every partition "
                    "would draw the same words; keep it in a field `rng` of a dataclass, as a "
                    "source of dpublish.randomness"
                )
            return super().reducer_override(item)

    file = io.BytesIO()
    Checked(file).dump(task)
    return file.getvalue()


def _foreign(task: Task) -> list[Any]:
    """Find the module of a kernel of another package, and the package itself."""
    adding = getattr(task, "adding", None)
    name = "dpublish" if adding is None else type(adding.kernel).__module__
    top = name.partition(".")[0]
    if top in ("dpublish", "__main__"):
        return []
    return [sys.modules[one] for one in dict.fromkeys((name, top)) if one in sys.modules]


def ask(files: SparkFiles, action: Callable[[], T]) -> T:
    """Run jobs that read rows; refuse an answer if the files changed meanwhile."""
    _require_as_opened(files)
    answer = _quietly(action, files.label)
    _require_as_opened(files)
    return answer


def _require_as_opened(files: SparkFiles) -> None:
    def check() -> None:
        require_whole(files.session)
        files.session.sparkContext.setLogLevel("OFF")  # it may have been raised meanwhile

    with silent():
        quietly(check, f"the Spark session of {files.label} has ended; open it anew")
    files.require_same()


def require_whole(session: Any) -> None:
    """Refuse a session in which Spark may leave out files; that can be set at any time."""
    for name in (f"spark{kind}.files.{what}" for kind in (".sql", "") for what in IGNORING):
        if session.conf.get(name, "false").lower() == "true":
            raise InvalidParameter(
                f"{name} is true, so that some rows would be left out unnoticed; set {name}=false"
            )


def _quietly(action: Callable[[], T], label: str) -> T:
    try:
        with silent():
            return action()
    except (DPublishError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - Spark quotes rows
        is_lost = any(sign in str(error) for sign in _GONE)
    if is_lost:  # outside of the `except`: no context holds the reason
        raise LostRows
    raise UnreadableData(
        f"Spark could not read {label} to its end; check that all of it can be read, and that "
        "executors are alive and have enough memory"
    )


@contextmanager
def silent() -> Iterator[None]:
    """Keep back what PySpark logs and warns of: its errors quote rows, in its own log, too."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
