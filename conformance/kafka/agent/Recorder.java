package kconform.agent;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.regex.Pattern;

/** Observes objects at the end of their critical sections and writes each change as one line. */
public final class Recorder {
    private static final Map<String, List<Hook>> HOOKS = new ConcurrentHashMap<>();
    private static final Map<String, Object> PARTITIONS = new ConcurrentHashMap<>();
    private static final Map<String, String> LAST = new ConcurrentHashMap<>();
    private static final ThreadLocal<Map<Object, int[]>> DEPTH = ThreadLocal.withInitial(IdentityHashMap::new);
    private static final ThreadLocal<Deque<String>> OPERATIONS = ThreadLocal.withInitial(ArrayDeque::new);
    private static Pattern topics = Pattern.compile("(?!__).*");
    private static String node = "";
    private static Path output;
    private static Writer writer;
    private static long sequence;

    private Recorder() {}

    private record Hook(Pattern method, String kind) {}

    private record Token(String kind, String method, Object subject, ReentrantLock lock, long entered) {}

    static void configure(String key, String value) {
        switch (key) {
            case "node" -> node = value;
            case "output" -> output = Path.of(value);
            case "topics" -> topics = Pattern.compile(value);
            default -> throw new IllegalArgumentException("The agent has no option " + key);
        }
    }

    static void observe(String type, String methods, String kind) {
        HOOKS.computeIfAbsent(type, key -> new ArrayList<>()).add(new Hook(Pattern.compile(methods), kind));
    }

    /** A section is entered; never throws, the broker must not notice. */
    public static Object enter(String type, String method, Object self, Object[] arguments) {
        try {
            for (Hook hook : HOOKS.getOrDefault(type, List.of())) {
                if (hook.method.matcher(method).matches()) {
                    return entered(hook.kind, type, method, self, arguments);
                }
            }
        } catch (Throwable problem) {
            problem("entering " + type + "." + method, problem);
        }
        return null;
    }

    private static Object entered(String kind, String type, String method, Object self, Object[] arguments)
        throws ReflectiveOperationException {
        long now = System.nanoTime();
        if (kind.equals("operation")) {
            OPERATIONS.get().push(method + " " + Json.of(Snapshots.described(arguments)));
            return new Token(kind, method, null, null, now);
        }
        Object subject = subject(kind, type, self, arguments);
        if (subject == null) {
            return null;
        }
        ReentrantLock lock = null;
        if (kind.equals("group")) {
            // Held until the observation at the section's exit: nobody comes in between.
            lock = (ReentrantLock) Snapshots.read(subject, "lock");
            lock.lock();
        }
        if (kind.equals("groups")) {
            OPERATIONS.get().push(method + " " + Json.of(Snapshots.described(arguments)));
        }
        DEPTH.get().computeIfAbsent(subject, key -> new int[1])[0]++;
        return new Token(kind, method, subject, lock, now);
    }

    /** The partition, group or manager that a section is about; null if it is about none. */
    private static Object subject(String kind, String type, Object self, Object[] arguments)
        throws ReflectiveOperationException {
        if (!kind.equals("partition") && !kind.equals("fetcher")) {
            return self;
        }
        if (self != null && kind.equals("partition") && self.getClass().getName().equals(type)) {
            return known(self);
        }
        for (Object argument : arguments) {
            if (argument == null) {
                continue;
            }
            if (argument.getClass().getName().equals(type)) {
                return known(argument);
            }
            if (kind.equals("fetcher") && argument.getClass().getSimpleName().equals("TopicPartition")) {
                return PARTITIONS.get(argument.toString());
            }
        }
        return null;
    }

    private static Object known(Object partition) throws ReflectiveOperationException {
        Object name = Snapshots.read(partition, "topicPartition");
        if (!topics.matcher(Snapshots.call(name, "topic").toString()).matches()) {
            return null;
        }
        PARTITIONS.put(name.toString(), partition);
        return partition;
    }

    /** A section ends: its object's state is written if this is the outermost one and it changed. */
    public static void exit(Object given) {
        if (!(given instanceof Token token)) {
            return;
        }
        try {
            if (token.kind.equals("operation")) {
                OPERATIONS.get().pop();
                return;
            }
            int[] depth = DEPTH.get().get(token.subject);
            if (--depth[0] == 0) {
                DEPTH.get().remove(token.subject);
                observed(token);
            }
            if (token.kind.equals("groups")) {
                OPERATIONS.get().pop();
            }
        } catch (Throwable problem) {
            problem("observing after " + token.method, problem);
        } finally {
            if (token.lock != null) {
                token.lock.unlock();
            }
        }
    }

    private static void observed(Token token) throws ReflectiveOperationException {
        Map<String, Map<String, Object>> states = switch (token.kind) {
            case "group" -> Snapshots.group(token.subject);
            case "groups" -> Snapshots.groups(token.subject);
            default -> Snapshots.partition(token.subject);
        };
        for (Map.Entry<String, Map<String, Object>> entry : states.entrySet()) {
            changed(token, entry.getKey(), Json.of(entry.getValue()));
        }
        if (token.kind.equals("groups")) {
            for (String name : LAST.keySet()) {
                if (name.startsWith("group ") && !states.containsKey(name)) {
                    changed(token, name, "null"); // deleted, or handed over to another coordinator
                    LAST.remove(name);
                }
            }
        }
    }

    private static synchronized void changed(Token token, String name, String state) {
        if (state.equals(LAST.put(name, state))) {
            return;
        }
        String operation = OPERATIONS.get().peek();
        int space = name.indexOf(' ');
        write("{\"node\":" + Json.of(node) + ",\"sequence\":" + sequence++
            + ",\"entered\":" + token.entered + ",\"time\":" + System.nanoTime()
            + ",\"thread\":" + Json.of(Thread.currentThread().getName())
            + ",\"section\":" + Json.of(token.method)
            + ",\"operation\":" + Json.of(operation == null ? "" : operation)
            + ",\"" + name.substring(0, space) + "\":" + Json.of(name.substring(space + 1))
            + ",\"state\":" + state + "}");
    }

    static synchronized void problem(String where, Throwable problem) {
        write("{\"node\":" + Json.of(node) + ",\"sequence\":" + sequence++ + ",\"time\":" + System.nanoTime()
            + ",\"problem\":" + Json.of(where + ": " + problem) + "}");
    }

    private static void write(String line) {
        try {
            if (writer == null) {
                writer = Files.newBufferedWriter(output, StandardCharsets.UTF_8,
                    StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            }
            writer.write(line + "\n");
            writer.flush(); // what was written survives the process
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
