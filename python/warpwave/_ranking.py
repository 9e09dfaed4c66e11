"""Ranking of hits before they are returned: maximal marginal relevance, or groups."""
from __future__ import annotations

from ctypes import byref, sizeof
from typing import Any, Callable, Optional

from . import _native as c
from ._arrays import name_text
from ._checked import integer
from ._errors import check

Run = Callable[[Any, Any, Any], int]


class Ranking:
    """The structs of a ranking, which live as long as the call."""

    def __init__(self, mmr: Optional[float], candidates: Optional[int], group_by: Optional[str], groups: int, group_size: int) -> None:
        if mmr is not None and group_by is not None:
            raise ValueError("mmr and group_by: give one of them")
        self.candidates = 0 if candidates is None else integer(candidates, "candidates")
        self.diversity = self.grouping = None
        if mmr is not None:
            self.diversity = c.ww_diversity()
            check(c.ww_diversity_init(byref(self.diversity), sizeof(self.diversity)))
            self.diversity.__setattr__("lambda", mmr)
        if group_by is not None:
            self.grouping = c.ww_grouping()
            check(c.ww_grouping_init(byref(self.grouping), sizeof(self.grouping)))
            self.grouping.field = name_text(group_by, "group_by")
            self.grouping.groups, self.grouping.size = integer(groups, "groups"), integer(group_size, "group_size")

    def __bool__(self) -> bool:
        return self.diversity is not None or self.grouping is not None

    def run(self, collection: Any, asked: Any, found: Any) -> int:
        """Run the search in place of ww_collection_query()."""
        return int(c.ww_collection_rank(collection, asked, self.diversity, self.grouping, self.candidates, found))
