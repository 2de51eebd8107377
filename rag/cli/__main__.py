"""`python -m rag.cli`."""

from rag.cli import main

main()
