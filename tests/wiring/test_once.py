"""Attributes that are made at their first use."""

from threading import Barrier, Thread

import pytest

from rag.wiring.components import once


class House:
    def __init__(self):
        self.built = []

    @once
    def cellar(self):
        self.built.append("cellar")
        return object()

    @once
    def kitchen(self):
        self.built.append("kitchen")
        return (self.cellar,)


class TestAnAttribute:
    def test_is_made_when_it_is_first_needed_and_kept(self):
        house = House()
        assert house.built == []

        assert house.kitchen == (house.cellar,)

        assert house.kitchen is house.kitchen
        assert house.built == ["kitchen", "cellar"]

    def test_belongs_to_its_object(self):
        assert House().cellar is not House().cellar

    def test_is_made_by_one_of_many_threads(self):
        house, together = House(), Barrier(8)
        seen = []

        def look():
            together.wait()
            seen.append(house.kitchen)

        threads = [Thread(target=look) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(seen) == 8
        assert {id(each) for each in seen} == {id(house.kitchen)}
        assert sorted(house.built) == ["cellar", "kitchen"]

    def test_that_cannot_be_made_is_tried_again(self):
        class Site(House):
            stone = False

            @once
            def wall(self):
                if not self.stone:
                    raise LookupError("no stone")
                return "wall"

        site = Site()
        with pytest.raises(LookupError):
            _ = site.wall
        site.stone = True

        assert site.wall == "wall"
