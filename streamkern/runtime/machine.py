"""Processor and BLAS libraries of this machine."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import threadpoolctl


def processor() -> str:
    """Return the model of the processor, with family and model number where they are told."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    named = facts.get("model name") or platform.machine()
    numbers = ", ".join(f"{k} {facts[k]}" for k in ("cpu family", "model") if k in facts)
    vectors = "AVX-512" if "avx512f" in facts.get("flags", "") else ""
    inside = ", ".join(filter(None, (numbers, vectors)))
    return f"{named} ({inside})" if inside else named


def blas_libraries() -> list[dict[str, Any]]:
    """Return the BLAS and OpenMP libraries that are loaded: what they are, and their threads."""
    return [
        {key: pool.get(key) for key in ("internal_api", "version", "architecture")}
        | {"threads": pool["num_threads"], "library": Path(pool["filepath"]).name}
        for pool in threadpoolctl.threadpool_info()
    ]
