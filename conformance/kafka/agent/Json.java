package kconform.agent;

import java.util.Map;

/** Writes maps, lists, texts, numbers and booleans as JSON. */
final class Json {
    private Json() {}

    static String of(Object value) {
        StringBuilder out = new StringBuilder();
        append(out, value);
        return out.toString();
    }

    private static void append(StringBuilder out, Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof Map<?, ?> map) {
            String between = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(between);
                text(out, entry.getKey().toString());
                out.append(':');
                append(out, entry.getValue());
                between = ",";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof Iterable<?> list) {
            String between = "";
            out.append('[');
            for (Object element : list) {
                out.append(between);
                append(out, element);
                between = ",";
            }
            out.append(']');
        } else {
            text(out, value.toString());
        }
    }

    private static void text(StringBuilder out, String value) {
        out.append('"');
        for (char letter : value.toCharArray()) {
            switch (letter) {
                case '"' -> out.append("\\\"");
                case '\\' -> out.append("\\\\");
                default -> {
                    if (letter < 0x20) {
                        out.append(String.format("\\u%04x", (int) letter));
                    } else {
                        out.append(letter);
                    }
                }
            }
        }
        out.append('"');
    }
}
