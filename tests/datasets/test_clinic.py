"""The table on which a first hour is tried."""

from dpublish import datasets
from dpublish.data.proposals import propose


def test_it_has_24_columns_of_text_of_all_sorts():
    visits = datasets.clinic(200)
    assert visits.num_columns == 24
    assert visits.equals(datasets.clinic(200))
    assert not visits.equals(datasets.clinic(200, seed=1))
    roles = [propose(name).role for name in visits.column_names]
    assert (roles.count("identifier"), roles.count("text")) == (5, 1)
    blank = [name for name in visits.column_names if "" in visits[name].to_pylist()]
    assert {"age", "bmi", "discharged", "charges"} <= set(blank)
    assert "" not in visits["patient_id"].to_pylist()


def test_its_lists_hold_what_the_table_has(tmp_path):
    datasets.write_clinic(tmp_path, 200)
    visits = datasets.clinic(200)
    for column, file in (("ward", "wards.csv"), ("diagnosis", "diagnoses.csv")):
        lines = (tmp_path / file).read_text().splitlines()[1:]
        listed = {line.split(",")[0] for line in lines}
        assert set(visits[column].to_pylist()) - listed <= {"U07"}
