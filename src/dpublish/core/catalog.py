"""The one list of methods: the command line, the plan, the experiments and the tests read it.

An entry names where a method lives without importing it, so that asking for help is quick.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """Where a method is, and what it is for."""

    location: str
    task: str
    publishes: str
    prefer: str


CATALOG: Mapping[str, Entry] = {
    "histogram": Entry(
        location="dpublish.methods.histogram.histogram:Histogram",
        task="counting",
        publishes="noisy counts over chosen columns; rows and range counts follow for free",
        prefer="a few columns matter and every cell should have a confidence interval",
    ),
    "marginals": Entry(
        location="dpublish.methods.marginals.marginals:Marginals",
        task="counting",
        publishes="a noisy marginal of each column; counts about one column, quantiles and rows of "
        "independent columns follow for free",
        prefer="each column matters by itself, and some have many values",
    ),
    "privpfc": Entry(
        location="dpublish.methods.privpfc.privpfc:PrivPfC",
        task="classification",
        publishes="a noisy grid of the columns that predict a class best; rows to train on and "
        "predictions follow for free",
        prefer="others will train classifiers, or you want the most accurate one",
    ),
    "diffgen": Entry(
        location="dpublish.methods.diffgen.diffgen:DiffGen",
        task="classification",
        publishes="noisy class counts over cells refined step by step through taxonomies; rows "
        "to train on and predictions follow for free",
        prefer="columns have taxonomies, and others will train classifiers on the result",
    ),
    "pph": Entry(
        location="dpublish.methods.pph.pph:PPH",
        task="classification",
        publishes="noisy class counts over a few chosen columns; rows to train on and "
        "predictions follow for free",
        prefer="a few columns tell the classes apart together, and there are no taxonomies",
    ),
    "privbayes": Entry(
        location="dpublish.methods.privbayes.privbayes:PrivBayes",
        task="synthesis",
        publishes="a network of columns with noisy joint counts; rows of all columns and "
        "predictions follow for free",
        prefer="many columns matter together, and the later use of the rows is open",
    ),
    "dpcopula": Entry(
        location="dpublish.methods.dpcopula.dpcopula:DPCopula",
        task="synthesis",
        publishes="noisy marginals and correlations; rows of all columns and range counts with "
        "confidence intervals follow for free",
        prefer="many columns hold numbers with many values, and range counts will be asked",
    ),
    "dpcopula-hybrid": Entry(
        location="dpublish.methods.dpcopula.hybrid:DPCopulaHybrid",
        task="synthesis",
        publishes="noisy marginals of numbers and a network, or cells, that join them with "
        "categories; rows of all columns follow for free",
        prefer="numbers with many values and categories stand side by side",
    ),
    "psd": Entry(
        location="dpublish.methods.spatial.psd:PSD",
        task="counting",
        publishes="a tree of boxes, cut at noisy medians, with noisy counts; range counts and rows "
        "follow for free",
        prefer="a few ordered columns of many values, whose records are dense in some regions",
    ),
    "ug": Entry(
        location="dpublish.methods.spatial.ug:UG",
        task="counting",
        publishes="noisy counts of equal boxes, as many as the noise is worth",
        prefer="two or three ordered columns, and records lie widely",
    ),
    "ag": Entry(
        location="dpublish.methods.spatial.ag:AG",
        task="counting",
        publishes="noisy counts of boxes, finer where there are more records",
        prefer="two ordered columns, such as points on a map",
    ),
    "privelet": Entry(
        location="dpublish.methods.privelet.privelet:Privelet",
        task="counting",
        publishes="noisy wavelet coefficients of counts; rows and range counts follow for free",
        prefer="one or two ordered columns are long and long ranges will be asked for",
    ),
    "p-hp": Entry(
        location="dpublish.methods.spatial.php:PHP",
        task="counting",
        publishes="boxes cut where records are uneven, with noisy counts; rows and range counts "
        "follow for free",
        prefer="a few ordered columns matter together and records are dense in part of the domain",
    ),
    "filter-priority": Entry(
        location="dpublish.methods.filter_priority.filter_priority:FilterPriority",
        task="counting",
        publishes="a weighted sample of the largest noisy cells; rows and counts follow for free",
        prefer="the domain is huge and many records are alike in all columns",
    ),
    "diffpid3": Entry(
        location="dpublish.methods.trees.diffpid3:DiffPID3",
        task="classification",
        publishes="a decision tree with noisy class counts; rules and predictions follow",
        prefer="the model itself should be read, and a few splits say most of it",
    ),
    "majority": Entry(
        location="dpublish.methods.trees.majority:Majority",
        task="classification",
        publishes="the majority class, and nothing else",
        prefer="a baseline is wanted that every classifier has to beat",
    ),
    "model": Entry(
        location="dpublish.methods.linear_models.model:LinearModel",
        task="model fitting",
        publishes="a logistic regression, support vector machine or linear regression, fitted to a "
        "private synopsis; predictions and coefficients follow for free",
        prefer="you want a model, and no certain paper's method",
    ),
    "privgene": Entry(
        location="dpublish.methods.linear_models.privgene:PrivGene",
        task="model fitting",
        publishes="a logistic regression or support vector machine found by private evolution",
        prefer="PrivGene is wanted to compare with, or a support vector machine",
    ),
    "privlocal": Entry(
        location="dpublish.methods.linear_models.privlocal:PrivLocal",
        task="model fitting",
        publishes="a logistic regression or support vector machine found by private local search",
        prefer="a direct private model is wanted, and epsilon is small",
    ),
    "private-erm": Entry(
        location="dpublish.methods.linear_models.private_erm:PrivateERM",
        task="model fitting",
        publishes="a logistic regression or support vector machine whose objective was perturbed",
        prefer="the best direct private model is wanted, and its known limit is acceptable",
    ),
    "output-perturbation": Entry(
        location="dpublish.methods.linear_models.output_perturbation:OutputPerturbation",
        task="model fitting",
        publishes="a logistic regression or support vector machine with noise on its weights",
        prefer="a baseline is wanted that tolerates an inexact solver",
    ),
    "functional": Entry(
        location="dpublish.methods.linear_models.functional:FunctionalMechanism",
        task="model fitting",
        publishes="a linear or logistic model of a perturbed objective, with confidence intervals",
        prefer="a number is to be predicted, or confidence intervals of the weights are wanted",
    ),
    "gupt": Entry(
        location="dpublish.methods.linear_models.gupt:GUPT",
        task="model fitting",
        publishes="a model averaged over random blocks of records",
        prefer="a generic method is wanted to compare with",
    ),
    "kmeans": Entry(
        location="dpublish.methods.kmeans.kmeans:KMeans",
        task="clustering",
        publishes="centers of clusters, and the synopsis they were found in; rows, labels and "
        "other numbers of clusters follow for free",
        prefer="you want the best centers, whatever the number of columns",
    ),
    "dplloyd": Entry(
        location="dpublish.methods.kmeans.dplloyd:DPLloyd",
        task="clustering",
        publishes="centers of clusters after some noisy rounds of k-means; labels follow for free",
        prefer="you want the plain method that others are compared with",
    ),
    "dplloyd-impr": Entry(
        location="dpublish.methods.kmeans.dplloyd_impr:DPLloydImpr",
        task="clustering",
        publishes="centers of clusters after a few well-shared noisy rounds of k-means",
        prefer="only centers are needed, and there are too many columns for a grid",
    ),
    "eugkm": Entry(
        location="dpublish.methods.kmeans.eugkm:EUGkM",
        task="clustering",
        publishes="a noisy grid sized for clustering, and the centers found in it",
        prefer="two or three columns, and the paper's rule for the grid is wanted",
    ),
    "ugkm": Entry(
        location="dpublish.methods.kmeans.eugkm:UGkM",
        task="clustering",
        publishes="a noisy grid sized for range counts, and the centers found in it",
        prefer="the grid itself will be counted in, too",
    ),
    "mkm": Entry(
        location="dpublish.methods.kmeans.eugkm:MkM",
        task="clustering",
        publishes="a noisy grid whose size does not depend on epsilon, and the centers found in it",
        prefer="a baseline of the grid methods is wanted",
    ),
    "hybrid": Entry(
        location="dpublish.methods.kmeans.hybrid:HybridKMeans",
        task="clustering",
        publishes="a noisy grid, and its centers moved by one noisy round of k-means",
        prefer="few columns, many records, and the paper's rule is wanted",
    ),
    "gkm": Entry(
        location="dpublish.methods.kmeans.gkm:GkM",
        task="clustering",
        publishes="centers averaged over the clusterings of random blocks of records",
        prefer="a generic method is wanted to compare with",
    ),
    "pgkm": Entry(
        location="dpublish.methods.kmeans.pgkm:PGkM",
        task="clustering",
        publishes="centers found by evolution under private selection",
        prefer="PrivGene is wanted to compare with; few clusters in two columns",
    ),
    "privthr": Entry(
        location="dpublish.methods.wavecluster.privthr:PrivTHR",
        task="shapes",
        publishes="clusters of any shape as labeled cells of a noisy grid",
        prefer="clusters have shapes that no center describes",
    ),
    "privthr-em": Entry(
        location="dpublish.methods.wavecluster.privthr_em:PrivTHREM",
        task="shapes",
        publishes="clusters of any shape, and the threshold that their cells reach",
        prefer="clusters stand far above the noise, and the threshold matters",
    ),
    "privqt": Entry(
        location="dpublish.methods.wavecluster.privqt:PrivQT",
        task="shapes",
        publishes="a noisy grid, and the clusters of any shape that it shows",
        prefer="only the noisy grid is wanted, or few cells are to be significant",
    ),
    "wave-baseline": Entry(
        location="dpublish.methods.wavecluster.baseline:WaveBaseline",
        task="shapes",
        publishes="clusters of any shape in an adaptive grid",
        prefer="a baseline is wanted that the other wave methods have to beat",
    ),
    "topk": Entry(
        location="dpublish.methods.topk.topk:TopK",
        task="ranking",
        publishes="the c most frequent values of a column or items of baskets, in order",
        prefer="the domain is large and only its most frequent values matter",
    ),
    "partitioning": Entry(
        location="dpublish.methods.personalized.partitioning:Partitioning",
        task="personalized",
        publishes="what another method publishes of groups of people who accept about the same "
        "epsilon, put together",
        prefer="people differ in what they accept, and no threshold should have to be chosen",
    ),
    "weighting": Entry(
        location="dpublish.methods.personalized.weighting:Weighting",
        task="personalized",
        publishes="one histogram in which each person counts by the epsilon that they accept",
        prefer="counts are wanted, levels tell nothing about the values, and it is public how "
        "many people chose each",
    ),
    "t-round": Entry(
        location="dpublish.methods.personalized.t_round:TRound",
        task="personalized",
        publishes="the same in several rounds, which spend what the first one left to people",
        prefer="groups are wide, so that many people have epsilon left after one round",
    ),
    "minimum": Entry(
        location="dpublish.methods.personalized.minimum:Minimum",
        task="personalized",
        publishes="what another method publishes of all people, with the smallest epsilon that "
        "anybody accepts",
        prefer="a baseline is wanted, or people hardly differ in what they accept",
    ),
    "threshold": Entry(
        location="dpublish.methods.personalized.threshold:Threshold",
        task="personalized",
        publishes="what another method publishes of the people at or above one level",
        prefer="few people sit below that level",
    ),
    "sampling": Entry(
        location="dpublish.methods.personalized.sampling:Sampling",
        task="personalized",
        publishes="what another method publishes of a sample in which those who accept more are "
        "likelier",
        prefer="the inner method gains more from epsilon than it loses with fewer records",
    ),
    "personalized-em": Entry(
        location="dpublish.methods.personalized.exponential:PersonalizedEM",
        task="personalized",
        publishes="one count or one median, at each person's own price",
        prefer="one number is wanted and few people sit at the lowest level",
    ),
}
