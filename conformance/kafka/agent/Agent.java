package kconform.agent;

import static net.bytebuddy.matcher.ElementMatchers.isMethod;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.nameMatches;
import static net.bytebuddy.matcher.ElementMatchers.none;

import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.dynamic.scaffold.TypeValidation;

/**
 * Puts a section's advice on the methods of a hook table. Arguments: table=FILE,output=FILE,node=N.
 * A line of the table: the kind of what is observed, the class, and a pattern for the methods' names.
 */
public final class Agent {
    private Agent() {}

    public static void premain(String arguments, Instrumentation instrumentation) throws Exception {
        String table = "";
        for (String pair : arguments.split(",")) {
            String[] parts = pair.split("=", 2);
            if (parts[0].equals("table")) {
                table = parts[1];
            } else {
                Recorder.configure(parts[0], parts[1]);
            }
        }
        // Nothing is ignored: by default the bodies of Scala's lambdas, being synthetic, would be.
        AgentBuilder builder = new AgentBuilder.Default(new ByteBuddy().with(TypeValidation.DISABLED).ignore(none()))
            .disableClassFormatChanges()
            .ignore(none())
            .with(new Complaints());
        for (String line : Files.readAllLines(Path.of(table))) {
            String[] words = line.strip().split("\\s+");
            if (words.length != 3 || line.startsWith("#")) {
                continue;
            }
            Recorder.observe(words[1], words[2], words[0]);
            builder = builder.type(named(words[1])).transform((type, description, loader, module, domain) ->
                type.visit(Advice.to(Section.class).on(isMethod().and(nameMatches(words[2])))));
        }
        builder.installOn(instrumentation);
    }

    /** What is put around a method's body. */
    public static final class Section {
        private Section() {}

        @Advice.OnMethodEnter
        public static Object enter(
            @Advice.Origin("#t") String type,
            @Advice.Origin("#m") String method,
            @Advice.This(optional = true) Object self,
            @Advice.AllArguments Object[] arguments) {
            return Recorder.enter(type, method, self, arguments);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(@Advice.Enter Object token, @Advice.Thrown Throwable thrown) {
            Recorder.exit(token, thrown);
        }
    }

    /** A class that cannot be hooked is told in the events: the recording would miss its steps. */
    private static final class Complaints extends AgentBuilder.Listener.Adapter {
        @Override
        public void onError(String type, ClassLoader loader, net.bytebuddy.utility.JavaModule module,
                            boolean loaded, Throwable problem) {
            Recorder.problem("hooking " + type, problem);
        }
    }
}
