"""Publish something useful from a sensitive table under differential privacy.

The public names are listed here and imported when they are first used, so that asking the
command for help does not load the whole field of statistics.  Types are in `__init__.pyi`.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "AG": "dpublish.methods.spatial.ag",
    "Answer": "dpublish.core.answer",
    "BA": "dpublish.methods.streams.ba",
    "BD": "dpublish.methods.streams.bd",
    "Bounds": "dpublish.methods.bounds.bounds",
    "Budget": "dpublish.privacy.budget",
    "Combination": "dpublish.data.statements",
    "DPCopula": "dpublish.methods.dpcopula.dpcopula",
    "DPCopulaHybrid": "dpublish.methods.dpcopula.hybrid",
    "DPLloyd": "dpublish.methods.kmeans.dplloyd",
    "DPLloydImpr": "dpublish.methods.kmeans.dplloyd_impr",
    "DPublishError": "dpublish.errors",
    "DSAT": "dpublish.methods.streams.dsat",
    "DSATw": "dpublish.methods.streams.dsat_w",
    "DSFT": "dpublish.methods.streams.dsft",
    "DiffGen": "dpublish.methods.diffgen.diffgen",
    "DiffPID3": "dpublish.methods.trees.diffpid3",
    "EUGkM": "dpublish.methods.kmeans.eugkm",
    "ExpectedError": "dpublish.core.method",
    "FilterPriority": "dpublish.methods.filter_priority.filter_priority",
    "FixedSampling": "dpublish.methods.streams.fixed_sampling",
    "Formula": "dpublish.data.column_function",
    "FunctionalMechanism": "dpublish.methods.linear_models.functional",
    "GUPT": "dpublish.methods.linear_models.gupt",
    "GkM": "dpublish.methods.kmeans.gkm",
    "Histogram": "dpublish.methods.histogram.histogram",
    "HybridKMeans": "dpublish.methods.kmeans.hybrid",
    "InteractiveRun": "dpublish.publishing.svt.run",
    "KMeans": "dpublish.methods.kmeans.kmeans",
    "KnownTotal": "dpublish.data.statements",
    "Ledger": "dpublish.ledger.ledger",
    "LinearModel": "dpublish.methods.linear_models.model",
    "Lookup": "dpublish.data.lookup",
    "Majority": "dpublish.methods.trees.majority",
    "Marginals": "dpublish.methods.marginals.marginals",
    "Method": "dpublish.core.method",
    "Minimum": "dpublish.methods.personalized.minimum",
    "MkM": "dpublish.methods.kmeans.eugkm",
    "OutputPerturbation": "dpublish.methods.linear_models.output_perturbation",
    "PGkM": "dpublish.methods.kmeans.pgkm",
    "PHP": "dpublish.methods.spatial.php",
    "PPH": "dpublish.methods.pph.pph",
    "PSD": "dpublish.methods.spatial.psd",
    "Partitioning": "dpublish.methods.personalized.partitioning",
    "PerSnapshot": "dpublish.methods.streams.per_snapshot",
    "PersonalizedEM": "dpublish.methods.personalized.exponential",
    "PlainWaveCluster": "dpublish.methods.wavecluster.plain",
    "PrivBayes": "dpublish.methods.privbayes.privbayes",
    "PrivGene": "dpublish.methods.linear_models.privgene",
    "PrivLocal": "dpublish.methods.linear_models.privlocal",
    "PrivPfC": "dpublish.methods.privpfc.privpfc",
    "PrivQT": "dpublish.methods.wavecluster.privqt",
    "PrivTHR": "dpublish.methods.wavecluster.privthr",
    "PrivTHREM": "dpublish.methods.wavecluster.privthr_em",
    "PrivateERM": "dpublish.methods.linear_models.private_erm",
    "PrivateSVM": "dpublish.methods.linear_models.private_svm",
    "Privelet": "dpublish.methods.privelet.privelet",
    "Publication": "dpublish.data.publication",
    "Release": "dpublish.core.released",
    "Run": "dpublish.core.run",
    "Sampling": "dpublish.methods.personalized.sampling",
    "Schema": "dpublish.data.schema",
    "Statistics": "dpublish.methods.statistics.statistics",
    "StreamOperator": "dpublish.publishing.streams.operator",
    "Synth": "dpublish.methods.synth.synth",
    "TRound": "dpublish.methods.personalized.t_round",
    "Threshold": "dpublish.methods.personalized.threshold",
    "TopK": "dpublish.methods.topk.topk",
    "UG": "dpublish.methods.spatial.ug",
    "UGkM": "dpublish.methods.kmeans.eugkm",
    "ValueMap": "dpublish.data.column_function",
    "WaveBaseline": "dpublish.methods.wavecluster.baseline",
    "Weighting": "dpublish.methods.personalized.weighting",
    "advise": "dpublish.planning.advise",
    "audit": "dpublish.auditing.audit",
    "classifier": "dpublish.publishing.tasks",
    "column": "dpublish.data.schema",
    "evaluate": "dpublish.evaluation.evaluate",
    "explain": "dpublish.planning.explain",
    "export": "dpublish.publishing.export",
    "histogram": "dpublish.publishing.tasks",
    "kmeans": "dpublish.publishing.tasks",
    "list_methods": "dpublish.core.registry",
    "load": "dpublish.core.folder.folder",
    "load_schema": "dpublish.data.schema_file",
    "make_method": "dpublish.core.settings",
    "make_stream_method": "dpublish.methods.streams.method",
    "measure_bounds": "dpublish.publishing.bounds",
    "open_spark": "dpublish.data.engines.spark_session",
    "open_table": "dpublish.data.sources",
    "plan": "dpublish.publishing.plan",
    "plan_releases": "dpublish.planning.schedule",
    "publish": "dpublish.publishing",
    "read_codes": "dpublish.data.code_list",
    "rehearse": "dpublish.planning.rehearse",
    "release": "dpublish.publishing.tasks",
    "secure": "dpublish.randomness",
    "seeded": "dpublish.randomness",
    "setting": "dpublish.core.method",
    "statistics": "dpublish.publishing.tasks",
    "synthesize": "dpublish.publishing.tasks",
    "topk": "dpublish.publishing.tasks",
}

__all__ = sorted(_HOME)


_MODULES = ("datasets", "errors", "testing")
"""Modules that are found as attributes, too, without an import of their own."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"dpublish.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'dpublish' has no attribute {name!r}")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return list(__all__)
