"""What the product says today, frozen: a change of it shows as a difference of these files.

`python -m tests.goldens [NAME…]` makes them anew; `tests/test_goldens.py` compares. A line is a
question with the essential of what came of it, so that a person can read what changed. That it is
right is for other tests and for the benchmarks to say.
"""
