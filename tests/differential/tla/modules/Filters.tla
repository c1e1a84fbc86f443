---- MODULE Filters ----
(***************************************************************************)
(* Filters of sets that are given by a rule (SUBSET, [S -> T], records):   *)
(* TLC asks of the one element whose membership is in question, and of all *)
(* only where all are needed.                                              *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANT N

VARIABLES perm, q

Perms == {f \in [1..N -> 1..N]: \A i, j \in 1..N: f[i] = f[j] => i = j}
Quorums == {Q \in SUBSET (1..3): 2 * Cardinality(Q) > 3}
Above(S, k) == {T \in SUBSET S: \A t \in T: t > k}

Init ==
    /\ perm = [i \in 1..N |-> i]
    /\ q \in Quorums

Swap(i, j) == perm' = [perm EXCEPT ![i] = perm[j], ![j] = perm[i]]

Next ==
    /\ \E i, j \in 1..4: i < j /\ Swap(i, j)
    /\ q' \in {Q \in SUBSET q: Q # {} \/ perm[1] = 1}

TypeOK ==
    /\ perm \in Perms
    /\ q \in {T \in SUBSET (1..30): 4 \notin T}
    /\ [of |-> q, size |-> Cardinality(q)] \in
           {r \in [of: SUBSET (1..25), size: 0..9]: r.size = Cardinality(r.of)}

(* The conditions have a value for the one that is asked of: not for s[2] = 3, nor for T = {}. *)
Lazy == <<1, 2>> \in {s \in [1..2 -> 1..3]: s[1] < 3 /\ 6 \div (3 - s[2]) > s[1]}
LazySubset == {1} \in {T \in SUBSET {1, 2, 3}: (CHOOSE t \in T: TRUE) = 1}

Meet == \A Q1, Q2 \in Quorums: Q1 \cap Q2 # {}
All ==
    /\ Cardinality(Quorums) = 4
    /\ UNION Quorums = 1..3
    /\ Quorums \subseteq SUBSET (1..3)
    /\ Quorums = {{1, 2}, {1, 3}, {2, 3}, {1, 2, 3}}
    /\ Quorums \ {{1, 2}} # Quorums
    /\ {} \notin Quorums
Nested ==
    \A k \in 0..3:
        /\ {k + 1} \in Above(1..30, k)
        /\ {k} \notin Above(1..30, k)
        /\ {Above(q, k), {{}}} = {Above(q, k)} \cup {Above({}, k)}
        /\ \A T \in Above(q, k): T \subseteq q
        /\ q \in {T \in {U \in SUBSET (1..25): 20 \notin U}: 21 \notin T}

Small == ~(Len(perm) = N /\ perm[1] = 4 /\ q = {2})
====
