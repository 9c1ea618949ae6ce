"""Numbers as a person would write them, in the terminal and on the page alike."""


def short(value: float | None) -> str:
    """Four decimals, four digits where that says too little or too much; a dash for nothing."""
    if value is None:
        return "–"
    return f"{value:.4f}" if 1e-2 <= abs(value) < 1e6 or value == 0 else f"{value:.4g}"
