"""The Tune page: what guesses for a model, how it runs, what that costs and brings."""
