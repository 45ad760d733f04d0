"""Files that a browser sends: into the studio's folder, under their own name, replacing nothing."""

import shutil
from pathlib import Path

from starlette.datastructures import UploadFile

from dpublish.errors import InvalidParameter
from dpublish.storage.files import whole_file
from dpublish.studio.desk import Desk


def keep_upload(
    desk: Desk, sent: UploadFile | None, endings: tuple[str, ...], most_bytes: int | None = None
) -> Path:
    """Write a file that was sent into the folder, whole or not at all."""
    name = "" if sent is None else sent.filename or ""
    if sent is None or not name:
        raise InvalidParameter("choose a file to upload")
    path = desk.new_file(name)
    if not path.name.endswith(endings):
        raise InvalidParameter(f"the name of the file must end in one of {', '.join(endings)}")
    if most_bytes is not None and (sent.size or 0) > most_bytes:
        raise InvalidParameter(f"the file is larger than {most_bytes >> 10:,} kB")
    with whole_file(path) as draft, draft.open("wb") as file:
        shutil.copyfileobj(sent.file, file, 1 << 20)
    return path
