"""Search index of the site: a script with the weight of every word in every page, for the search in the page.

The weights are BM25's, as `warpsmith knowledge search` counts them, so that the script only adds them up. It is a
script and no data file because a page from disk may not fetch.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from warpsmith.knowledge.search import ranking, words
from warpsmith.site.page import SearchText

SATURATION, LENGTH = 1.2, 0.75
"""Parameters of BM25: how fast repeated words stop counting, and how much the length of a text counts."""

WEIGHTS = ranking.COLUMNS
"""Part of a text to the weight of a word in it."""


def search_script(texts: Sequence[SearchText], synonyms: Sequence[Sequence[str]]) -> str:
    """Return the script that defines the index.

    Args:
        texts: what can be found.
        synonyms: groups of phrases of one meaning.
    """
    index = {
        "texts": [[text.title, text.address, text.kind, _shorten(text.summary)] for text in texts],
        "words": _weights(texts),
        "synonyms": [[words.normalize_text(phrase).strip() for phrase in group] for group in synonyms],
        "idle": sorted(words.IDLE_WORDS),
        "phrases": [_phrases(text) for text in texts],
    }
    data = json.dumps(index, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return f"window.warpsmithSearch = {data.replace('<', chr(92) + 'u003c')};\n"


def _weights(texts: Sequence[SearchText]) -> dict[str, list[float]]:
    """Return for each word the places of the texts that hold it, each followed by its weight there."""
    scores: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for column, weight in WEIGHTS.items():
        counted = [Counter(words.normalize_text(getattr(text, column)).split()) for text in texts]
        lengths = [counts.total() for counts in counted]
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        spread = Counter(word for counts in counted for word in counts)
        for address, counts in enumerate(counted):
            room = SATURATION * (1 - LENGTH + LENGTH * lengths[address] / (mean or 1.0))
            for word, count in counts.items():
                if word not in words.IDLE_WORDS:
                    rarity = _rarity(spread[word], len(texts))
                    scores[word][address] += weight * rarity * count * (SATURATION + 1) / (count + room)
    return {word: _flat(scores_by_text) for word, scores_by_text in scores.items() if len(word) <= _LONGEST}


_LONGEST = 40
"""Characters of the longest word that is indexed."""


def _rarity(count: int, total: int) -> float:
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def _flat(scores_by_text: Mapping[int, float]) -> list[float]:
    return [number for address, score in sorted(scores_by_text.items()) for number in (address, round(score, 2))]


def _phrases(text: SearchText) -> str:
    """Return title and tags as one normalized text, in which terms of several words are looked for."""
    return words.normalize_text(f"{text.title} {text.tags}").strip()


def _shorten(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:159].rstrip()}…"
