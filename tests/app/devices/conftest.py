"""The services of the models page."""

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
