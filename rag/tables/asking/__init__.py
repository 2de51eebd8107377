"""Questions over rows to plans, without a model."""
