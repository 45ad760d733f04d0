"""Draw the picture of each method's page, from the release that the page's own commands publish.

    python tools/draw_methods.py NAME ...           write docs/pictures/methods/NAME.svg
    python tools/draw_methods.py                    all pages
    python tools/draw_methods.py --look FOLDER NAME ...
                                                    write every figure there, to choose from

A page says which figure it shows in the line before the image:

    <!-- picture: FOLDER FIGURE -->

FOLDER is a release folder that the page's commands write (see page_examples.py), and FIGURE is
the index of a figure in the section of its report.  Releases are not seeded, so a picture
differs a little from run to run.  A picture follows the reader's scheme of colors.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dpublish import load
from dpublish.plots.inline import in_either_scheme
from dpublish.report.charts import standalone
from dpublish.report.section import Figure, section_of

sys.path.insert(0, str(Path(__file__).resolve().parent))
import page_examples

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES, PICTURES = DOCS / "methods", DOCS / "pictures" / "methods"
LARGEST = 150_000
"""Characters of a picture: the site puts it into the page."""
_DESCRIBED_BY = ("release.json", "stream.json")
"""A release folder has one of these files; a stream's has the second."""
_PICTURE = re.compile(r"^<!-- picture: (\S+) (\d+) -->$", re.MULTILINE)


class Picture(NamedTuple):
    """The release folder and the index of the figure that a page shows."""

    folder: str
    figure: int


def picture_of(text: str) -> Picture:
    r"""Read which figure a page shows.

    >>> picture_of("some text\n<!-- picture: by-age 0 -->\n![Counts](counts.svg)")
    Picture(folder='by-age', figure=0)
    """
    found = _PICTURE.findall(text)
    if len(found) != 1:
        raise ValueError(f"a page has one line <!-- picture: FOLDER FIGURE -->, not {len(found)}")
    return Picture(found[0][0], int(found[0][1]))


def run_page(text: str, folder: Path) -> list[str]:
    """Run the commands of a page in a folder; say what they print that the page does not."""
    found = []
    for example in page_examples.examples(text):
        said = page_examples.difference(example, page_examples.run(example.command, folder))
        found += [] if said is None else [said]
    return found


def figures_of(release_folder: Path) -> Sequence[Figure]:
    """Return the figures of a release's report."""
    return section_of(load(release_folder)).figures


def release_folders(folder: Path) -> Sequence[Path]:
    """List the release folders below a folder, those of streams among them."""
    described = (found for name in _DESCRIBED_BY for found in folder.rglob(name))
    return sorted(found.parent for found in described)


def draw(page: Path, target: Path) -> Figure:
    """Run a page and write the figure that it shows."""
    text = page.read_text("utf-8")
    shown = picture_of(text)
    with tempfile.TemporaryDirectory() as folder:
        different = run_page(text, Path(folder))
        if different:
            print(f"{page.stem}: the page says otherwise", *different, sep="\n", file=sys.stderr)
        figures = figures_of(Path(folder) / shown.folder)
    if shown.figure >= len(figures):
        raise ValueError(f"{page.stem}: {shown.folder} has {len(figures)} figures, counted from 0")
    figure = figures[shown.figure]
    if len(figure.svg) > LARGEST:
        raise ValueError(f"{page.stem}: {len(figure.svg):,} characters are more than {LARGEST:,}")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(standalone(in_either_scheme(figure.svg)).rstrip("\n") + "\n", "utf-8")
    return figure


def look(page: Path, target: Path) -> None:
    """Run a page and write every figure of the releases that it leaves."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run_page(page.read_text("utf-8"), Path(folder))
        for found in release_folders(Path(folder)):
            name = found.relative_to(folder).as_posix()
            for position, figure in enumerate(figures_of(found)):
                file = target / f"{page.stem}--{name.replace('/', '-')}-{position}.svg"
                file.write_text(figure.svg, "utf-8")
                print(f"{page.stem}: {name} {position}: {len(figure.svg):,}: {figure.alt}")


def main(words: Sequence[str]) -> int:
    """Draw the pictures of pages, or all figures that there are to choose from."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the pages of methods.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--look", type=Path, metavar="FOLDER")
    asked = parser.parse_args(words)
    every = sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "index")
    for name in asked.names or every:
        if asked.look is not None:
            look(PAGES / f"{name}.md", asked.look)
            continue
        figure = draw(PAGES / f"{name}.md", PICTURES / f"{name}.svg")
        print(f"{name}: {len(figure.svg):,} characters: {figure.alt or figure.caption}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
