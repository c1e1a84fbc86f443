-------------------------- MODULE UndirectedGraphs --------------------------
(* Graphs [node |-> N, edge |-> E] whose edges are sets {a, b} of nodes; a   *)
(* loop is the set {a}.                                                      *)
LOCAL INSTANCE Naturals
LOCAL INSTANCE Sequences
LOCAL INSTANCE FiniteSets

IsUndirectedGraph(G) ==
  /\ G = [node |-> G.node, edge |-> G.edge]
  /\ \A e \in G.edge : \E a, b \in G.node : e = {a, b}

IsLoopFreeUndirectedGraph(G) ==
  IsUndirectedGraph(G) /\ \A e \in G.edge : Cardinality(e) = 2

UndirectedSubgraph(G) ==
  {H \in [node : SUBSET G.node, edge : SUBSET G.edge] : IsUndirectedGraph(H)}

(* The graphs, also those with loops, whose nodes are S. *)
UndirectedGraphs(S) == [node : {S}, edge : SUBSET {{a, b} : a, b \in S}]

(* The paths, of which there are infinitely many; those in which no node comes twice.                                   *)
SimplePath(G) ==
  UNION {{p \in [1 .. n -> G.node] :
            /\ \A i, j \in 1 .. n : p[i] = p[j] => i = j
            /\ \A i \in 1 .. (n - 1) : {p[i], p[i + 1]} \in G.edge} :
          n \in 1 .. Cardinality(G.node)}

Path(G) ==
  {p \in Seq(G.node) : p # <<>> /\ \A i \in 1 .. (Len(p) - 1) : {p[i], p[i + 1]} \in G.edge}

(* The nodes to which paths lead from `reached`, which `steps` more extend.  *)
LOCAL Reach(G, from) ==
  LET grow[n \in 0 .. Cardinality(G.node)] ==
        IF n = 0 THEN {from}
        ELSE grow[n - 1] \cup {b \in G.node : \E a \in grow[n - 1] : {a, b} \in G.edge}
  IN  grow[Cardinality(G.node)]

ConnectedComponents(G) == {Reach(G, a) : a \in G.node}

AreConnectedIn(m, n, G) == n \in Reach(G, m)

IsStronglyConnected(G) == ConnectedComponents(G) = {G.node}
=============================================================================
