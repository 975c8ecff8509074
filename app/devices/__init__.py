"""The page of what this PC can compute on."""
