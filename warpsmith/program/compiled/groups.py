"""Groups of items that links connect."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")


def join_groups(items: Iterable[Item], links: Iterable[tuple[Item, Item]]) -> list[list[Item]]:
    """Group items that are connected by links, directly or through others; items keep their order."""
    leaders = {item: item for item in items}

    def leader(item: Item) -> Item:
        while leaders[item] is not item:
            leaders[item] = leaders[leaders[item]]
            item = leaders[item]
        return item

    for first, second in links:
        leaders[leader(second)] = leader(first)
    groups: dict[int, list[Item]] = {}
    for item in leaders:
        groups.setdefault(id(leader(item)), []).append(item)
    return list(groups.values())
