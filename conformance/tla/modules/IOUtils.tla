------------------------------ MODULE IOUtils ------------------------------
(***************************************************************************)
(* The names of the community module of files, processes and the           *)
(* environment. kconform computes those that read, and none that starts a  *)
(* process; TLC does with the community modules' own jar.                  *)
(***************************************************************************)
LOCAL INSTANCE TLC
LOCAL INSTANCE Sequences

LOCAL Lacks(name) ==
  Assert(FALSE, name \o " is computed by TLC with the community modules' jar")

IOEnv == Lacks("IOEnv")
atoi(text) == Lacks("atoi")
zeroPadN(n, width) == Lacks("zeroPadN")
IOSerialize(v, file, compressed) == Lacks("IOSerialize")
IODeserialize(file, compressed) == Lacks("IODeserialize")
Serialize(v, file, options) == Lacks("Serialize")
Deserialize(file, options) == Lacks("Deserialize")
IOExec(command) == Lacks("IOExec")
IOEnvExec(env, command) == Lacks("IOEnvExec")
IOExecTemplate(command, parameters) == Lacks("IOExecTemplate")
IOEnvExecTemplate(env, command, parameters) == Lacks("IOEnvExecTemplate")
============================================================================
