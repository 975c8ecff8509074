"""The local API: OpenAI's and Anthropic's dialects in front of the engine."""
