"""What tests share: a seeded source, and a small table with its schema."""

import os
import warnings
from pathlib import Path

import pytest
from hypothesis import settings

from dpublish.randomness import seeded
from postgres_server import require_programs, running_server
from spark_cluster import require_java, running_cluster

# The same cases every time, however busy the machine: a red test is a bug.  `make audit` looks
# for new ones.
settings.register_profile("dpublish", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dpublish"))

ROOT = Path(__file__).resolve().parent.parent


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Give tests of one xdist group the names by which xdist keeps them in one worker.

    xdist 3.8 writes the group into an attribute that pytest 9.2 no longer reads, so that all
    workers ran tests of every group.
    """
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        names = sorted({str(mark.args[0]) for mark in item.iter_markers("xdist_group")})
        if names and "@" not in item.nodeid.rpartition("]")[2]:
            item._id = type(item.id).parse(f"{item.nodeid}@{'_'.join(names)}")


@pytest.fixture
def rng():
    return seeded(20240229)


@pytest.fixture(scope="session")
def real_data():
    """Folder of real datasets; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("DPUBLISH_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real datasets here (set DPUBLISH_DATA to a folder that has them)")
    return folder


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server on loopback; tests that need it are skipped where there is none."""
    require_programs()
    with running_server() as server:
        yield server


@pytest.fixture
def postgres_database(postgres_server):
    """The address of an empty database of the test's own."""
    with postgres_server.database() as name:
        yield postgres_server.uri(name)


@pytest.fixture(scope="session")
def spark_cluster():
    """A Spark cluster with two executors; tests that need it are skipped where Java is missing."""
    require_java()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark warns of versions of pandas
        cluster = running_cluster()
        started = cluster.__enter__()
    yield started
    cluster.__exit__(None, None, None)
