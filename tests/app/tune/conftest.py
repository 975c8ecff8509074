"""The services of the models page, with a model that is loaded."""

from tests.app.models.conftest import (
    controller,
    fake,
    home,
    library,
    models_dir,
    seen,
    services,
    tree,
)

__all__ = ["controller", "fake", "home", "library", "models_dir", "seen", "services", "tree"]
