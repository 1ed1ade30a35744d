"""Functions of parameters alone, such as integrals: hidden behind scalars, and differentiated apart from the loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from morefit.expr import ONE, Expr, Op, OwnSymbol, leaves, node_price, remake, scalar, toposort
from morefit.expr.walk import substitute_known
from morefit.rewrite.derive import derivatives
from morefit.rewrite.rules import Rewriter
from morefit.rewrite.share import share
from morefit.rewrite.simplify import NESTED_ALGEBRA

ALGEBRAIC = {Op.ADD, Op.MUL, Op.POW}  # operations that join others: what is made of them alone may cancel
CHEAP = 40  # price up to which algebra is not hidden
MIN_REGION = 4  # nodes that depend on one other alone, from which on they are a function of one variable


class Functions:
    """Scalars in the place of functions of parameters, and what they stand for.

    Derivatives of a hidden function are hidden functions again, of a few others: the loop, its derivatives and what is
    rewritten of both stay as short as if integrals were single numbers, and the chain rule is never multiplied out.
    """

    def __init__(self, parameters: Sequence[Expr]) -> None:
        self.parameters = tuple(parameters)
        self.bodies: dict[Expr, Expr] = {}  # of scalars, in terms of parameters and of earlier scalars
        self.variables: dict[Expr, Expr] = {}  # of scalars that depend on one other alone
        self.names: dict[Expr, Expr] = {}  # bodies to scalars
        self.outer: dict[Expr, Expr] = {}  # derivatives of those by their variables
        self.derived: dict[Expr, tuple[Expr, ...]] = {}
        self.integrals: set[Expr] = set()  # scalars of integrals by quadrature, of any size
        # sums stay inside sums, so that what several share stays one node
        self.new = Rewriter(NESTED_ALGEBRA)

    def definitions(self) -> dict[Expr, Expr]:
        """Return what the scalars stand for, in terms of parameters."""
        done: dict[Expr, Expr] = {}
        for name, body in zip(self.bodies, share(tuple(self.bodies.values())), strict=True):
            (done[name],) = substitute_known((body,), done)
        return {name: done[name] for name in self.bodies}

    def hide(self, roots: Sequence[Expr]) -> tuple[Expr, ...]:
        """Replace functions of parameters alone by scalars; algebra that costs little stays."""
        order = toposort(*roots, enter_integrals=False)
        varies: set[Expr] = set()
        for node in order:
            if node.op is Op.COLUMN or (node.op is not Op.INTEGRAL and not varies.isdisjoint(node.args)):
                varies.add(node)
        regions = find_regions([n for n in order if n not in varies])
        variables, last, exits = set(regions.values()), set(roots), set(roots)
        for user in order:
            if user in varies:
                last.update(user.args)
            elif user.op is not Op.INTEGRAL:
                exits.update(a for a in user.args if regions.get(a) is not regions.get(user))
        exits |= last
        done: dict[Expr, Expr] = {}
        price: dict[Expr, int] = {}  # of what is not hidden, more than CHEAP if it is no algebra
        for node in order:
            price[node] = 0
            if node in varies:
                done[node] = remake(node, tuple(done[a] for a in node.args))
            elif node.op is Op.INTEGRAL:
                done[node] = self.name(node)
            elif not node.args:
                done[node] = node
            else:
                body = done[node] = self.new(node.op, tuple(done[a] for a in node.args))
                own = node_price(node) if is_algebraic(node) else CHEAP + 1
                price[node] = own + sum(price[a] for a in node.args)
                dear = price[node] > CHEAP and (node not in regions or node in exits)
                if dear or node in variables or (node in last and self.uses_hidden(body)):
                    done[node] = self.name(body, done[regions[node]] if node in regions else None)
                    price[node] = 0
        return tuple(done[root] for root in roots)

    def uses_hidden(self, node: Expr) -> bool:
        return any(leaf in self.bodies for leaf in toposort(node))

    def name(self, body: Expr, variable: Expr | None = None) -> Expr:
        """Return the scalar of a function."""
        if not body.args:
            return body
        if body not in self.names:
            name = scalar(OwnSymbol(f"function {len(self.names)}"))
            self.names[body] = name
            self.bodies[name] = body
            chosen = body.args[1:] if body.op is Op.WHERE else ()
            if body.op is Op.INTEGRAL or not self.integrals.isdisjoint(chosen):
                self.integrals.add(name)
            # by an integral the derivative of its logarithm is one over it, and of that its square, which may overflow
            if variable is not None and variable.op is Op.SCALAR and variable not in self.integrals:
                self.variables[name] = variable
        return self.names[body]

    def slopes(self, name: Expr) -> tuple[Expr, ...] | None:
        """Return the derivatives of a scalar by each parameter, or None if it is no function's."""
        if name not in self.bodies:
            return None
        stack = [name]  # of functions of functions: no recursion
        while stack:
            top = stack[-1]
            inner = [leaf for leaf in leaves(Op.SCALAR, self.bodies[top]) if leaf in self.bodies]
            missing = [leaf for leaf in inner if leaf not in self.derived]
            stack += missing
            if not missing:
                stack.pop()
                if top not in self.derived:
                    self.derived[top] = self.derive(top)
        return self.derived[name]

    def derive(self, name: Expr) -> tuple[Expr, ...]:
        """Differentiate a function of parameters and of functions that have been differentiated."""
        body, variable = self.bodies[name], self.variables.get(name)
        slope = None if variable is None else self.derive_along(body, variable)
        if variable is None or slope is None:
            return self.hide(derivatives(body, self.parameters, self.new, self.derived.get, self.integrals))
        outer = self.outer[name] = self.name(slope, variable)
        inner = self.derived.get(variable) or derivatives(variable, self.parameters, self.new)
        return self.hide([self.new(Op.MUL, (outer, i)) for i in inner])

    def derive_along(self, body: Expr, variable: Expr) -> Expr | None:
        """Differentiate by the one variable that a function depends on; None if it depends on more."""
        within: dict[Expr, list[Expr]] = {}
        for leaf in leaves(Op.SCALAR, body):
            slope = self.along(leaf, variable)
            if slope is None:
                return None
            within[leaf] = [slope]
        return derivatives(body, [variable], self.new, within.get, self.integrals)[0]

    def along(self, name: Expr, variable: Expr) -> Expr | None:
        """Differentiate a scalar by the variable that it depends on, through others; None if that is not known."""
        slope = ONE
        while name is not variable:
            if name not in self.outer:
                return None
            slope = self.new(Op.MUL, (slope, self.outer[name]))
            name = self.variables[name]
        return slope


def find_regions(nodes: Sequence[Expr]) -> dict[Expr, Expr]:
    """Return the variable of each node that depends on one other alone, where several depend on the same.

    That is a node's dominator: all ways from the leaves to it lead through its variable.
    """
    depth: dict[Expr, int] = {}
    above: dict[Expr, Expr | None] = {}  # the next dominator; None if a node depends on two things

    def meet(a: Expr | None, b: Expr | None) -> Expr | None:
        while a is not b:
            if a is None or b is None:
                return None
            if depth[a] < depth[b]:
                a, b = b, a
            a = above[a]
        return a

    constant: set[Expr] = set()
    for node in nodes:
        moving = [] if node.op is Op.INTEGRAL else [a for a in node.args if a not in constant]
        if node.op is Op.CONST or (node.args and not moving and node.op is not Op.INTEGRAL):
            constant.add(node)
            continue
        common: Expr | None = moving[0] if moving else None
        for arg in moving[1:]:
            common = meet(common, arg)
        above[node] = common
        depth[node] = 0 if common is None else depth[common] + 1
    sizes = Counter(variable for variable in above.values() if variable is not None)
    regions: dict[Expr, Expr] = {}
    for node, variable in above.items():
        if variable is not None and sizes[variable] >= MIN_REGION:
            regions[node] = variable
        elif variable in regions:  # too small a region is part of the one around it
            regions[node] = regions[variable]
    return regions


def is_algebraic(node: Expr) -> bool:
    """Return whether a node joins others by sums, products and constant powers."""
    return node.op in ALGEBRAIC and (node.op is not Op.POW or node.args[1].op is Op.CONST)
