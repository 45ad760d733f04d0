"""Fuzz what an owner types: epsilons, settings, queries and schema files."""

import random  # noqa: TID251 - chooses cases, not noise
from collections.abc import Iterator
from pathlib import Path

from campaign.world import PEOPLE, Clock, Result, release_words, run, write_inputs

CODES = {0, 1, 2, 3}
EPSILONS = [
    *("1e-400", "1/0", "∞", "١", "0", "-1", "1e400", "1e99", "1e-99", "9" * 30, "9" * 400, "1/3"),
    *("1 / 3", "nan", "inf", "0x1", "1_0", " 1 ", "+1", "1.", ".5", "", " ", "1,5", "½", "e1"),
    *("1/" + "9" * 1000, "9" * 1001 + "/1", "1\n", "0/5", "1000000", "1000001", "²", "0e0"),
]
TEXTS = [
    *("", " ", "a\nb", "<script>alert(1)</script>", "{{7*7}}", "../../etc/passwd", "\u202egnp"),
    *("\ufeff", "e\u0301", "NaN", "inf", "1e999", "9" * 400, "x" * 5000, "%s%n", '"', "\\", "😀"),
    *("__class__", "age", "(missing)", "other", "None", "null", "a,b", "[x]", "\x1b[31m", "-0"),
]
WORDS = [
    *("age", "sex", "hours", "income", "and", "in", "or", "not", "=", "!=", "<", "<=", ">", ">="),
    *(
        "..",
        "{",
        "}",
        ",",
        '"',
        "'",
        "30",
        "40",
        "-1",
        "1e400",
        "nan",
        "Female",
        '"<=50K"',
        "(",
        ")",
    ),
]
SETTINGS = ("columns", "column", "target", "count", "clusters", "rounds", "threshold", "depth")
VALUES = ("0", "1", "-1", "1e9", "999999999999", "nan", "true", "auto", "x", "", "age", "age,age")
METHODS = ("histogram", "marginals", "topk", "dpcopula", "privbayes", "ug", "kmeans", "privpfc")


def inputs(folder: Path, rng: random.Random, clock: Clock) -> Iterator[Result]:
    """Whatever is typed, the command ends with a code and a sentence of its own."""
    write_inputs(folder, records=50)
    done = run(release_words("ages"), folder)
    yield Result("a release to ask", "" if done.code == 0 else done.text)
    makers = (_epsilon, _settings, _query, _schema)
    for number in range(100_000):
        if clock.is_over:
            return
        words, what = makers[number % len(makers)](folder, rng, number)
        done = run(words, folder, seconds=60)
        problem = ""
        if done.code not in CODES or "Traceback" in done.text:
            problem = f"exit {done.code}: {done.text[-300:]}"
        elif "\x1b" in done.text:
            problem = "a terminal escape gets through"
        yield Result(f"{what}, {number}", problem)


def _epsilon(folder: Path, rng: random.Random, number: int) -> tuple[list[str], str]:
    text = rng.choice(EPSILONS)
    if rng.random() < 0.5:
        text = "".join(rng.choice("0123456789./eE+- ١²∞") for _ in range(rng.choice([1, 3, 6, 40])))
    if rng.random() < 0.5:
        words = release_words(f"out/{number}", epsilon=text)
        words[words.index("--epsilon") : words.index("--epsilon") + 2] = [f"--epsilon={text}"]
        return words, f"release with epsilon {text[:60]!r}"
    method = ["--method", "histogram", "--columns", "age,sex", "--schema", "people.toml"]
    return ["plan", *method, f"--epsilon={text}"], f"plan with epsilon {text[:60]!r}"


def _settings(folder: Path, rng: random.Random, number: int) -> tuple[list[str], str]:
    chosen = [
        f"--{rng.choice(SETTINGS)}={rng.choice(VALUES + tuple(TEXTS))}".replace("\x00", "")
        for _ in range(rng.randint(1, 3))
    ]
    method = rng.choice(METHODS)
    words = ["plan", "--method", method, *chosen, "--schema", "people.toml", "--epsilon", "1"]
    return words, f"plan of {method} with {str(chosen)[:80]}"


def _query(folder: Path, rng: random.Random, number: int) -> tuple[list[str], str]:
    parts = [rng.choice(WORDS + TEXTS) for _ in range(rng.choice([0, 1, 3, 3, 5, 7, 9]))]
    if rng.random() < 0.02:
        parts = ["age in {" + "1," * 4000 + "1}"]
    query = " ".join(parts)
    return ["count", "ages", "--", query], f"query {query[:60]!r}"


def _schema(folder: Path, rng: random.Random, number: int) -> tuple[list[str], str]:
    text = bytearray(PEOPLE.encode())
    for _ in range(rng.choice([1, 1, 3, 10])):
        index = rng.randrange(len(text))
        if rng.random() < 0.5:
            text[index] = rng.randrange(256)
        else:
            text[index:index] = rng.choice(TEXTS).encode()
    (folder / "odd.toml").write_bytes(bytes(text))
    return ["schema", "check", "odd.toml"], "schema file"
