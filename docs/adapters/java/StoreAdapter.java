import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The tutorial's store in Java, and the adapter that lets kconform drive it. Needs no library.
 *
 * <pre>
 * javac -d classes docs/adapters/java/StoreAdapter.java
 * kconform adapter-check 'java -cp classes StoreAdapter' --model docs/tutorial/models/store.toml
 * kconform replay docs/tutorial/models/store.toml --system 'exec:java -cp classes StoreAdapter'
 * </pre>
 */
public final class StoreAdapter {

    /** The implementation: it knows nothing of kconform. */
    static final class Store {
        private record Entry(String value, int version) {}

        private final Map<String, Entry> entries = new TreeMap<>();

        String get(String key) {
            return entries.containsKey(key) ? entries.get(key).value() : null;
        }

        int version(String key) {
            return entries.containsKey(key) ? entries.get(key).version() : 0;
        }

        void put(String key, String value) {
            entries.put(key, new Entry(value, version(key) + 1));
        }

        /** Keeps the version, so that no version ever comes twice. */
        void remove(String key) {
            if (get(key) == null) {
                throw new IllegalStateException(key + " holds nothing");
            }
            entries.put(key, new Entry(null, version(key) + 1));
        }

        boolean compareAndSet(String key, int expected, String value) {
            if (version(key) != expected) {
                return false;
            }
            put(key, value);
            return true;
        }
    }

    // ---- The adapter: actions to calls, the store's state to the specification's variables. ----

    /** What the implementation cannot do in its present state. */
    static final class Refused extends Exception {
        Refused(String why) {
            super(why);
        }
    }

    /** A command that is not one of the protocol's. */
    static final class ProtocolError extends Exception {
        ProtocolError(String what) {
            super(what);
        }
    }

    private List<?> keys;
    private Store store;
    private String answer;

    private Object hello(Map<?, ?> constants) throws Refused {
        if (!(constants.get("Keys") instanceof Map<?, ?> set && set.get("#set") instanceof List<?> all)) {
            throw new Refused("it needs the constant Keys, a set of strings");
        }
        keys = all;
        return Map.of(
                "protocol", 1,
                "name", "store in Java",
                "specification", "Store",
                "variables", List.of("value", "version", "answer")); // `writes` is a ghost
    }

    private void reset() {
        store = new Store();
        answer = "none";
    }

    private void apply(String action, List<?> arguments) throws Refused, ProtocolError {
        String key = (String) arguments.get(0);
        String written = "none";
        switch (action) {
            case "Put" -> store.put(key, (String) arguments.get(1));
            case "Remove" -> {
                if (store.get(key) == null) {
                    throw new Refused(key + " holds nothing");
                }
                store.remove(key);
            }
            case "CompareAndSet" -> {
                int expected = ((Long) arguments.get(1)).intValue();
                boolean done = store.compareAndSet(key, expected, (String) arguments.get(2));
                written = done ? "written" : "conflict";
            }
            default -> throw new ProtocolError("there is no action " + action);
        }
        answer = written;
    }

    private Object observe() {
        Map<String, Object> value = new LinkedHashMap<>();
        Map<String, Object> version = new LinkedHashMap<>();
        for (Object key : keys) {
            String held = store.get((String) key);
            value.put((String) key, held == null ? "absent" : held);
            version.put((String) key, store.version((String) key));
        }
        return Map.of("value", value, "version", version, "answer", answer);
    }

    // ---- The protocol: the same for every adapter in Java. -------------------------------------

    private Object carryOut(Map<?, ?> command) throws Refused, ProtocolError {
        String name = String.valueOf(command.get("command"));
        if (name.equals("hello")) {
            return hello((Map<?, ?>) command.get("constants"));
        }
        if (keys == null || (store == null && !name.equals("reset"))) {
            throw new ProtocolError(name + " before " + (keys == null ? "hello" : "reset"));
        }
        switch (name) {
            case "reset" -> reset();
            case "apply" -> apply((String) command.get("action"), (List<?>) command.get("arguments"));
            case "observe" -> {
                return observe();
            }
            default -> throw new ProtocolError("there is no command " + name);
        }
        return null;
    }

    private Map<String, Object> answerTo(Map<?, ?> command) {
        Map<String, Object> told = new LinkedHashMap<>();
        try {
            told.put("ok", carryOut(command));
        } catch (Refused refused) {
            told.put("refused", refused.getMessage());
        } catch (ProtocolError error) {
            told.put("protocol_error", error.getMessage());
        } catch (Throwable raised) { // the implementation's: the harness has to see it
            StringWriter trace = new StringWriter();
            raised.printStackTrace(new PrintWriter(trace, true));
            told.put("exception", trace.toString());
        }
        return told;
    }

    private String reply(String line) {
        Map<?, ?> request = (Map<?, ?>) new Reader(line).read();
        List<Object> answers = new ArrayList<>();
        for (Object command : (List<?>) request.get("commands")) {
            Map<String, Object> told = answerTo((Map<?, ?>) command);
            answers.add(told);
            if (!told.containsKey("ok")) {
                break;
            }
        }
        StringBuilder out = new StringBuilder();
        write(Map.of("id", request.get("id"), "answers", answers), out);
        return out.append('\n').toString();
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // standard output is for answers only
        StoreAdapter adapter = new StoreAdapter();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.print(adapter.reply(line));
            out.flush();
        }
    }

    // ---- JSON, as far as the protocol needs it: use your project's library instead. ------------

    private static void write(Object value, StringBuilder out) {
        if (value instanceof String text) {
            writeText(text, out);
        } else if (value instanceof Map<?, ?> members) {
            String separator = "{";
            for (Map.Entry<?, ?> member : members.entrySet()) {
                out.append(separator);
                writeText((String) member.getKey(), out);
                out.append(':');
                write(member.getValue(), out);
                separator = ",";
            }
            out.append(members.isEmpty() ? "{}" : "}");
        } else if (value instanceof List<?> elements) {
            String separator = "[";
            for (Object element : elements) {
                out.append(separator);
                write(element, out);
                separator = ",";
            }
            out.append(elements.isEmpty() ? "[]" : "]");
        } else {
            out.append(value); // null, a boolean, a number
        }
    }

    private static void writeText(String text, StringBuilder out) {
        out.append('"');
        for (char letter : text.toCharArray()) {
            if (letter == '"' || letter == '\\') {
                out.append('\\').append(letter);
            } else if (letter < ' ') {
                out.append(String.format("\\u%04x", (int) letter));
            } else {
                out.append(letter);
            }
        }
        out.append('"');
    }

    /** Reads JSON as Map, List, String, Long, Boolean and null. */
    private static final class Reader {
        private final String text;
        private int at;

        Reader(String text) {
            this.text = text;
        }

        Object read() {
            return switch (next()) {
                case '{' -> object();
                case '[' -> array();
                case '"' -> string();
                case 't' -> word("true", Boolean.TRUE);
                case 'f' -> word("false", Boolean.FALSE);
                case 'n' -> word("null", null);
                default -> number();
            };
        }

        /** The next character that is no space, which is not taken. */
        private char next() {
            while (Character.isWhitespace(text.charAt(at))) {
                at++;
            }
            return text.charAt(at);
        }

        private Map<String, Object> object() {
            Map<String, Object> members = new LinkedHashMap<>();
            at++;
            while (next() != '}') {
                if (text.charAt(at) == ',') {
                    at++;
                    next();
                }
                String name = string();
                next();
                at++; // the colon
                members.put(name, read());
            }
            at++;
            return members;
        }

        private List<Object> array() {
            List<Object> elements = new ArrayList<>();
            at++;
            while (next() != ']') {
                if (text.charAt(at) == ',') {
                    at++;
                }
                elements.add(read());
            }
            at++;
            return elements;
        }

        private String string() {
            StringBuilder found = new StringBuilder();
            for (at++; text.charAt(at) != '"'; at++) {
                char letter = text.charAt(at);
                if (letter != '\\') {
                    found.append(letter);
                    continue;
                }
                char escaped = text.charAt(++at);
                switch (escaped) {
                    case 'b' -> found.append('\b');
                    case 'f' -> found.append('\f');
                    case 'n' -> found.append('\n');
                    case 'r' -> found.append('\r');
                    case 't' -> found.append('\t');
                    case 'u' -> {
                        found.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16));
                        at += 4;
                    }
                    default -> found.append(escaped);
                }
            }
            at++;
            return found.toString();
        }

        private Object word(String word, Object value) {
            at += word.length();
            return value;
        }

        private Long number() {
            int begin = at;
            while (at < text.length() && "+-0123456789".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
            return Long.parseLong(text.substring(begin, at));
        }
    }
}
