package kconform;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
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

  private final TimelineHashMap<String, Integer> values;

  StoreShard(SnapshotRegistry registry) {
    values = new TimelineHashMap<>(registry, 2);
  }

  /** max.message.bytes: so many records of plain size fill a batch. */
  static int batchBytes(int records) {
    return 61 + (int) (ESTIMATED * records * KEY_BYTES);
  }

  /** What a write of a kind does (StoreRecords): its records; some kinds change the store at once. */
  List<Entry> write(String kind, int number, int maxBatch) {
    List<Entry> entries = new ArrayList<>();
    switch (kind) {
      case "nothing" -> {}
      case "two" -> KEYS.forEach(key -> entries.add(new Entry(key, number, TWO_BYTES)));
      case "delete" -> entries.add(new Entry("k1", null, 0));
      case "large" -> entries.add(new Entry("k1", number, KEY_BYTES * maxBatch));
      default -> entries.add(new Entry("k1", number, 4));
    }
    if (changesMemoryItself(kind)) {
      entries.forEach(this::replay);
    }
    return entries;
  }

  /** replayRecords = false. */
  static boolean changesMemoryItself(String kind) {
    return kind.equals("direct") || kind.equals("large");
  }

  private void replay(Entry entry) {
    if (entry.value == null) {
      values.remove(entry.key);
    } else {
      values.put(entry.key, entry.value);
    }
  }

  /** The values at an offset, in the order of KEYS. */
  List<Integer> at(long offset) {
    return KEYS.stream().map(key -> orTombstone(values.get(key, offset))).toList();
  }

  /** The values now. */
  List<Integer> latest() {
    return KEYS.stream().map(key -> orTombstone(values.get(key))).toList();
  }

  private static int orTombstone(Integer value) {
    return value == null ? TOMBSTONE : value;
  }

  /** CoordinatorShard: of its methods those of records do something. */
  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) {
    if (method.getName().equals("replay")) {
      replay((Entry) arguments[3]);
    }
    return null;
  }

  // ---- bytes -------------------------------------------------------------------------------

  static byte[] key(Entry entry) {
    return padded(entry.key, KEY_BYTES);
  }

  static byte[] value(Entry entry) {
    return entry.value == null ? null : padded(String.valueOf(entry.value), entry.bytes);
  }

  private static byte[] padded(String text, int bytes) {
    byte[] padded = new byte[Math.max(bytes, text.length())];
    Arrays.fill(padded, (byte) ' ');
    byte[] end = text.getBytes(StandardCharsets.US_ASCII);
    System.arraycopy(end, 0, padded, padded.length - end.length, end.length);
    return padded;
  }

  static Entry entry(ByteBuffer key, ByteBuffer value) {
    Integer number = value == null ? null : Integer.valueOf(text(value));
    return new Entry(text(key), number, value == null ? 0 : value.remaining());
  }

  private static String text(ByteBuffer bytes) {
    return StandardCharsets.US_ASCII.decode(bytes.duplicate()).toString().trim();
  }
}
