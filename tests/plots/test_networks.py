"""Networks are drawn from top to bottom, each node below all of its parents."""

import re

from dpublish.plots.networks import network

BOX = re.compile(r'<rect x="([\d.-]+)" y="([\d.]+)" width="([\d.]+)"[^>]*/><text[^>]*>([^<]*)<')


def boxes(drawn):
    return {name: (float(x), float(y), float(w)) for x, y, w, name in BOX.findall(drawn)}


def test_every_node_lies_below_its_parents_and_no_boxes_overlap():
    parents = {"a": [], "b": ["a"], "c": ["a", "b"], "d": ["b"], "e": []}
    found = boxes(network(parents))
    assert set(found) == set(parents)
    for node, above in parents.items():
        assert all(found[parent][1] < found[node][1] for parent in above), node
    for one, (x, y, width) in found.items():
        assert x >= 0
        assert x + width <= 720
        for other, (x2, y2, _) in found.items():
            if one != other and y == y2 and x2 >= x:
                assert x + width < x2, (one, other)


def test_many_nodes_of_one_layer_take_several_rows_and_long_names_are_cut():
    names = [f"{number} is a very long name of a column" for number in range(20)]
    found = boxes(network(dict.fromkeys(names, ())))
    rows = [y for _, y, _ in found.values()]
    assert len(set(rows)) == 4
    assert all(width <= 720 / rows.count(y) for _, y, width in found.values())
    assert sum(name.endswith("…") for name in found) == 18, "the last row has room for all of it"


def test_names_are_escaped_and_arrows_are_drawn_where_there_is_a_direction():
    drawn = network({"<a>": [], "b": ["<a>"]})
    assert "<a>" not in drawn
    assert 'marker-end="url(#tip)"' in drawn
    assert "marker" not in network({"a": [], "b": ["a"]}, is_directed=False)
