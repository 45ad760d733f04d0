"""Items that belong to no experiment: drawings, notation, and claims about all mechanisms."""

from dpublish.experiments.reproduce.item import Item

ITEMS: tuple[Item, ...] = (
    Item(
        {"su-thesis": "Figure 2.1"},
        "Differential privacy by Laplace noise, drawn",
        "The densities of a noisy answer on two neighboring tables, whose ratio is at most e^ε.",
        tested="tests/mechanisms/test_noise.py",
        because="noise is drawn exactly on integers and lattices, and the test compares "
        "frequencies with the distribution that the proof assumes",
    ),
    Item(
        {"su-thesis": "Figure 2.2"},
        "The sample and aggregate framework, drawn",
        "A table is cut into blocks, each is analyzed, and the results are averaged with noise.",
        tested="tests/methods/linear_models/test_gupt.py",
        because="`gupt` and `gkm` deal records to blocks by independent draws, because one "
        "record more would shift all blocks that are cut by position",
    ),
    Item(
        {"su-thesis": "Section 2.2"},
        "Post-processing, sequential and parallel composition",
        "Shares of ε add up; releases from disjoint parts cost as much as one; what is computed "
        "from a release costs nothing.",
        tested="tests/privacy/test_budget.py",
        because="`tests/test_replay.py` replays every method on other tables, to see that a "
        "release depends on mechanisms' outputs alone",
    ),
    Item(
        {"su-thesis": "Theorems 2.3.1 and 2.3.2"},
        "The Laplace mechanism is private",
        "Noise of scale sensitivity/ε on each number makes a release ε-private.",
        tested="tests/mechanisms/test_noise.py",
        because="proved for exact samplers in docs/proofs/exact.md; no real number is rounded",
    ),
    Item(
        {"su-thesis": "Theorem 2.4.1, Corollary 3"},
        "The exponential mechanism, general and monotonic",
        "Probabilities in proportion to e^(ε q / 2Δ), or to e^(ε q / Δ) where all scores move the "
        "same way, are ε-private.",
        tested="tests/mechanisms/test_selection.py",
        because="one rule covers both: the noise follows how far two scores can move apart",
    ),
    Item(
        {"su-thesis": "Table 4.2"},
        "The methods of private k-means, listed",
        "Non-interactive: EUGkM, UG, MkM. Interactive: DPLloyd, DPLloyd-Impr, PGkM, GkM.",
        tested="tests/methods/kmeans",
        because="`dpublish methods` lists them with what they publish and when to prefer them; "
        "nothing is measured",
    ),
    Item(
        {"privgene": "Table 1"},
        "Notation",
        "The symbols of the paper.",
        tested="tests/test_vocabulary.py",
        because="our words for them are in docs/concepts/glossary.md; nothing is measured",
    ),
)
