package kconform;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;

/**
 * What a shard has loaded, as text, read off its own objects: equal texts are equal states.
 *
 * <p>Left out is what is not of the log: clocks, loggers, metrics, futures, and the deadline of a
 * group's metadata. Maps and sets are in the order of their texts.
 */
final class StateText {
  private static final Set<String> NOT_OF_THE_LOG =
      Set.of("metadataRefreshDeadline", "prev", "next", "snapshotRegistry", "time", "log", "logContext", "logger");
  private static final int DEEPEST = 24;

  private StateText() {}

  static String ofGroups(Object shard) {
    StringBuilder out = new StringBuilder();
    Object groups = Kafka.get(shard, "groupMetadataManager");
    Object offsets = Kafka.get(shard, "offsetMetadataManager");
    for (String name : List.of("groups", "shareGroupStatePartitionMetadata")) {
      if (Kafka.has(groups, name)) {
        append(out, name, Kafka.get(groups, name));
      }
    }
    append(out, "offsets", Kafka.get(offsets, "offsets"));
    append(out, "pendingTransactionalOffsets", Kafka.get(offsets, "pendingTransactionalOffsets"));
    return out.toString();
  }

  /** Without the count of updates since a snapshot, which a load begins anew. */
  static String ofShares(Object shard) {
    StringBuilder out = new StringBuilder();
    for (String name : List.of("shareStateMap", "leaderEpochMap", "stateEpochMap")) {
      append(out, name, Kafka.get(shard, name));
    }
    return out.toString();
  }

  private static void append(StringBuilder out, String name, Object value) {
    out.append(name).append('=').append(text(value, 0)).append('\n');
  }

  private static String text(Object value, int depth) {
    if (depth > DEEPEST) {
      throw new IllegalStateException("a state is deeper than " + DEEPEST + " objects");
    }
    if (value == null || value instanceof Number || value instanceof Boolean) {
      return String.valueOf(value);
    }
    if (value instanceof byte[] bytes) {
      return "0x" + HexFormat.of().formatHex(bytes);
    }
    if (value instanceof Optional<?> optional) {
      return text(optional.orElse(null), depth + 1);
    }
    if (value instanceof OptionalInt || value instanceof OptionalLong) {
      return value.toString();
    }
    if (value instanceof Map<?, ?> map) {
      TreeMap<String, String> sorted = new TreeMap<>();
      map.forEach((key, of) -> sorted.put(text(key, depth + 1), text(of, depth + 1)));
      return sorted.toString();
    }
    if (value instanceof Collection<?> collection) {
      List<String> texts = new ArrayList<>();
      collection.forEach(element -> texts.add(text(element, depth + 1)));
      return (value instanceof Set ? texts.stream().sorted().toList() : texts).toString();
    }
    String type = value.getClass().getName();
    if (type.startsWith("org.apache.kafka.timeline.Timeline")) {
      return text(Kafka.call(value, "get"), depth + 1);
    }
    boolean isPlain = value instanceof Enum || !type.startsWith("org.apache.kafka.coordinator.group.");
    return isPlain || type.contains(".generated.") ? value.toString() : fields(value, depth);
  }

  private static String fields(Object value, int depth) {
    TreeMap<String, String> sorted = new TreeMap<>();
    for (Class<?> at = value.getClass(); at != Object.class; at = at.getSuperclass()) {
      for (Field field : at.getDeclaredFields()) {
        if (isOfTheLog(field)) {
          sorted.put(field.getName(), text(Kafka.get(value, field.getName()), depth + 1));
        }
      }
    }
    return sorted.toString();
  }

  private static boolean isOfTheLog(Field field) {
    String type = field.getType().getName();
    return !Modifier.isStatic(field.getModifiers())
        && !field.isSynthetic()
        && !NOT_OF_THE_LOG.contains(field.getName())
        && !type.contains("Future")
        && !type.contains("metrics");
  }
}
