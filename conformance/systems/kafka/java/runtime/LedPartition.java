package kconform;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.common.protocol.Errors;

/**
 * The partition on one broker: what its log has, whether the broker leads, and who listens.
 *
 * <p>It takes the place of a PartitionWriter, whose methods `invoke` plays over batches in memory.
 * The listener is behind Kafka's own ListenerAdapter, as CoordinatorPartitionWriter puts it.
 */
final class LedPartition implements InvocationHandler {
  private static final String ADAPTER = "kafka.coordinator.group.ListenerAdapter";
  private static final int FOLLOWS = -1;

  /** Of all transactions. */
  static final short TRANSACTION_VERSION = 2;

  private static final short UNKNOWN_VERSION = -1; // TransactionVersion.TV_UNKNOWN
  private static final String LATER = " later";
  private static final Class<?> CONTROL = Kafka.type("ControlRecordType");
  private static final Object VERIFIED =
      Kafka.getStatic(
          Kafka.type("org.apache.kafka.storage.internals.log.VerificationGuard"), "SENTINEL");

  /** A batch of the log, and what its records say. Followers of a leader have the same object. */
  record Batch(Object records, long end, int epoch, List<Record> contents) {}

  /**
   * A record of the log; `time` is its timestamp, `producer` 0 without one. A `control` record is a
   * marker, whose key says how the transaction ended.
   */
  record Record(Object entry, long time, long producer, boolean control) {}

  private final Object config;
  private final ShardKind kind;
  private List<Batch> batches = new ArrayList<>();
  private int leaderEpoch = FOLLOWS;
  private long highWatermark;
  private Object adapter;

  /** What comes of the next append: "appended", "refused", or "thrown" after it. */
  private String result = "appended";
  private String later = "appended";

  LedPartition(Object config, ShardKind kind) {
    this.config = config;
    this.kind = kind;
  }

  List<Batch> batches() {
    return batches;
  }

  long highWatermark() {
    return highWatermark;
  }

  boolean leads() {
    return leaderEpoch != FOLLOWS;
  }

  // ---- PartitionWriter ---------------------------------------------------------------------

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) {
    return switch (method.getName()) {
      case "append" -> {
        if (arguments.length > 3) {
          checkVersion(arguments[2], (short) arguments[3]);
        }
        yield append(arguments[2]);
      }
      case "maybeStartTransactionVerification" -> CompletableFuture.completedFuture(VERIFIED);
      case "config" -> {
        mustLead();
        yield config;
      }
      case "registerListener" -> {
        adapter = Kafka.make(Kafka.type(ADAPTER), arguments[1]);
        yield null;
      }
      case "deregisterListener" -> {
        deregister(arguments[1]);
        yield null;
      }
      default -> throw new IllegalStateException("nobody plays " + method);
    };
  }

  private void deregister(Object listener) {
    if (listener(listener)) {
      adapter = null;
    }
  }

  /** Whether the adapter is that listener's. */
  boolean listener(Object listener) {
    return adapter != null && Kafka.call(adapter, "listener") == listener;
  }

  /** From 4.2 on a marker comes with the version of its transaction (KAFKA-19446), data without. */
  private static void checkVersion(Object records, short version) {
    Object batch = Kafka.each(Kafka.call(records, "batches")).iterator().next();
    boolean control = (boolean) Kafka.call(batch, "isControlBatch");
    if (version != (control ? TRANSACTION_VERSION : UNKNOWN_VERSION)) {
      throw new IllegalStateException("an append has the transaction version " + version);
    }
  }

  private void mustLead() {
    if (!leads()) {
      throw Errors.NOT_LEADER_OR_FOLLOWER.exception();
    }
  }

  /** What comes of this step's appends: "refused later" says that the first succeeds. */
  void expect(String outcome) {
    boolean second = outcome.endsWith(LATER);
    later = second ? outcome.substring(0, outcome.length() - LATER.length()) : outcome;
    result = second ? "appended" : outcome;
  }

  private long append(Object records) {
    mustLead();
    String now = result;
    result = later;
    if (now.equals("refused")) {
      throw Errors.NOT_ENOUGH_REPLICAS.exception();
    }
    batches.add(stored(records));
    if (now.equals("thrown")) {
      throw Errors.KAFKA_STORAGE_ERROR.exception("thrown after the append");
    }
    return end();
  }

  /** A copy with offsets and the leader epoch: the runtime uses its buffer again. */
  private Batch stored(Object records) {
    ByteBuffer written = ((ByteBuffer) Kafka.call(records, "buffer")).duplicate();
    ByteBuffer copy = ByteBuffer.allocate(written.remaining()).put(written).flip();
    Object own = Kafka.callStatic(Kafka.type("MemoryRecords"), "readableRecords", copy);
    Object batch = Kafka.each(Kafka.call(own, "batches")).iterator().next();
    int count = (int) Kafka.call(batch, "countOrNull");
    Kafka.call(batch, "setLastOffset", end() + count - 1);
    Kafka.call(batch, "setPartitionLeaderEpoch", leaderEpoch);
    boolean control = (boolean) Kafka.call(batch, "isControlBatch");
    long producer = Math.max((long) Kafka.call(batch, "producerId"), 0);
    List<Record> contents = new ArrayList<>();
    for (Object record : Kafka.each(batch)) {
      Object entry = control ? marker(record) : entry(record);
      contents.add(new Record(entry, (long) Kafka.call(record, "timestamp"), producer, control));
    }
    return new Batch(own, end() + count, leaderEpoch, contents);
  }

  private static StoreShard.Entry marker(Object record) {
    Object type = Kafka.callStatic(CONTROL, "parse", Kafka.call(record, "key"));
    return new StoreShard.Entry(type.toString(), null, 0);
  }

  private Object entry(Object record) {
    return kind.record(
        (ByteBuffer) Kafka.call(record, "key"), (ByteBuffer) Kafka.call(record, "value"));
  }

  private long end() {
    return batches.isEmpty() ? 0 : batches.get(batches.size() - 1).end();
  }

  // ---- leadership --------------------------------------------------------------------------

  void lead(int epoch) {
    leaderEpoch = epoch;
  }

  /** Partition.makeFollower. */
  void follow() {
    leaderEpoch = FOLLOWS;
    if (adapter != null) {
      Kafka.call(adapter, "onBecomingFollower", OffsetsTopic.PARTITION);
    }
  }

  /** Partition.delete. */
  void delete() {
    leaderEpoch = FOLLOWS;
    if (adapter != null) {
      Kafka.call(adapter, "onDeleted", OffsetsTopic.PARTITION);
    }
  }

  /** Whether the listener's adapter has retired; up to 4.3 it never does (KAFKA-20634). */
  boolean isRetired() {
    return adapter != null
        && Kafka.has(adapter, "active")
        && !((AtomicBoolean) Kafka.get(adapter, "active")).get();
  }

  // ---- replication -------------------------------------------------------------------------

  /** A higher watermark; whoever listens is told. */
  void advance(long offset) {
    if (offset <= highWatermark) {
      return;
    }
    highWatermark = offset;
    if (adapter != null) {
      Kafka.call(adapter, "onHighWatermarkUpdated", OffsetsTopic.PARTITION, offset);
    }
  }

  /** Truncates what the leader does not have, takes its next batch, hears its watermark. */
  void fetchFrom(LedPartition leader) {
    int common = 0;
    while (common < Math.min(batches.size(), leader.batches.size())
        && batches.get(common) == leader.batches.get(common)) {
      common++;
    }
    batches = new ArrayList<>(batches.subList(0, common));
    if (common < leader.batches.size()) {
      batches.add(leader.batches.get(common));
    }
    advance(Math.min(end(), leader.highWatermark));
    leader.advance(end());
  }
}
