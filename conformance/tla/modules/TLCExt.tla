------------------------------- MODULE TLCExt -------------------------------
(***************************************************************************)
(* The operators of TLC's own extension module, for TLC 2.15, which lacks  *)
(* it, and for kconform. What TLA+ cannot say (registers, model values     *)
(* made from strings) kconform computes itself; here it only has a name.   *)
(***************************************************************************)
LOCAL INSTANCE TLC
LOCAL INSTANCE Sequences
LOCAL INSTANCE Integers

LOCAL Lacks(name) == Assert(FALSE, "TLC 2.15 has no " \o name \o ": use a later TLC")

(* a = b; the two values are printed if they differ. *)
AssertEq(a, b) ==
  a = b \/ (PrintT("Assertion failed") /\ PrintT(a) /\ PrintT(b) /\ FALSE)

(* Whether the evaluation of e ends with that error of TLC's. *)
AssertError(error, e) == Lacks("AssertError")

TLCGetOrDefault(key, default) == Lacks("TLCGetOrDefault")
TLCGetAndSet(key, Op(_, _), v, default) ==
  LET old == TLCGetOrDefault(key, default) IN CHOOSE x \in {old} : TLCSet(key, Op(old, v))

(* The behaviour so far, and what a postcondition learns of a counterexample. *)
Trace == Lacks("Trace")
CounterExample == Lacks("CounterExample")
ToTrace(c) == Lacks("ToTrace")

TLCModelValue(name) == Lacks("TLCModelValue")

(* For the simulator alone: a search does nothing later. *)
TLCDefer(e) == TRUE

TLCNoOp(v) == v
TLCCache(e, closure) == e
TLCFP(v) == Lacks("TLCFP")
TLCEvalDefinition(name) == Lacks("TLCEvalDefinition")

(* Asks the user which successor to take; without a user, all that e allows. *)
PickSuccessor(e) == e \/ Lacks("PickSuccessor")
=============================================================================
