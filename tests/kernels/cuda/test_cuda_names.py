"""The parts of `CudaOps` share one `self`: what one of them sets no other may set for something else."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict

from engine.ops.cuda import CudaOps


def test_no_two_parts_set_the_same_attribute() -> None:
    owners: dict[str, set[str]] = defaultdict(set)
    for part in CudaOps.__mro__[1:]:  # which itself begins and ends what its parts use
        if not part.__module__.startswith("engine.ops.cuda"):
            continue
        for node in ast.walk(ast.parse(inspect.getsource(part))):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
            ):
                owners[node.attr].add(part.__name__)
    assert len(owners) > 20
    shared = {name: parts for name, parts in owners.items() if len(parts) > 1}
    assert not shared
