"""Coroutines in tests: a browser of another test may have left its own loop in this thread."""

import asyncio
from concurrent.futures import ThreadPoolExecutor


def finished(coroutine):
    """What it gives, run in a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
