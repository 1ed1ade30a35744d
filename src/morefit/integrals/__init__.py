"""Numerical integrals at run time: boxes that follow the parameters, made anew where they no longer resolve the integrand."""
