"""The page of the local API."""
