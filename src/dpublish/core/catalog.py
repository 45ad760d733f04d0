"""The index of methods and released values; written by tools/method_index.py.

An entry names where a class lives without importing it, so that `--help` is quick.  What it
states comes from the class.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """Where a method lives, what it publishes, when to prefer it, and how it stands in its task."""

    location: str
    task: str
    publishes: str
    prefer_when: str
    standing: str = "alternative"


CATALOG: Mapping[str, Entry] = {
    "synth": Entry(
        location="dpublish.methods.synth.synth:Synth",
        task="synthesis",
        publishes=(
            "noisy marginals and chosen tables, joined into one model; rows of all columns, counts"
            " and the measured distance from the truth follow for free"
        ),
        prefer_when="you want rows for any use: the default for whole tables",
        standing="default",
    ),
    "histogram": Entry(
        location="dpublish.methods.histogram.histogram:Histogram",
        task="counting",
        publishes=(
            "noisy counts of every combination of a few columns; range counts and rows follow for "
            "free"
        ),
        prefer_when="a few columns matter, and every count needs a confidence interval",
        standing="default",
    ),
    "statistics": Entry(
        location="dpublish.methods.statistics.statistics:Statistics",
        task="counting",
        publishes=(
            "counts, sums, means, variances and quantiles by group, each with a confidence interval"
        ),
        prefer_when="a table of numbers by group is what is wanted",
        standing="default",
    ),
    "marginals": Entry(
        location="dpublish.methods.marginals.marginals:Marginals",
        task="counting",
        publishes=(
            "a noisy marginal of each column; counts and quantiles of one column follow for free"
        ),
        prefer_when=(
            "each column matters by itself, and some have many values; synth is the default for "
            "rows"
        ),
        standing="alternative",
    ),
    "privpfc": Entry(
        location="dpublish.methods.privpfc.privpfc:PrivPfC",
        task="classification",
        publishes=(
            "a noisy grid of the columns that predict a class best; predictions and rows to train "
            "on follow for free"
        ),
        prefer_when="you want an accurate classifier, or rows on which others train their own",
        standing="default",
    ),
    "diffgen": Entry(
        location="dpublish.methods.diffgen.diffgen:DiffGen",
        task="classification",
        publishes=(
            "noisy class counts over cells that are refined through taxonomies; predictions and "
            "rows to train on follow for free"
        ),
        prefer_when="columns have taxonomies, and others will train classifiers on the rows",
        standing="baseline",
    ),
    "pph": Entry(
        location="dpublish.methods.pph.pph:PPH",
        task="classification",
        publishes=(
            "noisy class counts over a few chosen columns; predictions and rows to train on follow"
            " for free"
        ),
        prefer_when="a few columns together separate the classes, and columns have no taxonomies",
        standing="baseline",
    ),
    "privbayes": Entry(
        location="dpublish.methods.privbayes.privbayes:PrivBayes",
        task="synthesis",
        publishes=(
            "a Bayesian network of noisy joint counts; rows of all columns and predictions follow "
            "for free"
        ),
        prefer_when=(
            "you want a network whose parents can be read off, or its predictions; synth is the "
            "default for rows of any use"
        ),
        standing="alternative",
    ),
    "dpcopula": Entry(
        location="dpublish.methods.dpcopula.dpcopula:DPCopula",
        task="synthesis",
        publishes=(
            "noisy marginals and correlations; rows of all columns and range counts follow for free"
        ),
        prefer_when="all columns are numbers with many values, and range counts of several matter",
        standing="alternative",
    ),
    "dpcopula-hybrid": Entry(
        location="dpublish.methods.dpcopula.hybrid:DPCopulaHybrid",
        task="synthesis",
        publishes=(
            "noisy marginals of numbers, joined with noisy counts of categories; rows of all "
            "columns follow for free"
        ),
        prefer_when=(
            "numbers with many values are joined with few categories, and correlations matter; "
            "synth is the default for rows of any use"
        ),
        standing="alternative",
    ),
    "psd": Entry(
        location="dpublish.methods.spatial.psd:PSD",
        task="counting",
        publishes=(
            "noisy counts of a tree of boxes, cut at noisy medians; range counts and rows follow "
            "for free"
        ),
        prefer_when="a few ordered columns have many values, and records are dense in some regions",
        standing="baseline",
    ),
    "ug": Entry(
        location="dpublish.methods.spatial.ug:UG",
        task="counting",
        publishes="noisy counts of a grid of equal boxes; range counts and rows follow for free",
        prefer_when="two or three ordered columns matter, and records are scattered evenly",
        standing="baseline",
    ),
    "ag": Entry(
        location="dpublish.methods.spatial.ag:AG",
        task="counting",
        publishes=(
            "noisy counts of a grid that is finer where records are dense; range counts and rows "
            "follow for free"
        ),
        prefer_when="two ordered columns matter, such as locations on a map",
        standing="alternative",
    ),
    "privelet": Entry(
        location="dpublish.methods.privelet.privelet:Privelet",
        task="counting",
        publishes="noisy wavelet coefficients of counts; range counts and rows follow for free",
        prefer_when="one or two ordered columns have many values, and long ranges matter",
        standing="alternative",
    ),
    "p-hp": Entry(
        location="dpublish.methods.spatial.php:PHP",
        task="counting",
        publishes=(
            "noisy counts of boxes that are cut where records are uneven; range counts and rows "
            "follow for free"
        ),
        prefer_when=(
            "a few ordered columns matter together, and records are dense in part of the domain"
        ),
        standing="alternative",
    ),
    "filter-priority": Entry(
        location="dpublish.methods.filter_priority.filter_priority:FilterPriority",
        task="counting",
        publishes="a weighted sample of the largest noisy cells; counts and rows follow for free",
        prefer_when="the domain is huge, and many records are equal in all columns",
        standing="alternative",
    ),
    "diffpid3": Entry(
        location="dpublish.methods.trees.diffpid3:DiffPID3",
        task="classification",
        publishes="a decision tree with noisy class counts; rules and predictions follow for free",
        prefer_when="people will read the model, and a few splits suffice",
        standing="alternative",
    ),
    "majority": Entry(
        location="dpublish.methods.trees.majority:Majority",
        task="classification",
        publishes="the majority class",
        prefer_when="you want the baseline that every classifier has to beat",
        standing="baseline",
    ),
    "model": Entry(
        location="dpublish.methods.linear_models.model:LinearModel",
        task="model fitting",
        publishes=(
            "a logistic regression, support vector machine or linear regression; predictions and "
            "coefficients follow for free"
        ),
        prefer_when="you want a good linear model with nothing to tune",
        standing="default",
    ),
    "privgene": Entry(
        location="dpublish.methods.linear_models.privgene:PrivGene",
        task="model fitting",
        publishes="a logistic regression or support vector machine, found by a genetic algorithm",
        prefer_when="you compare with PrivGene",
        standing="baseline",
    ),
    "privlocal": Entry(
        location="dpublish.methods.linear_models.privlocal:PrivLocal",
        task="model fitting",
        publishes="a logistic regression or support vector machine, found by private local search",
        prefer_when="epsilon is small, and the model must be fitted directly",
        standing="alternative",
    ),
    "private-erm": Entry(
        location="dpublish.methods.linear_models.private_erm:PrivateERM",
        task="model fitting",
        publishes=(
            "a logistic regression or support vector machine, fitted to a perturbed objective"
        ),
        prefer_when="the model must be fitted directly, and its known limit is acceptable",
        standing="alternative",
    ),
    "output-perturbation": Entry(
        location="dpublish.methods.linear_models.output_perturbation:OutputPerturbation",
        task="model fitting",
        publishes="a logistic regression or support vector machine with noise on its weights",
        prefer_when="you want a simple baseline that tolerates an inexact solver",
        standing="baseline",
    ),
    "private-svm": Entry(
        location="dpublish.methods.linear_models.private_svm:PrivateSVM",
        task="model fitting",
        publishes=(
            "a support vector machine with noise on its weights, linear or with random features"
        ),
        prefer_when="you compare with PrivateSVM, or no plane divides the classes",
        standing="baseline",
    ),
    "functional": Entry(
        location="dpublish.methods.linear_models.functional:FunctionalMechanism",
        task="model fitting",
        publishes=(
            "a linear or logistic regression, fitted to a perturbed objective, with confidence "
            "intervals"
        ),
        prefer_when="you predict a number, or need confidence intervals of the weights",
        standing="alternative",
    ),
    "gupt": Entry(
        location="dpublish.methods.linear_models.gupt:GUPT",
        task="model fitting",
        publishes=(
            "a linear or logistic regression or a support vector machine, averaged over random "
            "blocks of records"
        ),
        prefer_when="you compare with sample-and-aggregate",
        standing="baseline",
    ),
    "kmeans": Entry(
        location="dpublish.methods.kmeans.kmeans:KMeans",
        task="clustering",
        publishes=(
            "cluster centers, and a noisy synopsis in which they were found; rows, labels and "
            "other numbers of clusters follow for free"
        ),
        prefer_when="you want good centers with nothing to tune",
        standing="default",
    ),
    "dplloyd": Entry(
        location="dpublish.methods.kmeans.dplloyd:DPLloyd",
        task="clustering",
        publishes="cluster centers after noisy rounds of k-means; labels follow for free",
        prefer_when="you want the baseline that other methods are compared with",
        standing="baseline",
    ),
    "dplloyd-impr": Entry(
        location="dpublish.methods.kmeans.dplloyd_impr:DPLloydImpr",
        task="clustering",
        publishes="cluster centers after a few noisy rounds of k-means; labels follow for free",
        prefer_when="only centers matter, and there are too many columns for a grid",
        standing="baseline",
    ),
    "eugkm": Entry(
        location="dpublish.methods.kmeans.eugkm:EUGkM",
        task="clustering",
        publishes="a noisy grid sized for clustering, and the centers found in it",
        prefer_when="two or three columns matter, and you compare with EUGkM",
        standing="baseline",
    ),
    "ugkm": Entry(
        location="dpublish.methods.kmeans.eugkm:UGkM",
        task="clustering",
        publishes="a noisy grid sized for range counts, and the centers found in it",
        prefer_when="range counts matter as much as the centers",
        standing="baseline",
    ),
    "mkm": Entry(
        location="dpublish.methods.kmeans.eugkm:MkM",
        task="clustering",
        publishes="a noisy grid whose size does not depend on epsilon, and the centers found in it",
        prefer_when="you want a baseline for the grid methods",
        standing="baseline",
    ),
    "hybrid": Entry(
        location="dpublish.methods.kmeans.hybrid:HybridKMeans",
        task="clustering",
        publishes="a noisy grid, and its centers after one noisy round of k-means",
        prefer_when="there are few columns and many records, and you compare with Hybrid",
        standing="baseline",
    ),
    "gkm": Entry(
        location="dpublish.methods.kmeans.gkm:GkM",
        task="clustering",
        publishes="cluster centers, averaged over random blocks of records",
        prefer_when="you compare with sample-and-aggregate",
        standing="baseline",
    ),
    "pgkm": Entry(
        location="dpublish.methods.kmeans.pgkm:PGkM",
        task="clustering",
        publishes="cluster centers, found by a genetic algorithm",
        prefer_when="you compare with PrivGene on few clusters in two columns",
        standing="baseline",
    ),
    "privthr": Entry(
        location="dpublish.methods.wavecluster.privthr:PrivTHR",
        task="shapes",
        publishes="clusters of any shape, as labeled cells of a noisy grid",
        prefer_when="no center describes the shape of a cluster",
        standing="default",
    ),
    "privthr-em": Entry(
        location="dpublish.methods.wavecluster.privthr_em:PrivTHREM",
        task="shapes",
        publishes="clusters of any shape, and the density threshold of their cells",
        prefer_when="clusters are much denser than the noise, and the threshold matters",
        standing="alternative",
    ),
    "privqt": Entry(
        location="dpublish.methods.wavecluster.privqt:PrivQT",
        task="shapes",
        publishes="a noisy grid, and the clusters of any shape found in it",
        prefer_when="the noisy grid matters as much as the clusters, or few cells are dense",
        standing="alternative",
    ),
    "wave-baseline": Entry(
        location="dpublish.methods.wavecluster.baseline:WaveBaseline",
        task="shapes",
        publishes="clusters of any shape, found in an adaptive grid",
        prefer_when="you want the baseline that other shape methods have to beat",
        standing="baseline",
    ),
    "topk": Entry(
        location="dpublish.methods.topk.topk:TopK",
        task="ranking",
        publishes="the most frequent values of a column or items of baskets, in order",
        prefer_when="the domain is large, and only its most frequent values matter",
        standing="default",
    ),
    "bounds": Entry(
        location="dpublish.methods.bounds.bounds:Bounds",
        task="bounds",
        publishes="a lower and an upper bound that most values of a column lie within",
        prefer_when="no one knows the bounds of a column, which every method needs",
        standing="default",
    ),
    "partitioning": Entry(
        location="dpublish.methods.personalized.partitioning:Partitioning",
        task="personalized",
        publishes=(
            "the releases of another method for groups of people with similar epsilon, combined"
        ),
        prefer_when="people accept different epsilons, and no threshold has to be chosen",
        standing="default",
    ),
    "weighting": Entry(
        location="dpublish.methods.personalized.weighting:Weighting",
        task="personalized",
        publishes="one noisy histogram that weights each person by the epsilon they accept",
        prefer_when=(
            "you need counts, levels are independent of the values, and the number of people at "
            "each level is public"
        ),
        standing="alternative",
    ),
    "t-round": Entry(
        location="dpublish.methods.personalized.t_round:TRound",
        task="personalized",
        publishes=(
            "the same as partitioning, in several rounds that use up what each level has left"
        ),
        prefer_when="groups are wide, so that many people have epsilon left after one round",
        standing="alternative",
    ),
    "minimum": Entry(
        location="dpublish.methods.personalized.minimum:Minimum",
        task="personalized",
        publishes="the release of another method for all people, at the smallest level",
        prefer_when="you want a baseline, or people accept similar epsilons",
        standing="baseline",
    ),
    "threshold": Entry(
        location="dpublish.methods.personalized.threshold:Threshold",
        task="personalized",
        publishes="the release of another method for the people at or above one level",
        prefer_when="few people are below that level",
        standing="alternative",
    ),
    "sampling": Entry(
        location="dpublish.methods.personalized.sampling:Sampling",
        task="personalized",
        publishes="the release of another method for a sample that favors people who accept more",
        prefer_when="a larger epsilon gains more than fewer records lose",
        standing="alternative",
    ),
    "personalized-em": Entry(
        location="dpublish.methods.personalized.exponential:PersonalizedEM",
        task="personalized",
        publishes="one count or one median that respects each person's own epsilon",
        prefer_when="you need one number, and few people are at the lowest level",
        standing="alternative",
    ),
}

STREAMS: Mapping[str, Entry] = {
    "dsat": Entry(
        location="dpublish.methods.streams.dsat:DSAT",
        task="streams",
        publishes=(
            "histograms of a finite stream when they are worth while, in a rhythm that it learns "
            "and early after a jump"
        ),
        prefer_when="the stream has an end, and people must be hidden in all of it",
        standing="default",
    ),
    "dsat-w": Entry(
        location="dpublish.methods.streams.dsat_w:DSATw",
        task="streams",
        publishes="histograms of an endless stream when they are worth while",
        prefer_when="the stream never ends, and people must be hidden within any so many steps",
        standing="default",
    ),
    "per-snapshot": Entry(
        location="dpublish.methods.streams.per_snapshot:PerSnapshot",
        task="streams",
        publishes="a fresh noisy histogram at every step",
        prefer_when="there are few steps, or you want a baseline",
        standing="alternative",
    ),
    "fixed-sampling": Entry(
        location="dpublish.methods.streams.fixed_sampling:FixedSampling",
        task="streams",
        publishes="a fresh histogram at equal intervals",
        prefer_when="counts drift steadily and you know how fast",
        standing="alternative",
    ),
    "dsft": Entry(
        location="dpublish.methods.streams.dsft:DSFT",
        task="streams",
        publishes="a fresh histogram when the counts have moved by a fixed amount",
        prefer_when="you know how much change matters",
        standing="alternative",
    ),
    "bd": Entry(
        location="dpublish.methods.streams.bd:BD",
        task="streams",
        publishes="a fresh histogram when it is closer than the last, with half of what is left",
        prefer_when="you compare with the literature (BD)",
        standing="baseline",
    ),
    "ba": Entry(
        location="dpublish.methods.streams.ba:BA",
        task="streams",
        publishes="a fresh histogram when it is closer than the last, with what skipped steps left",
        prefer_when="you compare with the literature (BA)",
        standing="baseline",
    ),
}

KINDS: Mapping[str, str] = {
    "bayes-network": "dpublish.methods.privbayes.released:PrivBayesRelease",
    "bounds": "dpublish.methods.bounds.released:BoundsRelease",
    "boxes": "dpublish.methods.spatial.released:SpatialRelease",
    "cell-copulas": "dpublish.methods.dpcopula.released_cells:CellCopulasRelease",
    "cell-sample": "dpublish.methods.filter_priority.released:FilterPriorityRelease",
    "centers": "dpublish.methods.kmeans.released:KMeansRelease",
    "copula": "dpublish.methods.dpcopula.released:DPCopulaRelease",
    "decision-tree": "dpublish.methods.trees.released:DecisionTreeRelease",
    "grid-classifier": "dpublish.methods.privpfc.released:PrivPfCRelease",
    "histogram": "dpublish.methods.histogram.released:HistogramRelease",
    "histogram-stream": "dpublish.methods.streams.released:StreamRelease",
    "junction-tree": "dpublish.methods.synth.released:SynthRelease",
    "labeled-histogram": "dpublish.methods.histogram.released:LabeledHistogramRelease",
    "linear-model": "dpublish.methods.linear_models.released:LinearModelRelease",
    "marginals": "dpublish.methods.marginals.released:MarginalsRelease",
    "mixed-table": "dpublish.methods.dpcopula.released_hybrid:DPCopulaHybridRelease",
    "personal": "dpublish.methods.personalized.released:PersonalizedRelease",
    "personal-answer": "dpublish.methods.personalized.released:PersonalizedAnswer",
    "statistics": "dpublish.methods.statistics.released:StatisticsRelease",
    "top-values": "dpublish.methods.topk.released:TopKRelease",
    "tree-centers": "dpublish.methods.kmeans.released:TreeKMeansRelease",
    "wave-clusters": "dpublish.methods.wavecluster.released:WaveClusterRelease",
    "wavelet-histogram": "dpublish.methods.privelet.released:PriveletRelease",
}
"""Where the released values are, by the kind that their folder names."""
