"""How close is close enough, each with its reason. Every test takes its tolerances from here."""

EPSILON = 2.0**-52  # the relative distance of neighbouring doubles
FEW_ROUNDINGS = 8 * EPSILON  # the same formula in another order
ROUNDINGS = 128  # of a long formula, in units of what its conditioning makes of one rounding
FOLDED_CONSTANTS = 1e-13  # high precision on both sides, but numbers such as 2/sqrt(pi) are doubles
NUMERIC_DERIVATIVE = (
    1e-12  # derivatives by mpmath.diff with 40 digits against exact ones with double constants
)
QUADRATURE = 1e-12  # Gauss-Legendre in panels against scipy's adaptive quadrature, smooth bodies
TWICE_DIVIDED = 1e-12  # differences that are 1/30 of their terms, divided by a small number, twice
REORDERED = 1e-13  # a well-conditioned model of a few dozen steps in another order

# of the compiled path; a sum is measured by the sizes of its terms
SAME_LINES = 1e-13  # the same lines in numpy, with other elementary functions and without fused multiply-adds
SUM_OF_LOGS = 1e-14  # a sum of logarithms against numpy's, each right to two units in the last place
FUSED = 1e-13  # the value and gradient that come along with a Hessian against those asked for alone
FINITE_DIFFERENCE = 1e-7  # central differences over a thousandth of a parameter, of the value's size

# densities, likelihoods and fits
SHAPE = 1e-13  # a shape and its derivatives against mpmath, in units of what its terms are before they cancel
LANDAU = 1e-11  # polynomials in pieces, differentiated twice
NUMERICAL = (
    1e-9  # a shape that is integrated by quadrature, and its derivatives in natural units, against mpmath
)
EXACT_FIT_ERRORS = 1e-3  # relative, errors of a fit against the inverse of the exact Hessian
UNSCALED = 1e-90  # absolute: densities are not scaled, far tails underflow before they are divided
PART = (
    1e-10  # relative, the probability of a part of a range against mpmath; some are differences of integrals
)
SCIPY_DENSITY = 1e-11  # scipy.stats, which is not exact itself, against our densities
UNIT_INTEGRAL = 1e-10  # scipy's adaptive quadrature of a normalised density
INTEGRAL_PROMISE = 1e-10  # what the library promises of numerical integrals
TERM_INTEGRAL = 1e-13  # integrals done term by term, once and for all
WRITTEN_VALUE = (
    1e-9  # of the logarithm of the integral of a written formula, against closed forms with many digits
)
WRITTEN_GRADIENT = 1e-8  # of its slopes, in units of what a parameter must move to matter
WRITTEN_HESSIAN = 1e-6  # of its second derivatives, in the same units
WRITTEN_ERRORS = (
    1e-3  # relative, of the errors of a fit, against the inverse of the Hessian from closed forms
)
DENSE_SUM = 3e-7  # of the logarithm of an integral, by a dense sum in doubles that may end at a pole
DENSE_SLOPE = 1e-4  # of slopes from such sums, in units of what a parameter must move to matter
DENSE_CURVATURE = 1e-2  # of second derivatives from such sums, in the same units
QUASI_RANDOM = (
    1e-3  # of the logarithm of an integral over 2**17 quasi-random points, some with an edge between them
)
TRAP_NLL = 0.01  # of minus the log likelihood of all events, and of its slope over an error: what a valid fit may be off
TRAP_ERRORS = 2e-3  # of its second derivative over an error squared: errors within a thousandth
SCIPY_CDF = 1e-9  # of the logarithm of a difference of two of scipy's distribution functions
NUMPY_SUM = 1e-12  # sums over a few thousand events against numpy's
DIFFERENCES = 2e-6  # central differences of exact first derivatives, relative to the largest
RECORDED_DIGITS = 1e-11  # what the C++ system recorded, against our sums at the same point
RECORDED_NLL = 1e-6  # both stop a little above the minimum
RECORDED_VALUE = (2 * RECORDED_NLL) ** 0.5  # of an error: so far away is what is so much above the minimum
RECORDED_ERROR = 5e-3  # relative, of errors and covariances: the C++ system's Hessian is numeric
HESSE = 2e-3  # relative, Minuit's numeric HESSE against the exact Hessian
SAME_MINIMUM = 2e-2  # of an error, between two fits that stop within the same tolerance
PROFILE = 1e-2  # relative, MINOS against a profile scan
PULL_SIGMAS = 4  # of a statistical statement
FLUSHED = 1e-300  # absolute: denormals count as zero inside compiled loops
TOTAL = 1e-15  # of a sum over millions of events, relative
SINGLE = 1e-5  # of sums of single-precision terms, relative to their sizes
SINGLE_MILLION = 1e-9  # of a sum of a million single-precision terms, whose roundings average out
SCIPY_FUNCTION = 1e-13  # what scipy promises of its functions of two arguments, relative
FEW_ULP = 4 * EPSILON  # an elementary function right to two units, against another one

# toys and intervals
PUBLISHED_CELL = (
    0.006  # half of the last digit of a published table, which was made by a scan in steps of 0.005
)
BELT_EDGE = 1e-9  # an end of a confidence belt, found by bisection
MINOS = 1e-3  # of an error: MINOS stops within its own tolerance, a profile is interpolated
ELLIPSE = 5e-3  # of an error: a contour between nodes a fifth of an error apart, against that of a parabola
REPEATED = 1e-4  # of an error: the same minimum from another start
POLYGON = 0.02  # of an error: the corners of a contour lie on it, its outermost points between them
WHOLE_COUNTS = 2  # of a Poisson interval against a Gaussian one: counts are whole, and skewed
TOTAL_YIELD = (
    1e-4  # relative, the sum of yields against the number of events, at the distance where fits stop
)

# errors of fits in compiled code against the inverse of the exact Hessian at the same point
EXACT_ERRORS = 1e-6
SAME_TOY = 1e-6  # of an error: the same toy fitted by the same steps, but for roundings, on another backend
HARDLY_MEASURED = (
    1e-4  # relative, of errors: the inverse of an all but singular Hessian, after other roundings
)
SAME_STEP = 1e-9  # relative: a Newton step in another order, with Hessians that are far from well conditioned

# OpenCL: the same random number through the same formula, whose functions are right to a few units only
SAME_RANDOM_NUMBER = 1e-12  # of a range

# plots
BIN_INTEGRAL = 1e-11  # of a bin, by a formula against scipy's quadrature, relative

# histograms
BIN_SUMS = 1e-8  # content and variance of a bin that became events: square roots of differences
FINE_BINS = 0.05  # of an error: a fit to bins of a fortieth of a width against that to the events
FINE_BIN_ERRORS = 0.02  # relative, their errors
COARSE_BINS = 1e-3  # relative, of a width: the next order of what bins of half a width do to it
IMAGE = 2.0  # root mean square of pixels (0 to 255): rounding moves a few edges; a line wider by a tenth is 7

# drawings
SIX_DIGITS = 2e-5  # of what a drawing means: its numbers have six digits, and terms may cancel a little

# sWeights
SWEIGHT = 1e-7  # absolute, of a weight: yields by another method, densities by scipy
SWEIGHT_SUM = 1e-12  # of the weights of an event, which add up to one
SWEIGHT_INTEGRAL = 1e-9  # relative, integrals of products of densities against scipy's
SWEIGHT_EFFECT = 1e-3  # of an error: the effect of an event by finite differences of three fits
# tests and limits
RATIO = 5e-4  # of twice the difference of two minima, each of which a fit may miss by its goal
LIMIT = 1e-4  # relative, of an upper limit, whose p-values are off by that of such ratios
LOST_IN_BINS = 2e-3  # relative, of errors from Asimov data in many bins
UNIFORM = 1e-4  # the probability with which p-values that are uniform are taken not to be
