-------------------------------- MODULE Store --------------------------------
(***************************************************************************)
(* A key-value store with versions: every write, a removal too, gives the  *)
(* key a new version, and CompareAndSet writes only if the caller knows    *)
(* the present one. That is what makes optimistic locking safe.            *)
(***************************************************************************)
EXTENDS Naturals

CONSTANTS Keys, Values, Versions

VARIABLES
  value,    \* Store.get(key), "absent" if there is none
  version,  \* Store.version(key)
  answer,   \* what the last CompareAndSet said
  writes    \* ghost: how often each key was written

vars == <<value, version, answer, writes>>

Init ==
  /\ value   = [k \in Keys |-> "absent"]
  /\ version = [k \in Keys |-> 0]
  /\ answer  = "none"
  /\ writes  = [k \in Keys |-> 0]

Write(k, v) ==
  /\ version[k] + 1 \in Versions
  /\ value'   = [value EXCEPT ![k] = v]
  /\ version' = [version EXCEPT ![k] = @ + 1]
  /\ writes'  = [writes EXCEPT ![k] = @ + 1]

Put(k, v) == Write(k, v) /\ answer' = "none"

Remove(k) == value[k] # "absent" /\ Write(k, "absent") /\ answer' = "none"

CompareAndSet(k, expected, v) ==
  IF version[k] = expected
  THEN Write(k, v) /\ answer' = "written"
  ELSE answer' = "conflict" /\ UNCHANGED <<value, version, writes>>

Next ==
  \E k \in Keys :
    \/ \E v \in Values : Put(k, v) \/ \E e \in Versions : CompareAndSet(k, e, v)
    \/ Remove(k)

TypeOK ==
  /\ value   \in [Keys -> Values \union {"absent"}]
  /\ version \in [Keys -> Versions]
  /\ answer  \in {"none", "written", "conflict"}
  /\ writes  \in [Keys -> Versions]

\* No version comes twice: who holds an old one can never overwrite a newer value.
EveryWriteHasItsVersion == version = writes

\* Versions never fall.
VersionsGrow == [][\A k \in Keys : version'[k] >= version[k]]_vars
=============================================================================
