"""How close is close enough, each with its reason. Every test takes its tolerances from here."""

EPSILON = 2.0**-52  # the relative distance of neighbouring doubles
FEW_ROUNDINGS = 8 * EPSILON  # the same formula in another order
ROUNDINGS = 128  # of a long formula, in units of what its conditioning makes of one rounding
FOLDED_CONSTANTS = 1e-13  # high precision on both sides, but numbers such as 2/sqrt(pi) are doubles
NUMERIC_DERIVATIVE = 1e-12  # derivatives by mpmath.diff with 40 digits against exact ones with double constants
QUADRATURE = 1e-12  # Gauss-Legendre in panels against scipy's adaptive quadrature, smooth bodies
SHOWN_DIGITS = 1e-12  # text with 17 digits, read back and evaluated in another order
