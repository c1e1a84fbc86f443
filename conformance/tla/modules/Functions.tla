------------------------------ MODULE Functions ------------------------------
(***************************************************************************)
(* Operators on functions under the names of the TLA+ community modules,   *)
(* in definitions of our own that TLC and kconform evaluate alike.         *)
(***************************************************************************)
LOCAL INSTANCE FiniteSets
LOCAL INSTANCE Naturals
LOCAL INSTANCE TLC

(* The values that f takes. *)
Range(f) == {f[x] : x \in DOMAIN f}

(* f on the arguments in S only; S must be a subset of its domain. *)
Restrict(f, S) == [x \in S |-> f[x]]

(* f on the arguments whose value is in S only. *)
RestrictDomain(f, Test(_)) == [x \in {y \in DOMAIN f : Test(y)} |-> f[x]]
RestrictValues(f, Test(_)) == [x \in {y \in DOMAIN f : Test(f[y])} |-> f[x]]

(* g agrees with f wherever g is defined. *)
IsRestriction(g, f) == DOMAIN g \subseteq DOMAIN f /\ \A x \in DOMAIN g : g[x] = f[x]

IsInjective(f) == \A x, y \in DOMAIN f : f[x] = f[y] => x = y
IsSurjective(f, T) == T \subseteq Range(f)

(* A function from T to S that takes a value of f back to an argument that f maps to it. *)
Inverse(f, S, T) == [t \in T |-> CHOOSE s \in S : t \in Range(f) => f[s] = t]

(* The inverse of an injective function, on the values that it takes. Of others TLC has none. *)
AntiFunction(f) ==
  IF Assert(IsInjective(f), "AntiFunction of a function that is not injective")
  THEN [y \in Range(f) |-> CHOOSE x \in DOMAIN f : f[x] = y]
  ELSE f

Injection(S, T) == {f \in [S -> T] : IsInjective(f)}
Surjection(S, T) == {f \in [S -> T] : IsSurjective(f, T)}
Bijection(S, T) == Injection(S, T) \cap Surjection(S, T)

ExistsInjection(S, T) == Cardinality(S) <= Cardinality(T)
ExistsSurjection(S, T) == IF T = {} THEN S = {} ELSE Cardinality(S) >= Cardinality(T)
ExistsBijection(S, T) == Cardinality(S) = Cardinality(T)

(* Op over the values of f on S, op(value, rest), from base on. No order is promised; TLC's    *)
(* own code begins with the argument that CHOOSE takes.                                        *)
RECURSIVE FoldFunctionOnSet(_, _, _, _)
FoldFunctionOnSet(op(_, _), base, f, S) ==
  IF S = {} THEN base
  ELSE LET x == CHOOSE y \in S : TRUE
       IN FoldFunctionOnSet(op, op(f[x], base), f, S \ {x})

FoldFunction(op(_, _), base, f) == FoldFunctionOnSet(op, base, f, DOMAIN f)

SumFunctionOnSet(f, S) == FoldFunctionOnSet(LAMBDA a, b : a + b, 0, f, S)
SumFunction(f) == SumFunctionOnSet(f, DOMAIN f)

(* T on the values of f and g, argument by argument. *)
Pointwise(f, g, T(_, _)) == [x \in DOMAIN f |-> T(f[x], g[x])]
==============================================================================
