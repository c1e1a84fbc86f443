-------------------------- MODULE ConstantOverrides --------------------------
EXTENDS Integers
CONSTANTS Limit, Start, Step(_, _), Values
VARIABLE n

ASSUME LimitIsNatural == Limit \in Nat /\ Limit > 0
ASSUME \A v \in Values : v \in Int /\ Step(v, 1) \in Int

Width == 100
SmallWidth == 5
AddModulo(a, b) == (a + b) % Limit
StartSet == {0, Limit - 1}
Init == n \in Start
Move == \E v \in Values : n' = Step(n, v)
Far == n < Width /\ n' = Width
Next == Move \/ Far
Bounded == n \in 0..Limit \cup {Width} /\ Width = 5
=============================================================================
