"""Numbers as a person would write them, and words, in the terminal and on the page alike."""

NO_DIFFERENCE = "no difference, since it takes two draws of episodes or more (of methods that train, trained draws)"


def short(value: float | None) -> str:
    """Four decimals, four digits where that says too little or too much; a dash for nothing."""
    if value is None:
        return "–"
    return f"{value:.4f}" if 1e-2 <= abs(value) < 1e6 or value == 0 else f"{value:.4g}"
