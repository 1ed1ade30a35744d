"""The angular density of the decay B0 -> K*0 mu+ mu-, and of B0 -> K+ pi- mu+ mu- with a scalar contribution below the K*0."""

from __future__ import annotations

import math

from morefit.dataclass import dataclass
from morefit.expr import ONE, Expr, Op, add_all, to_expr
from morefit.model.arguments import Number, Share
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class _KstarAngles(Pdf):
    """A density of the three angles of a decay to a K*0 and two muons, with the observables of the P-wave."""

    ctl: Observable
    ctk: Observable
    phi: Observable
    FL: Share
    S3: Number
    S4: Number
    S5: Number
    AFB: Number
    S7: Number
    S8: Number
    S9: Number

    def p_wave(self) -> Expr:
        """Return the density of the K*0 alone."""
        ctl, ctk, phi = self.ctl.expr, self.ctk.expr, self.phi.expr
        sin2_k, sin2_l = 1 - ctk**2, 1 - ctl**2
        sin_2k = 2 * ctk * Op.SQRT(sin2_k)
        sin_l = Op.SQRT(sin2_l)
        sin_2l, cos_2l = 2 * ctl * sin_l, 2 * ctl**2 - 1
        cos, sin = Op.COS(phi), Op.SIN(phi)
        cos_2, sin_2 = Op.COS(2 * phi), Op.SIN(2 * phi)
        return 9 / (32 * math.pi) * add_all(
            (1 - self.FL) * (0.75 * sin2_k),
            self.FL * ctk**2,
            (1 - self.FL) * (0.25 * sin2_k * cos_2l),
            -self.FL * (ctk**2 * cos_2l),
            self.S3 * (sin2_k * sin2_l * cos_2),
            self.S4 * (sin_2k * sin_2l * cos),
            self.S5 * (sin_2k * sin_l * cos),
            self.AFB * (4 / 3 * sin2_k * ctl),
            self.S7 * (sin_2k * sin_l * sin),
            self.S8 * (sin_2k * sin_2l * sin),
            self.S9 * (sin2_k * sin2_l * sin_2),
        )  # fmt: skip

    def integral(self) -> Expr:
        turn = math.isclose(self.phi.high - self.phi.low, 2 * math.pi, rel_tol=1e-15)
        everywhere = turn and all((x.low, x.high) == (-1.0, 1.0) for x in (self.ctl, self.ctk))
        return ONE if everywhere else super().integral()


@dataclass(frozen=True, eq=False)
class KstarMuMu(_KstarAngles):
    r"""$\frac{9}{32\pi}\sum_i S_i f_i(\cos\theta_l,\cos\theta_K,\phi)$ (Altmannshofer et al., arXiv:0811.1214).

    ``FL`` is the longitudinal fraction, so that $S_1^s=\frac34(1-F_L)$ and $S_1^c=F_L$, ``AFB`` the forward-backward
    asymmetry $\frac34 S_6^s$, and the other $S_i$ are those of the functions $f_i$. Outside of a region in these
    eight the density is negative for some angles. ``KstarMuMuSWave`` has the S-wave below the K*0 as well.

    Example: ``KstarMuMu(ctl, ctk, phi, FL=0.6, S3=0, S4=0.1, S5=-0.2, AFB=0.1, S7=0, S8=0, S9=0)``
    """

    def density(self) -> Expr:
        return self.p_wave()


@dataclass(frozen=True, eq=False)
class KstarMuMuSWave(_KstarAngles):
    r"""$(1-F_S)\,P+\frac{3}{16\pi}[F_S s_l^2+A_Ss_l^2c_K+A_{S4}s_{2l}s_Kc_\phi+A_{S5}s_ls_Kc_\phi+A_{S7}s_ls_Ks_\phi+A_{S8}s_{2l}s_Ks_\phi]$.

    $P$ is the density ``KstarMuMu`` of the same angles, $F_S$ the fraction of the S-wave, and the $A$ are its
    interference with the P-wave; $s_l=\sin\theta_l$, $s_{2l}=\sin2\theta_l$, $c_K=\cos\theta_K$ and so on.
    (LHCb, arXiv:1304.6325; T. Blake, U. Egede and A. Shires, arXiv:1210.5279)

    Example: ``KstarMuMuSWave(ctl, ctk, phi, 0.6, 0, 0.1, -0.2, 0.1, 0, 0, 0, FS=0.05, AS=0.02, AS4=0, AS5=0, AS7=0, AS8=0)``
    """

    FS: Share
    AS: Number
    AS4: Number
    AS5: Number
    AS7: Number
    AS8: Number

    def density(self) -> Expr:
        ctl, ctk, phi = self.ctl.expr, self.ctk.expr, self.phi.expr
        sin2_l = 1 - ctl**2
        sin_l, sin_k = Op.SQRT(sin2_l), Op.SQRT(1 - ctk**2)
        sin_2l, cos, sin = 2 * ctl * sin_l, Op.COS(phi), Op.SIN(phi)
        scalar = add_all(
            to_expr(self.FS) * sin2_l,
            self.AS * (sin2_l * ctk),
            self.AS4 * (sin_2l * sin_k * cos),
            self.AS5 * (sin_l * sin_k * cos),
            self.AS7 * (sin_l * sin_k * sin),
            self.AS8 * (sin_2l * sin_k * sin),
        )
        return (1 - to_expr(self.FS)) * self.p_wave() + 3 / (16 * math.pi) * scalar
