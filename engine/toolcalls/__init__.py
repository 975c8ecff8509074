"""Tool calls in the text of answers: one reader for every syntax that models write."""
