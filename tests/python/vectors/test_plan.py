"""Plans: each stage against the call that it stands for, what stages report, and formulas against those of qdrant-client."""
import random

import numpy as np
import pytest

import warpwave

ROWS = 60


@pytest.fixture(name="docs")
def make_docs():
    numbers = np.random.default_rng(3)
    docs = warpwave.Collection(4, device="cpu")
    docs.add(numbers.standard_normal((ROWS, 4)), ids=[f"r{i}" for i in range(ROWS)],
             payloads=[{"n": i % 9, "g": i % 4} if i % 5 else {"g": i % 4} for i in range(ROWS)])
    return docs


EAST, NORTH = [1, 0, 0, 0], [0, 1, 0, 0]


def test_a_search_is_the_collections(docs):
    plan = warpwave.Plan()
    plan.search(docs, EAST, limit=5, where={"n": {"$gt": 3}})
    found, expected = plan.run(payloads=True), docs.search(EAST, 5, where={"n": {"$gt": 3}}, payloads=True)
    assert list(found.ids) == list(expected.ids) and np.array_equal(found.scores, expected.scores) and found.payloads == expected.payloads
    assert list(plan.run().ids) == list(expected.ids)  # again


def test_stages_work_on_the_hits_of_others(docs):
    near = docs.search(EAST, 20)
    plan = warpwave.Plan()
    first = plan.search(docs, EAST, limit=20)
    plan.search(docs, NORTH, among=[first], limit=4)
    north = [i for i in docs.search(NORTH, ROWS).ids if i in list(near.ids)]
    assert list(plan.run().ids) == north[:4]
    plan = warpwave.Plan()
    plan.mmr(plan.search(docs, EAST, limit=20), 0.3, limit=6)
    assert list(plan.run().ids) == list(docs.search(EAST, 6, mmr=0.3, candidates=20).ids)
    plan = warpwave.Plan()
    plan.group(plan.search(docs, EAST, limit=None), "g", groups=2, size=3)
    assert list(plan.run().ids) == list(docs.search(EAST, group_by="g", groups=2, group_size=3).ids)
    plan = warpwave.Plan()
    plan.order(plan.search(docs, EAST, limit=20), field="n", descending=True, limit=None)
    numbers = [payload["n"] for payload in plan.run(payloads=True).payloads]
    assert numbers == sorted(numbers, reverse=True) and plan.reports[1].rows_gone == 20 - len(numbers) > 0


def test_lists_are_fused_and_scored(docs):
    plan = warpwave.Plan()
    both = plan.fuse(plan.search(docs, EAST, limit=10), plan.search(docs, NORTH, limit=10), weights=[1, 2], limit=None)
    plan.formula(both, formula={"sum": ["$score", {"mult": [2, {"filter": {"g": 1}}]}, {"mult": ["n", 0.001]}]}, defaults={"n": 0}, limit=5)
    found = plan.run(payloads=True)
    assert all(payload["g"] == 1 for payload in found.payloads[:2]) and list(found.scores) == sorted(found.scores, reverse=True)
    assert [report.stage for report in plan.reports] == ["query", "query", "fuse", "formula"] and plan.reports[3].hits == 5
    assert plan.explain().count("\n") == 4 and "scored" in plan.explain()


def test_hits_are_left_out_and_counted(docs):
    every = docs.search(EAST, 6)
    plan = warpwave.Plan()
    plan.search(docs, EAST, limit=2, offset=1, threshold=float(every.scores[4]), exclude=[every.ids[1], "unknown"])
    assert list(plan.run().ids) == [every.ids[2], every.ids[3]]
    assert plan.reports[0].rows_excluded == 1 and plan.reports[0].rows_skipped == 1


def test_sparse_vectors_and_words_of_a_store(tmp_path):
    with warpwave.Store(tmp_path / "plan.db", device="cpu") as store:
        docs = store.create("docs", dim=2)
        docs.add([[1, 0], [0, 1], [1, 1]], ids=["a", "b", "c"], texts=["red fox", "red hen", "blue"], sparse=[{1: 1.0}, {1: 2.0}, {2: 1.0}])
        plan = warpwave.Plan()
        plan.fuse(plan.search(docs, words="red"), plan.search(docs, sparse={1: 1.0}, limit=1), plan.search(docs, [1, 0], limit=1), limit=3)
        assert set(plan.run(texts=True).texts) == {"red fox", "red hen"}


def test_what_makes_no_sense_is_refused(docs):
    plan = warpwave.Plan()
    with pytest.raises(ValueError):
        plan.run()
    for wrong in ({}, {"query": EAST, "words": "x"}, {"query": [EAST, NORTH]}, {"query": EAST, "limit": 0}):
        with pytest.raises(ValueError):
            plan.search(docs, **wrong)
    assert plan.explain() == ""
    near = plan.search(docs, EAST)
    with pytest.raises(ValueError):
        plan.fuse(near, weights=[1, 2])
    plan.formula(near, formula={"sum": ["n"]})
    with pytest.raises(warpwave.Error, match="in the payload|has no value"):
        plan.run()
    plan = warpwave.Plan()
    plan.mmr(7)
    with pytest.raises(warpwave.Error):
        plan.run()


def random_formula(chance, depth):
    def below():
        return random_formula(chance, depth - 1)

    if depth == 0 or chance.random() < 0.2:
        return chance.choice([round(chance.uniform(-3, 3), 3), "$score", "n", "missing", {"datetime_key": "when"},
                              {"geo_distance": {"origin": {"lat": chance.uniform(-80, 80), "lon": chance.uniform(-170, 170)}, "to": "place"}}])
    decay = {"x": below(), "target": below(), "scale": round(chance.uniform(0.5, 5), 2), "midpoint": round(chance.uniform(0.1, 0.9), 2)}
    return chance.choice([
        {"sum": [below(), below()]}, {"mult": [below(), below()]}, {"max": [below(), below()]}, {"min": [below(), below()]}, {"neg": below()}, {"abs": below()},
        {"sqrt": {"abs": below()}}, {"exp": below()}, {"ln": below()}, {"log10": {"abs": below()}}, {"acosh": below()}, {"pow": {"base": below(), "exponent": below()}},
        {"div": {"left": below(), "right": below(), "by_zero_default": 2.5}}, {"lin_decay": decay}, {"exp_decay": decay}, {"gauss_decay": decay}])


@pytest.mark.nightly
def test_formulas_are_those_of_qdrant():
    pydantic = pytest.importorskip("pydantic")
    models = pytest.importorskip("qdrant_client").models
    from qdrant_client.hybrid.formula import evaluate_expression

    payload = {"n": 2.5, "when": "2024-01-31T12:00:00Z", "place": {"lat": 52.52, "lon": 13.405}}
    docs = warpwave.Collection(2, metric="dot", device="cpu")
    docs.add([[0.75, 0]], ids=["1"], payloads=[payload])
    chance, expression, agreed = random.Random(7), pydantic.TypeAdapter(models.Expression), 0
    for _ in range(400):
        formula = random_formula(chance, 3)
        try:
            expected = evaluate_expression(expression.validate_python(formula), "1", [{"1": 0.75}], payload, {}, {"missing": 4})
        except (ValueError, OverflowError):
            expected = float("nan")
        plan = warpwave.Plan()
        plan.formula(plan.search(docs, [1, 0]), formula=formula, defaults={"missing": 4})
        if not abs(expected) < 3.4028235e38:
            with pytest.raises(warpwave.Error):
                plan.run()
            continue
        assert plan.run().scores[0] == pytest.approx(expected, rel=1e-6, abs=1e-9), formula
        agreed += 1
    assert agreed > 100
