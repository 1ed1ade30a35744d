"""Another function of the same name."""


def helper(x: float) -> float:
    return 2 * x
