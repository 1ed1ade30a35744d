"""Densities made of densities, one file per composition."""

from morefit.model.compose.choice import Choice
from morefit.model.compose.product import Product
from morefit.model.compose.restricted import Restricted
from morefit.model.compose.sum import Sum

__all__ = ["Choice", "Product", "Restricted", "Sum"]
