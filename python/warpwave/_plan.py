"""Plans: searches in stages, each on the rows of collections or on the hits of earlier stages."""
from __future__ import annotations

import json
from contextlib import ExitStack
from ctypes import addressof, byref, c_char_p, c_double, c_int32, c_void_p, create_string_buffer
from typing import Any, Callable, NamedTuple, Optional, Sequence

from . import _native as c
from ._arrays import as_rows, name_text
from ._calls import Token, interruptible
from ._checked import integer
from ._errors import check
from ._multi import as_multi, multi_query
from ._names import chosen
from ._numpy import address
from ._sparse import as_sparse, sparse_query
from .device import made
from .results import Results
from .vectors import Collection, _taken

_FUSIONS = {"ranks": c.WW_FUSION_RANKS, "scores": c.WW_FUSION_SCORES, "scaled_ranks": c.WW_FUSION_SCALED_RANKS, "distributions": c.WW_FUSION_DISTRIBUTIONS}


class StageReport(NamedTuple):
    """What a stage of a plan did: the rows of its inputs, what it found, why hits were left out, and what it read."""

    stage: str
    rows_in: int
    rows_found: int
    rows_worse: int
    rows_excluded: int
    rows_skipped: int
    rows_gone: int
    hits: int
    seconds: float
    rows_screened: int
    rows_kept: int
    rows_scored: int
    lists_read: int


class Plan:
    """A search in stages. Each method adds one and returns its number, which later stages take as an input.

    >>> docs = warpwave.Collection(2, device="cpu")
    >>> docs.add([[1, 0], [0, 1], [0.8, 0.6]], ids=["a", "b", "c"], payloads=[{"year": 1990}, {"year": 2020}, {"year": 2020}])
    >>> plan = warpwave.Plan()
    >>> near = plan.search(docs, [1, 0], limit=3)
    >>> best = plan.formula(near, formula={"sum": ["$score", {"mult": [0.5, {"filter": {"year": {"$gt": 2000}}}]}]}, limit=2)
    >>> list(plan.run().ids)
    ['c', 'a']

    Every stage takes `limit` (None: all hits), `offset`, `threshold` (hits with a worse score are left out) and `exclude` (ids). Rows of
    different collections with the same id are one row. The hits of the last stage are the results of `run`; `reports` and `explain` then say
    what each stage did.
    """

    def __init__(self) -> None:
        self._stages: list[tuple[Any, Callable[[ExitStack], None], Any]] = []
        self._plan: Any = None
        self._held: Any = None

    def _add(self, collection: Optional[Collection], inputs: Sequence[int], fill: Callable[[Any, ExitStack], None], keep: Any = None, limit: Optional[int] = 10, offset: int = 0,
             threshold: Optional[float] = None, exclude: Sequence[str] = ()) -> int:
        stage, report = made(c.ww_stage), made(c.ww_stage_report)
        numbers = (c_int32 * max(len(inputs), 1))(*(integer(one, "input") for one in inputs))
        names = (c_char_p * max(len(exclude), 1))(*(name_text(one, "exclude") for one in exclude))
        stage.inputs, stage.input_count = addressof(numbers), len(inputs)
        stage.limit, stage.offset = 0 if limit is None else integer(limit, "limit"), integer(offset, "offset")
        if limit is not None and stage.limit < 1:
            raise ValueError(f"limit is {limit}; it must be 1 or more, or None for all")
        if threshold is not None:
            stage.has_threshold, stage.threshold = True, threshold
        stage.exclude, stage.exclude_count, stage.report = addressof(names), len(exclude), addressof(report)

        def prepare(stack: ExitStack) -> None:
            if collection is not None:
                stage.collection = stack.enter_context(collection._handle)
            fill(stage, stack)

        self._stages.append((stage, prepare, (report, numbers, names, keep)))
        return len(self._stages) - 1

    def search(self, collection: Collection, query: Any = None, *, words: Optional[str] = None, sparse: Any = None, modifier: Optional[str] = None, multi: Any = None,
               among: Sequence[int] = (), where: Any = None, parameters: Any = None, nprobe: int = 0, recall: float = 0.0, **trim: Any) -> int:
        """Search by a vector, by the words of texts, by a sparse vector or by a multivector; with `among`, only the rows of these stages."""
        if sum(one is not None for one in (query, words, sparse, multi)) != 1:
            raise ValueError("give one of a vector, words, sparse and multi")
        asked = made(c.ww_query)
        held: Any = None
        asked.query_count, asked.dim = 1, collection.dim
        if query is not None:
            array, _, single = as_rows(query, collection.dim, "query")
            if not single:
                raise ValueError("a plan asks one question: give one vector")
            asked.queries, held = address(array), [array]
        elif words is not None:
            texts, match = (c_char_p * 1)(words.encode()), made(c.ww_match)
            match.texts, match.mode = addressof(texts), c.WW_MATCH_TEXT
            asked.match, held = addressof(match), [texts, match]
        elif sparse is not None:
            given = as_sparse(sparse)
            by_sparse = sparse_query(given, modifier)
            asked.sparse, held = addressof(by_sparse), [given, by_sparse]
        else:
            late = as_multi(multi)
            by_multi = multi_query(late)
            asked.multi, held = addressof(by_multi), [late, by_multi]
        asked.nprobe, asked.recall = integer(nprobe, "nprobe"), recall

        def fill(stage: Any, stack: ExitStack) -> None:
            stage.query = addressof(asked)
            if where is not None or parameters is not None:
                selection = stack.enter_context(collection._selected(where, parameters))
                asked.filter, asked.where = selection.filter, selection.where
                asked.parameters, asked.parameter_count = selection.parameters, selection.parameter_count

        return self._add(collection, among, fill, held, **trim)

    def fuse(self, *inputs: int, fusion: str = "ranks", weights: Optional[Sequence[float]] = None, constant: float = 60.0, **trim: Any) -> int:
        """Make one list of several: by "ranks" (reciprocal rank fusion), "scores", "scaled_ranks" or "distributions"."""
        how = made(c.ww_fuse)
        how.fusion, how.constant = chosen(_FUSIONS, fusion, "fusion"), constant
        if weights is not None and len(weights) != len(inputs):
            raise ValueError(f"there are {len(weights)} weights for {len(inputs)} inputs")
        numbers = (c_double * max(len(inputs), 1))(*(weights or [1.0] * len(inputs)))
        how.weights = addressof(numbers)

        return self._add(None, inputs, lambda to, _: to.__setattr__("fuse", addressof(how)), numbers, **trim)

    def mmr(self, stage: int, relevance: float = 0.5, **trim: Any) -> int:
        """Choose hits that differ from each other (maximal marginal relevance); 1 orders by relevance only."""
        how = made(c.ww_diversity)
        how.__setattr__("lambda", relevance)
        return self._add(None, [stage], lambda to, _: to.__setattr__("diversity", addressof(how)), **trim)

    def group(self, stage: int, field: str, groups: int = 10, size: int = 1, **trim: Any) -> int:
        """Take the best `size` hits for each of the best `groups` values of a field."""
        how = made(c.ww_grouping)
        how.field, how.groups, how.size = name_text(field, "field"), integer(groups, "groups"), integer(size, "size")
        return self._add(None, [stage], lambda to, _: to.__setattr__("grouping", addressof(how)), **{"limit": None, **trim})

    def order(self, *inputs: int, field: str, descending: bool = False, **trim: Any) -> int:
        """Order rows by the numbers or dates of a field; rows without one are left out."""
        how = made(c.ww_order)
        how.field, how.descending = name_text(field, "field"), descending
        return self._add(None, inputs, lambda to, _: to.__setattr__("order", addressof(how)), **trim)

    def formula(self, *inputs: int, formula: Any, defaults: Optional[dict[str, Any]] = None, **trim: Any) -> int:
        """Score rows by a formula (docs/guide/hybrid-search.md); `defaults` has values for fields and scores that a row lacks."""
        text, values = json.dumps(formula).encode(), None if defaults is None else json.dumps(defaults).encode()

        def fill(stage: Any, stack: ExitStack) -> None:
            read = c_void_p()
            check(c.ww_formula_read(text, values, c.ww_condition_reader(), None, byref(read)))
            stack.callback(c.ww_formula_destroy, read)
            stage.formula = read.value

        return self._add(None, inputs, fill, **trim)

    def run(self, *, payloads: bool = False, vectors: bool = False, texts: bool = False) -> Results:
        """Run the stages and return the hits of the last one, with their ids and what else is asked for."""
        if not self._stages:
            raise ValueError("the plan has no stage")
        plan, found, token = made(c.ww_plan), c_void_p(), Token()
        stages = (c_void_p * len(self._stages))(*(addressof(stage) for stage, _, _ in self._stages))
        plan.stages, plan.stage_count, plan.question_count, plan.cancel = addressof(stages), len(self._stages), 1, token.pointer
        plan.fetch = c.WW_FETCH_IDS | (c.WW_FETCH_PAYLOADS if payloads else 0) | (c.WW_FETCH_VECTORS if vectors else 0) | (c.WW_FETCH_TEXTS if texts else 0)
        with ExitStack() as stack:
            for _, prepare, _ in self._stages:
                prepare(stack)
            interruptible(lambda told: int(c.ww_plan_run(plan, byref(found))), None, "search", token=token)
        self._plan, self._held = plan, stages
        return _taken(found, True, None, int(plan.fetch))

    @property
    def reports(self) -> list[StageReport]:
        """What each stage did in the last run."""
        return [StageReport((c.ww_stage_name(stage) or b"").decode(), *(getattr(report, name) for name in StageReport._fields[1:]))
                for stage, _, (report, *_) in self._stages]

    def explain(self) -> str:
        """The same for people to read, a line per stage; "" before a run."""
        if self._plan is None:
            return ""
        length = c.ww_plan_explain(self._plan, None, 0)
        text = create_string_buffer(length + 1)
        c.ww_plan_explain(self._plan, text, length + 1)
        return text.value.decode()
