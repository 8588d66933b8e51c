"""Which cells share a job: large ones alone, the others in a number of batches that is bounded."""

import itertools

import pytest

import batches
from study import CellKey


def grid(sizes: dict[int, int], sources: tuple[str, ...] = ("s",)) -> list[CellKey]:
    """So many cells of each N and source; they differ in d."""
    return [
        CellKey(source, N, d, "relu")
        for source, (N, count) in itertools.product(sources, sizes.items())
        for d in range(1, count + 1)
    ]


def plan(
    cells: list[CellKey], seconds: dict[int, float], drawn: tuple[str, ...] = ()
) -> dict[str, list[CellKey]]:
    return batches.plan({cell: seconds[cell.N] for cell in cells}, drawn)


def alone(batches_of: dict[str, list[CellKey]]) -> set[str]:
    return {name for name in batches_of if "shared" not in name}


def test_every_cell_is_in_one_batch_of_its_source():
    cells = grid({8: 300, 64: 30, 512: 3}, ("s", "t"))
    planned = plan(cells, {8: 0.0, 64: 1.0, 512: 90.0})
    assert sorted(itertools.chain(*planned.values())) == sorted(cells)
    for name, members in planned.items():
        assert members == sorted(members)
        assert {f"source~{cell.source}" for cell in members} == {name.split("/")[0]}
    assert list(planned) == sorted(planned)
    assert alone(planned) == {cell.path for cell in cells if cell.N == 512}


@pytest.mark.parametrize("sources", [1, 100])
@pytest.mark.parametrize("cost", [0.0, 0.1, 3.0, 50.0, 1e4])
@pytest.mark.parametrize("count", [1, batches.ALONE, batches.ALONE + 1, 1000, 10_000])
def test_the_number_of_batches_is_bounded(count, cost, sources):
    """However many sources are drawn: ten thousand cells are some five hundred jobs."""
    names = tuple(f"s{n}" for n in range(sources))
    cells = grid({8: max(1, count // sources)}, names)
    planned = plan(cells, {8: cost}, names)
    assert len(planned) <= batches.ALONE + batches.SHARED
    assert len(batches.plan(dict.fromkeys(cells, cost), names, alone=4, shared=4)) <= 8
    each = batches.LEAST_SECONDS + cost
    if len(cells) == 10_000:
        fair = max(batches.BATCH_SECONDS, count * each / batches.SHARED)
        assert max(map(len, planned.values())) * each < 2 * fair * 1.3


@pytest.mark.parametrize(("cost", "started"), [(0.0, 2), (0.5, 11), (2.0, 33)])
def test_a_batch_is_worth_its_start(cost, started):
    """Of a thousand cells, however small, in no more batches than pay for their seven jobs."""
    planned = plan(grid({8: 1000}), {8: cost})
    work = 1000 * (batches.LEAST_SECONDS + cost)
    assert len(planned) * batches.STARTING_SECONDS <= 0.1 * work
    assert started / 3 < len(planned) <= started


@pytest.mark.parametrize("length", [1, 100])
def test_a_job_can_be_told_of_all_cells_of_a_batch(length):
    """Linux takes 131,072 bytes of a command, and other words are in it, too."""
    planned = plan(grid({8: 30_000}, ("s" * length,)), {8: 0.0}, ("s" * length,))
    assert max(len(" ".join(x.path for x in cells)) for cells in planned.values()) < 120_000


def test_the_largest_stay_alone_when_there_are_many():
    cells = grid({256: 500, 512: 41, 4096: 3})
    planned = plan(cells, {256: 1.0, 512: 50.0, 4096: 100.0})
    assert alone(planned) == {cell.path for cell in cells if cell.N == 4096}


def test_an_added_cell_moves_no_other():
    cells = grid({8: 500})
    before = plan(cells, {8: 1.0})
    assert len(before) == 8
    after = plan([*cells, CellKey("s", 8, 501, "relu"), CellKey("t", 8, 1, "exp")], {8: 1.0})
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"source~t/shared~00", next(n for n in changed if n.startswith("source~s"))}


def test_drawn_sources_share_batches_and_others_have_their_own():
    cells = grid({8: 50, 512: 1}, ("a", "b", "file"))
    planned = plan(cells, {8: 0.0, 512: 90.0}, ("a", "b"))
    assert len(planned) == 5 and alone(planned) == {cell.path for cell in cells if cell.N == 512}
    for name, sources in (("drawn", {"a", "b"}), ("source~file", {"file"})):
        assert {cell.source for cell in planned[f"{name}/shared~00"]} == sources
        assert {cell.N for cell in planned[f"{name}/shared~00"]} == {8}


def test_another_drawn_source_moves_no_cell():
    cells = grid({8: 100}, ("a", "b", "c"))
    before = plan(cells, {8: 1.0}, ("a", "b", "c"))
    added = CellKey("d", 8, 1, "relu")
    after = plan([*cells, added], {8: 1.0}, ("a", "b", "c", "d"))
    assert len(before) == len(after) == 4
    assert [name for name in after if after[name] != before[name]] == [
        name for name in after if added in after[name]
    ]


def test_the_order_of_cells_does_not_matter():
    cells = grid({8: 200, 64: 3}, ("s", "t"))
    seconds = {8: 1.0, 64: 90.0}
    assert plan(cells[::-1], seconds) == plan(cells, seconds)


def test_a_digest_tells_cells_and_their_order_apart():
    assert len({batches.digest(cells) for cells in ("a", "b", "ab", "ba")}) == 4
