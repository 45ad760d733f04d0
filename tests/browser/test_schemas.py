"""The taxonomy editor and the form of a column in the real browser: mouse, keys, undo, checks."""

import pytest

from browser.checks import broken_words, sideways, violations
from dpublish.data.schema_file import load_schema
from studio_world import open_studio, write_files

WARD = "/schemas/taxonomy?schema=visits.toml&column=ward"
AGE = "/schemas/taxonomy?schema=visits.toml&column=age"
DRAFT = "/schemas/column?schema=draft.toml&column=cost"
PAGES = (
    *("/begin", "/begin/steps?data=visits.parquet", "/schemas", "/schemas/visits.toml", WARD, AGE),
    *("/schemas/column?schema=visits.toml&column=age", "/schemas/text?schema=visits.toml"),
    *(DRAFT, "/schemas/draft.toml"),
    "/schemas/bounds?schema=draft.toml&column=cost",
    "/schemas/bounds?schema=draft.toml&column=cost&dataset=visits&data=visits.parquet&epsilon=0.05",
)


@pytest.fixture
def world(tmp_path):
    write_files(tmp_path)
    draft = '[columns.cost]\nkind = "numeric"\n# bounds = [ , ]  # fill in\n'
    (tmp_path / "draft.toml").write_text(draft)
    with open_studio(tmp_path) as found:
        yield found


@pytest.fixture
def page(world, visit):
    opened = visit().open(f"{world.origin}/enter?token={world.access.make_token('owner')}")
    faults = []
    opened.on("pageerror", lambda fault: faults.append(str(fault)))
    opened.on("console", lambda said: faults.append(said.text))
    yield opened
    assert [each for each in faults if "410" not in each] == []  # 410: what is gone is told so


def tree(page):
    """List the shown nodes, with a mark for each level."""
    return page.evaluate(
        "[...document.querySelectorAll('#tree [data-id]')].map(item => "
        "'-'.repeat(item.ariaLevel - 1) + item.querySelector('.name').textContent)"
    )


def row(page, name):
    return page.locator("#tree .row").filter(has=page.get_by_text(name, exact=True))


def test_a_tree_is_drawn_by_mouse_and_saved(world, page):
    page.goto(world.origin + WARD)
    row(page, "north").click()
    page.get_by_role("button", name="Group", exact=True).click()
    page.keyboard.type("Cold")
    page.keyboard.press("Enter")
    assert tree(page) == ["Cold", "-north", "south", "west"]
    row(page, "south").drag_to(row(page, "Cold"))
    assert tree(page) == ["Cold", "-north", "-south", "west"]
    row(page, "west").drag_to(row(page, "north"), target_position={"x": 9, "y": 2})
    assert tree(page) == ["Cold", "-west", "-north", "-south"]
    row(page, "Cold").drag_to(row(page, "north"))  # not into itself
    assert tree(page) == ["Cold", "-west", "-north", "-south"]
    undo, redo = (page.get_by_role("button", name=name) for name in ("Undo", "Redo"))
    undo.click()
    undo.click()
    assert tree(page) == ["Cold", "-north", "south", "west"]
    redo.click()
    assert tree(page) == ["Cold", "-north", "-south", "west"]
    page.get_by_text("2 levels below the root").wait_for()
    assert violations(page) == []
    page.get_by_role("button", name="Save the taxonomy").click()
    page.get_by_text("Saved in visits.toml").wait_for()
    item = load_schema(world.folder / "visits.toml")["ward"]
    assert item.taxonomy.labels(1) == ("Cold", "west", "other")


def test_a_tree_is_drawn_by_keys_alone(world, page):
    page.goto(world.origin + WARD)
    page.locator("#tree [tabindex='0']").focus()
    keys = page.keyboard.press
    for key in ("ArrowDown", "Space", "ArrowDown", "Space", "g"):
        keys(key)
    page.keyboard.type("Warm & <b>dry</b>")
    keys("Enter")
    assert tree(page) == ["north", "Warm & <b>dry</b>", "-south", "-west"]
    keys("Alt+ArrowUp")
    assert tree(page)[-1] == "north"
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Alt+ArrowRight"):
        keys(key)
    assert tree(page)[1:] == ["-south", "-west", "-north"]
    keys("Alt+ArrowLeft")
    keys("Control+z")
    assert tree(page)[1:] == ["-south", "-west", "-north"]
    keys("Control+y")
    assert tree(page)[-1] == "north"
    keys("Home")
    keys("F2")
    page.keyboard.type("Warm")
    keys("Enter")
    assert tree(page)[0] == "Warm"
    keys("Delete")
    assert tree(page) == ["south", "west", "north"]
    assert page.url.endswith(WARD)


def test_ranges_are_grouped_in_order_and_faults_are_told_at_once(world, page):
    page.goto(world.origin + AGE)
    page.get_by_role("spinbutton").fill("5")
    page.get_by_role("button", name="Group in order").click()
    assert [name for name in tree(page) if name[0] != "-"] == ["0 to 49", "50 to 99"]
    page.get_by_text("2 levels below the root").wait_for()
    row(page, "90..99").drag_to(row(page, "0 to 49"))
    page.locator("#check").get_by_text("taxonomy has a gap").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("2 levels below the root").wait_for()


def test_the_form_of_a_column_shows_its_kind_and_checks_it(world, page):
    page.goto(world.origin + "/schemas/column?schema=visits.toml&column=age")
    page.get_by_label("Bins", exact=True).fill("25")
    page.get_by_text("25 cells").wait_for()
    page.get_by_label("Upper bound").fill("-5")
    page.get_by_text("the lower first").wait_for()
    page.get_by_label("Kind").select_option("category")
    assert not page.locator("#low").is_visible()
    page.get_by_label("Values, one a line").fill("young\nold")
    page.get_by_text("2 cells").wait_for()
    page.get_by_role("button", name="Save the column").click()
    page.wait_for_url("**/schemas/visits.toml")
    assert load_schema(world.folder / "visits.toml")["age"].labels == ("young", "old")


def test_a_comparison_shows_itself_and_is_gone_when_one_comes_back(world, page):
    page.goto(world.origin + "/schemas/visits.toml")
    page.get_by_role("button", name="Compare, NOT PRIVATE").click()
    page.get_by_text("1 value (0.11 %) is not listed").wait_for()
    assert violations(page) == []
    page.get_by_role("link", name="Back to the schema").click()
    page.wait_for_url("**/schemas/visits.toml")
    page.go_back()
    page.get_by_text("shown once and not kept").wait_for()
    assert "0.11 %" not in page.content()


def test_pages_are_sound_on_every_window(world, visit, screenshots):
    for look in ("light", "dark", "phone"):
        reader = visit(look)
        page = reader.open(f"{world.origin}/enter?token={world.access.make_token('owner')}")
        for path in PAGES if look != "dark" else (WARD, DRAFT):
            page.goto(world.origin + path)
            name = path.strip("/").replace("/", "-").partition("?")[0]
            page.screenshot(path=screenshots / f"studio-{name}-{look}.png", full_page=True)
            assert sideways(page) == 0, path
            assert look != "phone" or broken_words(page) == [], path
            assert look == "phone" or violations(page) == [], path
        assert reader.refused == []
