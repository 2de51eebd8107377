"""The OpenAI protocol: chat completions and responses."""
