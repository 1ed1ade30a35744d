"""What an acceptance leaves of the events of a model, and how many they are."""

from __future__ import annotations

from morefit.expr import Expr, Op, symbols
from morefit.model.compose.efficiency import Efficiency
from morefit.model.compose.restricted import Restricted, restricted
from morefit.model.compose.sum import Sum
from morefit.model.pdf import Pdf


def accepted_part(model: Pdf, acceptance: Expr) -> Pdf:
    """Return the density of accepted events; yields, which are of all events, become numbers of those."""
    given = {o.name for o in model.given}
    if all(column.name in given for column in symbols(Op.COLUMN, acceptance)):
        return model  # for each row of what is given, all events are accepted alike
    if isinstance(model, Restricted):
        # the whole model has the yields of full ranges
        return restricted(accepted_part(model.whole, acceptance), model.ranges)
    expected = model.expected_events()
    if expected is None:
        return Efficiency(model, acceptance)
    seen = [(share, pdf, Efficiency(pdf, acceptance)) for share, pdf in model.shares()]
    yields = [expected * share * one.integral() / pdf.integral() for share, pdf, one in seen]
    return Sum([one for _, _, one in seen], yields=yields)
