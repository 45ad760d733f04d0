"""The one list of recipes: the command line, the plan, the experiments and the tests read it.

An entry names where a recipe lives without importing it, so that asking for help is quick.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from fractions import Fraction
from importlib import import_module
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from dpublish.errors import InvalidParameter, require_known
from dpublish.privacy.epsilon import parse_epsilon
from dpublish.release.recipe import Recipe


@dataclass(frozen=True)
class Entry:
    """A recipe's place and purpose."""

    location: str
    task: str
    publishes: str
    prefer: str


RECIPES: Mapping[str, Entry] = {
    "histogram": Entry(
        location="dpublish.synthesis.histograms.noisy:NoisyHistogram",
        task="counting",
        publishes="noisy counts over chosen columns; rows and range counts follow for free",
        prefer="a few columns matter and every cell should have an error bar",
    ),
    "privpfc": Entry(
        location="dpublish.classification.grid_choice:GridChoice",
        task="classification",
        publishes="a noisy grid of the columns that foretell a class best; rows to train on and "
        "predictions follow for free",
        prefer="others will train classifiers, or you want the most accurate one",
    ),
    "diffgen": Entry(
        location="dpublish.classification.specialisation:Specialisation",
        task="classification",
        publishes="noisy class counts over cells refined step by step through taxonomies; rows "
        "to train on and predictions follow for free",
        prefer="columns have taxonomies, and others will train classifiers on the result",
    ),
    "pph": Entry(
        location="dpublish.classification.projection:Projection",
        task="classification",
        publishes="noisy class counts over a few chosen columns; rows to train on and "
        "predictions follow for free",
        prefer="a few columns tell the classes apart together, and there are no taxonomies",
    ),
    "privbayes": Entry(
        location="dpublish.synthesis.bayes_network:PrivateBayesNetwork",
        task="synthesis",
        publishes="a network of columns with noisy joint counts; rows of all columns and "
        "predictions follow for free",
        prefer="many columns matter together, and the later use of the rows is open",
    ),
    "diffpid3": Entry(
        location="dpublish.classification.decision_tree:PrivateDecisionTree",
        task="classification",
        publishes="a decision tree with noisy class counts; rules and predictions follow",
        prefer="the model itself should be read, and a few splits say most of it",
    ),
    "majority": Entry(
        location="dpublish.classification.majority:MajorityClass",
        task="classification",
        publishes="the commonest class, and nothing else",
        prefer="a baseline is wanted that every classifier has to beat",
    ),
    "kmeans": Entry(
        location="dpublish.clustering.kmeans.default:PrivateCentres",
        task="clustering",
        publishes="centres of clusters, and the synopsis they were found in; rows, labels and "
        "other numbers of clusters follow for free",
        prefer="you want centres, and no certain paper's method",
    ),
    "dplloyd": Entry(
        location="dpublish.clustering.kmeans.lloyd:Lloyd",
        task="clustering",
        publishes="centres of clusters after some noisy rounds of k-means; labels follow for free",
        prefer="you want the plain method that others are compared with",
    ),
    "dplloyd-impr": Entry(
        location="dpublish.clustering.kmeans.improved_lloyd:ImprovedLloyd",
        task="clustering",
        publishes="centres of clusters after a few well-shared noisy rounds of k-means",
        prefer="only centres are needed, and there are too many columns for a grid",
    ),
    "eugkm": Entry(
        location="dpublish.clustering.kmeans.grid_synopsis:ExtendedUniformGrid",
        task="clustering",
        publishes="a noisy grid sized for clustering, and the centres found in it",
        prefer="two or three columns, and the paper's rule for the grid is wanted",
    ),
    "ugkm": Entry(
        location="dpublish.clustering.kmeans.grid_synopsis:UniformGrid",
        task="clustering",
        publishes="a noisy grid sized for range counts, and the centres found in it",
        prefer="the grid itself will be counted in, too",
    ),
    "mkm": Entry(
        location="dpublish.clustering.kmeans.grid_synopsis:EstimatorGrid",
        task="clustering",
        publishes="a noisy grid whose size does not depend on epsilon, and the centres found in it",
        prefer="a baseline of the grid methods is wanted",
    ),
    "hybrid": Entry(
        location="dpublish.clustering.kmeans.hybrid:Hybrid",
        task="clustering",
        publishes="a noisy grid, and its centres moved by one noisy round of k-means",
        prefer="few columns, many records, and the paper's rule is wanted",
    ),
    "gkm": Entry(
        location="dpublish.clustering.kmeans.block_mean:BlockMean",
        task="clustering",
        publishes="centres averaged over the clusterings of random blocks of records",
        prefer="a generic method is wanted to compare with",
    ),
    "pgkm": Entry(
        location="dpublish.clustering.kmeans.evolved:EvolvedCentres",
        task="clustering",
        publishes="centres found by evolution under private selection",
        prefer="PrivGene is wanted to compare with; few clusters in two columns",
    ),
    "privthr": Entry(
        location="dpublish.clustering.wavecluster.noisy_threshold:NoisyThresholdWaves",
        task="shapes",
        publishes="clusters of any shape as labelled cells of a noisy grid",
        prefer="clusters have shapes that no centre describes",
    ),
    "privthr-em": Entry(
        location="dpublish.clustering.wavecluster.chosen_threshold:ChosenThresholdWaves",
        task="shapes",
        publishes="clusters of any shape, and the threshold that their cells reach",
        prefer="clusters stand far above the noise, and the threshold matters",
    ),
    "privqt": Entry(
        location="dpublish.clustering.wavecluster.quantised:QuantisedWaves",
        task="shapes",
        publishes="a noisy grid, and the clusters of any shape that it shows",
        prefer="only the noisy grid is wanted, or few cells are to be significant",
    ),
    "wave-baseline": Entry(
        location="dpublish.clustering.wavecluster.synthetic:SyntheticWaves",
        task="shapes",
        publishes="clusters of any shape in an adaptive grid",
        prefer="a baseline is wanted that the other wave methods have to beat",
    ),
    "topc": Entry(
        location="dpublish.ranking.frequent_values:FrequentValues",
        task="ranking",
        publishes="the c most frequent values of a column or items of baskets, in order",
        prefer="the domain is large and only its most frequent values matter",
    ),
}


@dataclass(frozen=True)
class Setting:
    """A recipe's setting as users see it."""

    name: str
    help: str
    type_name: str
    default: Any
    is_required: bool


def recipe_class(name: str) -> type[Recipe]:
    """Import the recipe called `name`."""
    require_known("method", name, RECIPES)
    module, _, attribute = RECIPES[name].location.partition(":")
    found: type[Recipe] = getattr(import_module(module), attribute)
    return found


def recipe_settings(name: str) -> list[Setting]:
    """List the settings of the recipe called `name`."""
    kind = recipe_class(name)
    hints = get_type_hints(kind)
    return [
        Setting(
            name=item.name,
            help=item.metadata["help"],
            type_name=_type_name(hints[item.name]),
            default=None if item.default is MISSING else item.default,
            is_required=item.default is MISSING,
        )
        for item in _fields(kind)
    ]


def make_recipe(name: str, settings: Mapping[str, Any]) -> Recipe:
    """Build a recipe from settings, given as values or as text from a command line or file."""
    kind = recipe_class(name)
    known = {item.name: item for item in _fields(kind)}
    hints = get_type_hints(kind)
    for given in settings:
        require_known(f"setting of {name}", given, known)
    absent = [n for n, item in known.items() if item.default is MISSING and n not in settings]
    if absent:
        options = ", ".join(f"--{option.replace('_', '-')}" for option in absent)
        raise InvalidParameter(f"{name} needs {options}; see: dpublish methods {name}")
    return kind(**{n: _convert(v, hints[n], n) for n, v in settings.items()})


def _fields(kind: type[Recipe]) -> tuple[Field[Any], ...]:
    return fields(kind)  # type: ignore[arg-type]


def _convert(value: Any, wanted: Any, name: str) -> Any:
    """Turn text (or a plain JSON value) into the wanted type; leave other values to the recipe."""
    if get_origin(wanted) in (UnionType, Union):
        return _convert_union(value, get_args(wanted), name)
    if get_origin(wanted) is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        return tuple(_convert(_stripped(part), get_args(wanted)[0], name) for part in parts)
    if get_origin(wanted) is Literal:
        require_known(f"value for {name}:", str(value), [str(v) for v in get_args(wanted)])
        return value
    if wanted is Fraction:
        return parse_epsilon(value, name)
    if wanted is str or not isinstance(value, str):
        return value
    return _from_text(value, wanted, name)


def _stripped(part: Any) -> Any:
    return part.strip() if isinstance(part, str) else part


def _convert_union(value: Any, choices: tuple[Any, ...], name: str) -> Any:
    if value is None or (isinstance(value, str) and value.lower() == "none"):
        return None
    problem: InvalidParameter | None = None
    for choice in choices:
        if choice is type(None):
            continue
        try:
            return _convert(value, choice, name)
        except InvalidParameter as error:
            problem = error
    raise problem or InvalidParameter(f"{name} ({value!r}) cannot be read")


def _from_text(text: str, wanted: Any, name: str) -> Any:
    if wanted is bool:
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if text.lower() not in words:
            raise InvalidParameter(f"{name} ({text!r}) must be true or false")
        return words[text.lower()]
    try:
        return wanted(text)
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} ({text!r}) must be {_type_name(wanted)}") from None


def _type_name(wanted: Any) -> str:
    if get_origin(wanted) in (UnionType, Union):
        return " or ".join(_type_name(w) for w in get_args(wanted) if w is not type(None))
    if get_origin(wanted) is tuple:
        return "names, separated by commas"
    if get_origin(wanted) is Literal:
        return " | ".join(str(choice) for choice in get_args(wanted))
    words = {int: "a whole number", str: "text", bool: "true | false", Fraction: "an exact number"}
    return words.get(wanted, str(getattr(wanted, "__name__", wanted)))
