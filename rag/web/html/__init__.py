"""Records as HTML: answers, cards, results, evidence, exports."""
