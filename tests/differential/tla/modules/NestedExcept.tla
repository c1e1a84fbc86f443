---------------------------- MODULE NestedExcept ----------------------------
EXTENDS Naturals, Sequences
VARIABLES nodes, grid

Ids == {"a", "b"}
Init == /\ nodes = [i \in Ids |-> [log |-> <<0, 0>>, meta |-> [epoch |-> 0, voted |-> {}]]]
        /\ grid = [x \in 0..1, y \in 0..1 |-> 0]

Write(i) == /\ nodes[i].log[1] < 2
            /\ nodes' = [nodes EXCEPT ![i].log[1] = @ + 1, ![i].log[2] = @ + nodes[i].log[1]]
            /\ UNCHANGED grid
Vote(i, j) == /\ j \notin nodes[i].meta.voted
              /\ nodes' = [nodes EXCEPT ![i].meta.voted = @ \cup {j}, ![i].meta.epoch = @ + 1]
              /\ grid' = [grid EXCEPT ![0, 1] = 1 - @, ![<<1, 1>>] = @]
Swap == /\ nodes' = [nodes EXCEPT !["a"] = nodes["b"], !["b"] = nodes["a"]]
        /\ grid' = [grid EXCEPT ![1, 0] = IF @ = 0 THEN 1 ELSE 0]
Same == /\ nodes' = [nodes EXCEPT !["a"] = [@ EXCEPT !.meta = [@ EXCEPT !.epoch = @]]]
        /\ grid' = [grid EXCEPT ![1, 0] = 0]
Next == Swap \/ Same \/ (\E i \in Ids : Write(i)) \/ (\E i, j \in Ids : Vote(i, j))

EpochCounts == \A i \in Ids : nodes[i].meta.epoch <= 2
Outside == [nodes EXCEPT !["nobody"] = 1] = nodes
=============================================================================
