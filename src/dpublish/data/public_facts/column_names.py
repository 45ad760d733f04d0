"""Column names as words: `PatientAge_years` is patient, age, years."""

import re
import unicodedata

_WORDS = re.compile(r"[a-z]+|[0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

LINKS = frozenset({"at", "of", "on", "in", "to", "from", "by", "per", "when", "for", "bei", "de"})
"""Words behind which a name says which: the head of `age_at_admission` is age."""

FILLERS = frozenset({"value", "values", "code", "codes", "cd", "col", "field", "var", "num"})
"""Words at the end of a name that say nothing of their own."""


def words_of(name: str) -> tuple[str, ...]:
    """Split a name into words, without accents and in small letters.

    >>> words_of("PatientAge_years"), words_of("Âge (ans)"), words_of("icd10")
    (('patient', 'age', 'years'), ('age', 'ans'), ('icd', '10'))
    """
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return tuple(_WORDS.findall(_CAMEL.sub(" ", plain).lower()))


def without_fillers(words: tuple[str, ...]) -> tuple[str, ...]:
    """Drop numbers and words that say nothing from the end of a name, but not all of it.

    >>> without_fillers(("sex", "code", "2"))
    ('sex',)
    """
    while len(words) > 1 and (words[-1] in FILLERS or words[-1].isdigit()):
        words = words[:-1]
    return words


def head_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words before the first one that links: those of what is named.

    >>> head_of(("age", "at", "admission")), head_of(("of", "age"))
    (('age',), ('of', 'age'))
    """
    cut = next((i for i, word in enumerate(words) if i and word in LINKS), len(words))
    return words[:cut]
