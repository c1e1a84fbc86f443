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
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.regex.Pattern;

/** Observes objects at the end of their critical sections and writes each change as one line. */
public final class Recorder {
    private static final Map<String, List<Hook>> HOOKS = new ConcurrentHashMap<>();
    private static final Map<String, Object> PARTITIONS = new ConcurrentHashMap<>();
    private static final Map<String, String> LAST = new ConcurrentHashMap<>();
    private static final ThreadLocal<Map<Object, int[]>> DEPTH = ThreadLocal.withInitial(IdentityHashMap::new);
    private static final ThreadLocal<Deque<String>> OPERATIONS = ThreadLocal.withInitial(ArrayDeque::new);
    /** What followers ask for in the fetches that a thread is in. */
    private static final ThreadLocal<Deque<Map<String, Object>>> FETCHES = ThreadLocal.withInitial(ArrayDeque::new);
    /** The sections that are open on each partition, by their threads. */
    private static final Map<Object, Map<Thread, String>> OPEN = new ConcurrentHashMap<>();
    /** Held while a partition is read and written down. */
    private static final Object READING = new Object();
    private static Pattern topics = Pattern.compile("(?!__).*");
    private static String node = "";
    private static Path output;
    private static Writer writer;
    private static long sequence;

    private Recorder() {}

    private record Hook(Pattern method, String kind) {}

    /** What a section's exit needs of its entry; `fetch` is what a follower asked for, or null. */
    private record Token(String kind, String method, Object subject, Lock lock, Map<String, Object> fetch, long entered) {}

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
            return new Token(kind, method, null, null, null, now);
        }
        if (kind.equals("requests")) {
            requests(arguments[0]);
            return null;
        }
        if (kind.equals("controller")) {
            return new Token(kind, method, self, null, Snapshots.identified(arguments[0]), now);
        }
        Object subject = subject(kind, type, self, arguments);
        if (subject == null) {
            return null;
        }
        Lock lock = null;
        if (kind.equals("group")) {
            // Held until the observation at the section's exit: nobody comes in between.
            lock = (ReentrantLock) Snapshots.read(subject, "lock");
            lock.lock();
        }
        if (kind.equals("groups")) {
            OPERATIONS.get().push(method + " " + Json.of(Snapshots.described(arguments)));
        }
        if (DEPTH.get().computeIfAbsent(subject, key -> new int[1])[0]++ == 0) {
            OPEN.computeIfAbsent(subject, key -> new ConcurrentHashMap<>()).put(Thread.currentThread(), method);
        }
        Map<String, Object> fetch = null;
        if (method.equals(FETCH)) {
            fetch = Snapshots.fetch(arguments);
            FETCHES.get().push(fetch);
        }
        return new Token(kind, method, subject, lock, fetch, now);
    }

    private static final String FETCH = "fetchRecords";

    /** A fetcher thread builds its next request: what it asks for of each partition. */
    private static synchronized void requests(Object states) throws ReflectiveOperationException {
        for (Map.Entry<String, Object> entry : Snapshots.mapped(states).entrySet()) {
            String topic = entry.getKey().substring(0, entry.getKey().lastIndexOf('-'));
            if (topics.matcher(topic).matches() && (Boolean) Snapshots.call(entry.getValue(), "isReadyForFetch")) {
                write(head(System.nanoTime()) + ",\"partition\":" + Json.of(entry.getKey())
                    + ",\"request\":" + Json.of(Snapshots.request(entry.getValue())) + "}");
            }
        }
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
    public static void exit(Object given, Throwable thrown) {
        if (!(given instanceof Token token)) {
            return;
        }
        try {
            if (token.kind.equals("operation")) {
                OPERATIONS.get().pop();
                return;
            }
            if (token.kind.equals("controller")) {
                registered(token);
                return;
            }
            int[] depth = DEPTH.get().get(token.subject);
            if (--depth[0] == 0) {
                DEPTH.get().remove(token.subject);
            }
            if (token.method.equals(FETCH)) {
                FETCHES.get().pop();
            }
            if (depth[0] == 0 || token.method.equals(FETCH) || token.method.contains("ExpandIsr")) {
                // Also a fetch that completes within another's, and the ISR change that a fetch sets off.
                observed(token, thrown);
            }
            if (depth[0] == 0) {
                OPEN.get(token.subject).remove(Thread.currentThread());
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

    private static void observed(Token token, Throwable thrown) throws ReflectiveOperationException {
        if (token.kind.equals("partition") || token.kind.equals("fetcher")) {
            partition(token, thrown);
            return;
        }
        Map<String, Map<String, Object>> states =
            token.kind.equals("group") ? Snapshots.group(token.subject) : Snapshots.groups(token.subject);
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

    /**
     * A partition is read under the lock that its sections take, and written down before another thread reads
     * one: several may hold that lock for reading. So lines come in the order of the states. A follower's fetch
     * is written even where it changed nothing.
     */
    private static void partition(Token token, Throwable thrown) throws ReflectiveOperationException {
        Lock lock = ((ReentrantReadWriteLock) Snapshots.read(token.subject, "leaderIsrUpdateLock")).readLock();
        lock.lock();
        try {
            String further = "";
            Map<String, Object> fetch = token.fetch == null ? FETCHES.get().peek() : token.fetch;
            if (fetch != null && fetch.containsKey("replica")) {
                fetch.put("error", thrown == null ? null : thrown.getClass().getSimpleName());
                further = ",\"fetch\":" + Json.of(fetch);
            }
            Set<String> others = new TreeSet<>();
            OPEN.getOrDefault(token.subject, Map.of()).forEach((thread, method) -> {
                if (thread != Thread.currentThread()) {
                    others.add(method);
                }
            });
            if (!others.isEmpty()) {
                further += ",\"overlaps\":" + Json.of(others);
            }
            synchronized (READING) {
                for (Map.Entry<String, Map<String, Object>> entry : Snapshots.partition(token.subject).entrySet()) {
                    changed(token, entry.getKey(), Json.of(entry.getValue()), further);
                }
            }
        } finally {
            lock.unlock();
        }
    }

    /** The controller has replayed a record of a partition: what is registered of it now. */
    private static void registered(Token token) throws ReflectiveOperationException {
        Map<String, Object> state = Snapshots.registration(token.subject, token.fetch);
        if (state != null && topics.matcher(state.remove("topic").toString()).matches()) {
            String name = "registration " + state.remove("name");
            changed(token, name, Json.of(state), "");
        }
    }

    private static void changed(Token token, String name, String state) {
        changed(token, name, state, "");
    }

    private static synchronized void changed(Token token, String name, String state, String further) {
        if (state.equals(LAST.put(name, state)) && further.isEmpty()) {
            return;
        }
        String operation = OPERATIONS.get().peek();
        int space = name.indexOf(' ');
        write(head(token.entered) + ",\"section\":" + Json.of(token.method)
            + ",\"operation\":" + Json.of(operation == null ? "" : operation)
            + ",\"" + name.substring(0, space) + "\":" + Json.of(name.substring(space + 1))
            + further + ",\"state\":" + state + "}");
    }

    /** What every line begins with; only under this class's lock, which numbers the lines. */
    private static String head(long entered) {
        return "{\"node\":" + Json.of(node) + ",\"sequence\":" + sequence++
            + ",\"entered\":" + entered + ",\"time\":" + System.nanoTime()
            + ",\"thread\":" + Json.of(Thread.currentThread().getName());
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
