package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * The shard that the runtime's models have: values by key, in a timeline map of Kafka's.
 *
 * <p>It takes the place of a CoordinatorShard, whose methods `invoke` plays.
 */
final class StoreShard implements InvocationHandler {
  static final List<String> KEYS = List.of("k1", "k2");
  static final int TOMBSTONE = 0;

  /**
   * Bytes of a key. Codecs are estimated at 1.05 of what they compress
   * (CompressionRatioEstimator), and a write's size with the header of a batch of its own. Keys of
   * this size make a batch full with its last record, and not before.
   */
  private static final int KEY_BYTES = 4_000;
  private static final double ESTIMATED = 1.05;

  /** Two records are a little more than twice one: 4.0 halves the estimate of what is compressed. */
  private static final int TWO_BYTES = 400;

  /** A record; `bytes` is how long the value is, padded in front. */
  record Entry(String key, Integer value, int bytes) {}

  static final int VALUE_BYTES = 4;

  private final TimelineHashMap<String, Integer> values;
  private final StoreSessions sessions;

  /** `timed`: each value has a timer that deletes it. */
  StoreShard(SnapshotRegistry registry, Object timer, Object executor, boolean timed) {
    values = new TimelineHashMap<>(registry, 2);
    sessions = new StoreSessions(this, timer, executor, timed);
  }

  /** What a write of a kind does: its records; some kinds change the store at once. */
  private List<Entry> write(String kind, int number, int maxBatch) {
    if (kind.equals("offload")) {
      sessions.offload();
    }
    List<Entry> entries = entries(kind, number, maxBatch);
    sessions.follow(entries);
    if (changesMemoryItself(kind)) {
      entries.forEach(this::replay);
    }
    return entries;
  }

  /** The records of a write of a kind (StoreRecords, ValueRecords). */
  static List<Entry> entries(String kind, int number, int maxBatch) {
    List<Entry> entries = new ArrayList<>();
    switch (kind) {
      case "nothing", "offload" -> {}
      case "two" -> KEYS.forEach(key -> entries.add(new Entry(key, number, TWO_BYTES)));
      case "parts" -> List.of("k1", "k2", "k1").forEach(key -> entries.add(new Entry(key, number, 4)));
      case "delete" -> entries.add(new Entry("k1", null, 0));
      case "large" -> entries.add(new Entry("k1", number, KEY_BYTES * maxBatch));
      default -> entries.add(new Entry("k1", number, VALUE_BYTES));
    }
    return entries;
  }

  /** The record that deletes a key's value, if it has one. */
  List<Entry> deletion(String key) {
    return values.containsKey(key) ? List.of(new Entry(key, null, 0)) : List.of();
  }

  /** The values now, in the order of KEYS. */
  List<Integer> latest() {
    return KEYS.stream().map(key -> orTombstone(values.get(key))).toList();
  }

  /** replayRecords = false. */
  private static boolean changesMemoryItself(String kind) {
    return kind.equals("direct") || kind.equals("large");
  }

  private void replay(Entry entry) {
    if (entry.value == null) {
      values.remove(entry.key);
    } else {
      values.put(entry.key, entry.value);
    }
  }

  private static int orTombstone(Integer value) {
    return value == null ? TOMBSTONE : value;
  }

  /** CoordinatorShard: of its methods those of records and of its load do something. */
  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) {
    switch (method.getName()) {
      case "replay" -> replay((Entry) arguments[3]);
      case "onLoaded" -> sessions.load();
      default -> {}
    }
    return null;
  }

  // ---- bytes -------------------------------------------------------------------------------

  private static byte[] padded(String text, int bytes) {
    byte[] padded = new byte[Math.max(bytes, text.length())];
    Arrays.fill(padded, (byte) ' ');
    byte[] end = text.getBytes(StandardCharsets.US_ASCII);
    System.arraycopy(end, 0, padded, padded.length - end.length, end.length);
    return padded;
  }

  private static String text(ByteBuffer bytes) {
    return StandardCharsets.US_ASCII.decode(bytes.duplicate()).toString().trim();
  }

  /** Shards of this kind. */
  static class Kind implements ShardKind {
    static final String PACKAGE = "org.apache.kafka.coordinator.common.runtime.";

    private static final Map<String, String> TIMERS =
        KEYS.stream().collect(Collectors.toMap(key -> key, key -> key));

    private final boolean timed;

    Kind(boolean timed) {
      this.timed = timed;
    }

    /** A fresh shard of what the runtime gave its builder, by the builder's methods. */
    InvocationHandler shard(Map<String, Object> given) {
      return new StoreShard(registry(given), given.get("withTimer"), given.get("withExecutor"), timed);
    }

    static SnapshotRegistry registry(Map<String, Object> given) {
      return (SnapshotRegistry) given.get("withSnapshotRegistry");
    }

    @Override
    public Object builder() {
      Map<String, Object> given = new HashMap<>();
      return Kafka.play(
          Kafka.type(PACKAGE + "CoordinatorShardBuilder"),
          (proxy, method, arguments) -> {
            if (method.getName().equals("build")) {
              return Kafka.play(Kafka.type(PACKAGE + "CoordinatorShard"), shard(given));
            }
            given.put(method.getName(), arguments[0]);
            return proxy;
          });
    }

    @Override
    public Map<String, String> timerKeys() {
      return TIMERS;
    }

    /** The value that the timer deletes. */
    @Override
    public int setFor(Object operation, int writes) {
      return ((StoreSessions.Expiry) java.lang.reflect.Proxy.getInvocationHandler(operation)).of();
    }

    @Override
    public int batchBytes(int records) {
      return 61 + (int) (ESTIMATED * records * KEY_BYTES);
    }

    private static StoreShard of(Object shard) {
      return (StoreShard) java.lang.reflect.Proxy.getInvocationHandler(shard);
    }

    @Override
    public Object write(Object shard, JsonNode kind, int number, int maxBatch) {
      List<Entry> entries = of(shard).write(kind.asText(), number, maxBatch);
      boolean replay = !changesMemoryItself(kind.asText());
      boolean atomic = !kind.asText().equals("parts");
      return Kafka.make(Kafka.type(PACKAGE + "CoordinatorResult"), entries, number, null, replay, atomic);
    }

    /** A tombstone is as long as a value: its key has what a value would have. */
    @Override
    public byte[] key(Object record) {
      Entry entry = (Entry) record;
      return padded(entry.key, entry.value == null ? KEY_BYTES + VALUE_BYTES : KEY_BYTES);
    }

    @Override
    public byte[] value(Object record) {
      Entry entry = (Entry) record;
      return entry.value == null ? null : padded(String.valueOf(entry.value), entry.bytes);
    }

    @Override
    public Object record(ByteBuffer key, ByteBuffer value) {
      Integer number = value == null ? null : Integer.valueOf(text(value));
      return new Entry(text(key), number, value == null ? 0 : value.remaining());
    }

    /** [key, value]. */
    @Override
    public void entry(JsonGenerator out, Object record) throws IOException {
      Entry entry = (Entry) record;
      out.writeStartArray();
      out.writeString(entry.key);
      out.writeNumber(orTombstone(entry.value));
      out.writeEndArray();
    }

    /** The values, in the order of KEYS. */
    @Override
    public void memory(JsonGenerator out, Object shard, long offset) throws IOException {
      out.writeStartArray();
      for (String key : KEYS) {
        out.writeNumber(orTombstone(of(shard).values.get(key, offset)));
      }
      out.writeEndArray();
    }
  }
}
