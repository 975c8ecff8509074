"""The chat page: its store, its rendering and its widgets."""
