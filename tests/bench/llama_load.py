"""Load a model, and a draft beside it, in llama.cpp, and let it write; for a Python that has `xllamacpp`.

    python llama_load.py MODEL.gguf IDS.json N_TOKENS [DRAFT.gguf N_MAX]

One JSON object on stdout: text, drafted and accepted tokens. A file that cannot be loaded is an error.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import xllamacpp  # type: ignore[import-not-found]


def main(model: str, ids: str, n: str, draft: str = "", n_max: str = "0") -> None:
    """Write `n` tokens after the ids."""
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx, params.n_gpu_layers, params.warmup = 512, 0, False
    params.cpuparams.n_threads = 1
    if draft:
        params.speculative.types = [
            xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH
        ]
        params.speculative.draft.mparams.path = draft
        params.speculative.draft.n_max = int(n_max)
    server = xllamacpp.Server(params)
    with open(ids, encoding="utf-8") as file:
        prompt = json.load(file)
    found: dict[str, Any] = server.handle_completions(
        {"prompt": prompt, "n_predict": int(n), "temperature": 0, "ignore_eos": True}
    )
    times = found.get("timings", {})
    print(
        json.dumps(
            {
                "text": found["choices"][0]["text"],
                "drafted": times.get("draft_n", 0),
                "accepted": times.get("draft_n_accepted", 0),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
