-------------------------------- MODULE Json --------------------------------
(***************************************************************************)
(* The names of the community module of values as JSON. kconform computes  *)
(* these operators itself; TLC does with the community modules' own jar.   *)
(***************************************************************************)
LOCAL INSTANCE TLC
LOCAL INSTANCE Sequences

LOCAL Lacks(name) ==
  Assert(FALSE, name \o " is computed by kconform, and by TLC with the community modules' jar")

ToJson(v) == Lacks("ToJson")
ToJsonArray(v) == Lacks("ToJsonArray")
ToJsonObject(v) == Lacks("ToJsonObject")
JsonSerialize(file, v) == Lacks("JsonSerialize")
JsonDeserialize(file) == Lacks("JsonDeserialize")
ndJsonSerialize(file, v) == Lacks("ndJsonSerialize")
ndJsonDeserialize(file) == Lacks("ndJsonDeserialize")
=============================================================================
