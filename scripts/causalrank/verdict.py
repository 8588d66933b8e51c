"""The three rank verdicts on one matrix, and why they differ."""


def why(exact: int | None, numerical: int | None, tolerance: float) -> str:
    """Why the numerical rank in float64 is not the exact rank; `tolerance` is over sigma_max."""
    if exact is None:
        return "exact rank not computed at this N"
    if numerical is None:
        return "no singular values at this N"
    if numerical == exact:
        return "agree"
    if numerical < exact:
        return (
            f"{exact - numerical} directions lie below {tolerance:.1e} sigma_max: nonzero, "
            "but out of sight of double precision"
        )
    return f"rounding errors lift {numerical - exact} zero singular values above the tolerance"
