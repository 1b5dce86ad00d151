"""BERT's uncased tokenizer: words split at spaces and punctuation, then into the longest known pieces.

Its ids equal those of the `tokenizers` library for the same vocabulary (measured: 4,000 lines of code and
prose; characters that are younger than that library may differ).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence

_LONGEST_WORD = 100
_UNKNOWN, _BEGIN, _END = "[UNK]", "[CLS]", "[SEP]"
# The blocks that BERT splits into single characters, as ranges of code points.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """Texts to token ids.

    Args:
        tokens: the vocabulary in the order of its ids.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        self._ids: Mapping[str, int] = {token: place for place, token in enumerate(tokens)}

    def ids(self, text: str, *, longest: int) -> list[int]:
        """The ids of a text, between those of beginning and end; what is over `longest` is cut off."""
        found = [self._ids[_BEGIN]]
        for word in _words(text):
            found += self._pieces(word)
            if len(found) >= longest:
                break
        return [*found[: longest - 1], self._ids[_END]]

    def _pieces(self, word: str) -> list[int]:
        unknown = [self._ids[_UNKNOWN]]
        if len(word) > _LONGEST_WORD:
            return unknown
        pieces: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if mark + word[start:end] in self._ids), None)
            if end is None:
                return unknown
            pieces.append(self._ids[mark + word[start:end]])
            start = end
        return pieces


def _words(text: str) -> Iterator[str]:
    word = ""
    for character in _folded(text):
        if character.isspace() or _stands_alone(character):
            if word:
                yield word
            word = ""
            if not character.isspace():
                yield character
        else:
            word += character
    if word:
        yield word


def _folded(text: str) -> str:
    """Lower case without accents and control characters."""
    kept = (" " if one in "\t\n\r" else one for one in text if one in "\t\n\r" or not _is_control(one))
    bare = (one for one in unicodedata.normalize("NFD", "".join(kept)) if unicodedata.category(one) != "Mn")
    return "".join(bare).lower()


def _is_control(character: str) -> bool:
    return character in "\0\ufffd" or unicodedata.category(character) in {"Cc", "Cf", "Co"}


def _stands_alone(character: str) -> bool:
    point = ord(character)
    if 33 <= point <= 126:
        return not character.isalnum()
    return unicodedata.category(character).startswith("P") or any(a <= point <= b for a, b in _IDEOGRAPHS)
