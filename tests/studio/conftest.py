"""One running studio for a test."""

import pytest

from studio_world import open_studio, write_files


@pytest.fixture
def world(tmp_path):
    write_files(tmp_path)
    with open_studio(tmp_path) as found:
        yield found
