"""Stems are the same whoever else asks for some meanwhile."""

import sys
from concurrent.futures import ThreadPoolExecutor

import snowballstemmer

from rag.language.words import stem_of

BEGINNINGS = ("charg", "häus", "relational", "gefäll", "nation", "conditional", "refund", "überhol")
ENDINGS = ("ing", "es", "ed", "ungen", "isch", "ation", "s")
WORDS = [beginning + ending for beginning in BEGINNINGS for ending in ENDINGS]


def test_threads_do_not_mix_their_words():
    rules = ("english", "german", "porter")
    alone = {each: snowballstemmer.stemmer(each) for each in rules}
    wanted = {(word, each): alone[each].stemWord(word) for each in rules for word in WORDS}
    asked = list(wanted) * 20
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda pair: stem_of(*pair), asked))
    finally:
        sys.setswitchinterval(before)

    assert found == [wanted[pair] for pair in asked]
