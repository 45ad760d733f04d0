"""The picture of a page is a figure of the release that the page's commands publish."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("draw_methods", ROOT / "tools" / "draw_methods.py")
draw_methods = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(draw_methods)

COMMANDS = """<!-- examples -->
# histogram

```text
$ dpublish datasets census -o census.csv --records 500 --ledger books.db
$ dpublish release --method histogram --columns sex --data census.csv --schema census.toml \\
    --epsilon 1 --ledger books.db --dataset census -o by-sex
```

"""

STREAM = """<!-- examples -->
# per-snapshot

```text
$ dpublish datasets taxis --records 50 --ledger books.db
$ dpublish stream start taxis.stream --method per-snapshot --columns zone --horizon 24 \\
    --schema taxis.toml --epsilon 1 --ledger books.db --dataset taxis -o by-hour
$ dpublish stream next taxis.stream hours/
```
"""


def page_with(tmp_path, picture):
    page = tmp_path / "histogram.md"
    page.write_text(f"{COMMANDS}<!-- picture: {picture} -->\n![Women and men](x.svg)\n", "utf-8")
    return page


def test_a_figure_of_the_release_of_the_page_is_drawn(tmp_path):
    target = tmp_path / "pictures" / "histogram.svg"
    figure = draw_methods.draw(page_with(tmp_path, "by-sex 0"), target)
    svg = target.read_text("utf-8")
    assert svg.startswith("<svg")
    assert "Female" in svg
    assert "Female" in figure.alt


def test_a_figure_that_is_not_there_is_noticed(tmp_path):
    with pytest.raises(ValueError, match=r"by-sex has 1 figures"):
        draw_methods.draw(page_with(tmp_path, "by-sex 7"), tmp_path / "histogram.svg")


def test_a_picture_too_large_for_a_page_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(draw_methods, "LARGEST", 1_000)
    with pytest.raises(ValueError, match="more than 1,000"):
        draw_methods.draw(page_with(tmp_path, "by-sex 0"), tmp_path / "histogram.svg")


@pytest.mark.parametrize(
    "text", ["", "<!-- picture: a 0 -->\n<!-- picture: b 1 -->", "<!-- picture: by-age -->"]
)
def test_a_page_shows_one_figure(text):
    with pytest.raises(ValueError, match="has one line"):
        draw_methods.picture_of(text)


def test_every_figure_is_written_to_choose_from(tmp_path, capsys):
    draw_methods.look(page_with(tmp_path, "by-sex 0"), tmp_path / "all")
    assert [each.name for each in (tmp_path / "all").iterdir()] == ["histogram--by-sex-0.svg"]
    assert "by-sex 0" in capsys.readouterr().out


def test_the_figures_of_a_stream_are_written_to_choose_from(tmp_path, capsys):
    page = tmp_path / "per-snapshot.md"
    page.write_text(STREAM, "utf-8")
    draw_methods.look(page, tmp_path / "all")
    names = sorted(each.name for each in (tmp_path / "all").iterdir())
    assert names == [f"per-snapshot--by-hour-{number}.svg" for number in range(4)]
    assert "by-hour 3" in capsys.readouterr().out
