"""Rows that come as records or as Arrow columns, and records of rows."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional

import numpy as np

_KNOWN = ("id", "vector", "payload", "text", "sparse")


def is_arrow(value: Any) -> bool:
    """Return True for an array of pyarrow, chunked or not."""
    return type(value).__module__.startswith("pyarrow") and hasattr(value, "null_count") and hasattr(value, "type")


def arrow_matrix(column: Any) -> Any:
    """Return an Arrow column of lists as a matrix, without a copy if Arrow stores the numbers contiguously."""
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    if hasattr(column, "chunks"):  # old versions leave an array of chunks
        column = column.chunk(0) if column.num_chunks == 1 else column
    if column.null_count:
        raise ValueError(f"row {int(np.flatnonzero(column.is_null())[0])} of a batch has no vector")
    if not hasattr(column.type, "value_type"):  # a column of numbers
        return np.asarray(column)
    flat = np.asarray(column.flatten())
    if len(column) == 0 or len(flat) % len(column):
        raise ValueError("the vectors of the table are not all of one length")
    lengths = {len(one) for one in column} if not hasattr(column.type, "list_size") else set()
    if len(lengths) > 1:
        raise ValueError(f"the vectors of the table have {len(lengths)} different lengths")
    return flat.reshape(len(column), -1)


def are_records(value: Any) -> bool:
    """Return True for a dict with a vector, or a list of them."""
    return isinstance(value, dict) or isinstance(value, list) and len(value) > 0 and isinstance(value[0], dict)


class Split(NamedTuple):
    """What records have; None for what none of them has."""

    vectors: list[Any]
    ids: Optional[list[Any]]
    payloads: Optional[list[Any]]
    texts: Optional[list[Any]]
    sparse: Optional[list[Any]]


def split_records(records: Any) -> Split:
    """Return the parts of records.

    A record has "vector", and maybe "id", "text", "sparse" and "payload". Without "payload", all other fields are the payload. Exports to
    JSON lines have sparse vectors as {"indices": [...], "values": [...]}.
    """
    listed = [records] if isinstance(records, dict) else records
    for number, record in enumerate(listed):
        if not isinstance(record, dict) or "vector" not in record:
            raise ValueError(f"record {number} is {record!r:.80}; it must be a dict with the field 'vector'")
        if "payload" in record and (more := [name for name in record if name not in _KNOWN]):
            raise ValueError(f"record {number} has a 'payload' and other fields ({', '.join(map(str, more))}); give one or the other")
    ids = [record.get("id") for record in listed]
    if any(one is None for one in ids) and any(one is not None for one in ids):
        raise ValueError(f"record {ids.index(None)} has no 'id', and others do; give each one an id, or none")
    payloads = [record["payload"] if "payload" in record else {name: value for name, value in record.items() if name not in _KNOWN} or None
                for record in listed]
    texts = [record.get("text") for record in listed]
    sparse = [(one.get("indices"), one.get("values")) if isinstance(one, dict) and "indices" in one else one
              for one in (record.get("sparse") for record in listed)]
    return Split([record["vector"] for record in listed], None if not ids or ids[0] is None else ids, *map(_or_none, (payloads, texts, sparse)))


def _or_none(values: list[Any]) -> Optional[list[Any]]:
    return values if any(one is not None for one in values) else None
