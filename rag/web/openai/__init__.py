"""The OpenAI protocols: chat completions and responses."""
