package kconform;

import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;

/**
 * An idempotent producer without its threads: the Java client's TransactionManager and its batches.
 *
 * <p>What RecordAccumulator.drain and Sender do with them is done here, when an action says so.
 */
final class ProducerClient {
  static final long PRODUCER_ID = 7;
  private static final String PACKAGE = "org.apache.kafka.clients.producer.internals.";
  private static final TopicPartition PARTITION = new TopicPartition("t", 0);
  private static final int BATCH_BYTES = 256;

  /** What a batch is numbered. */
  record Numbered(int epoch, int sequence, int size, int value) {}

  /** A batch as it was sent; `records` is a copy. */
  record Sent(Numbered as, ByteBuffer records) {}

  /** A batch that is not acknowledged. */
  private record Pending(Object batch, int value) {}

  private final Object manager;
  private final List<Pending> pending = new ArrayList<>();
  private int values;

  ProducerClient() {
    manager = Kafka.wire(Kafka.type(PACKAGE + "TransactionManager"), ProducerClient::argument);
    Object identity = Kafka.make(Kafka.type("ProducerIdAndEpoch"), PRODUCER_ID, (short) 0);
    Kafka.call(manager, "setProducerIdAndEpoch", identity);
  }

  /** Without a transactional id. */
  private static Object argument(Type type) {
    Class<?> raw = Kafka.raw(type);
    if (raw == int.class || raw == long.class) {
      return 0;
    }
    if (raw == boolean.class) {
      return false; // two-phase commit
    }
    return switch (raw.getSimpleName()) {
      case "LogContext" -> Kafka.make(raw, "");
      case "ApiVersions" -> Kafka.make(raw);
      default -> null; // the id of transactions, and what only they ask for
    };
  }

  // ---- steps -------------------------------------------------------------------------------

  /** A batch of the application gets its sequence, and leaves. */
  Sent send(int size) {
    values++;
    Object batch = batch(PARTITION, String.valueOf(values), size);
    number(manager, batch, PARTITION, size);
    pending.add(new Pending(batch, values));
    return sent(batch, values);
  }

  /** RecordAccumulator.drain: a transaction manager's next sequences are a batch's. */
  static void number(Object manager, Object batch, TopicPartition partition, int size) {
    Kafka.call(manager, "maybeUpdateProducerIdAndEpoch", partition);
    int sequence = Kafka.integer(Kafka.call(manager, "sequenceNumber", partition));
    boolean isTransactional = (boolean) Kafka.call(manager, "isTransactional");
    Object identity = Kafka.call(manager, "producerIdAndEpoch");
    Kafka.call(batch, "setProducerState", identity, sequence, isTransactional);
    Kafka.call(manager, "incrementSequenceNumber", partition, size);
    Kafka.call(manager, "addInFlightBatch", batch);
  }

  /** A batch of so many records of the same value. */
  static Object batch(TopicPartition partition, String text, int size) {
    Object none = Kafka.call(Kafka.callStatic(Kafka.type("Compression"), "none"), "build");
    ByteBuffer buffer = ByteBuffer.allocate(BATCH_BYTES);
    Object builder =
        Kafka.callStatic(
            Kafka.type("MemoryRecords"), "builder", buffer, none, TimestampType.CREATE_TIME, 0L);
    Object batch =
        Kafka.make(Kafka.type(PACKAGE + "ProducerBatch"), partition, builder, Virtual.Clock.START);
    byte[] value = text.getBytes(StandardCharsets.UTF_8);
    for (int i = 0; i < size; i++) {
      long now = Virtual.Clock.START;
      Kafka.call(batch, "tryAppend", now, null, value, new Header[0], null, now);
    }
    return batch;
  }

  /** What goes over the wire. The client may number the batch anew, so a copy is kept. */
  private static Sent sent(Object batch, int value) {
    Kafka.call(batch, "close");
    Object records = Kafka.call(batch, "records");
    ByteBuffer written = ((ByteBuffer) Kafka.call(records, "buffer")).duplicate();
    ByteBuffer copy = ByteBuffer.allocate(written.remaining()).put(written).flip();
    return new Sent(numbered(batch, value), copy);
  }

  private static Numbered numbered(Object batch, int value) {
    return new Numbered(
        (short) Kafka.call(batch, "producerEpoch"),
        (int) Kafka.call(batch, "baseSequence"),
        (int) Kafka.get(batch, "recordCount"),
        value);
  }

  /** Sender.completeBatch: the batch was answered without an error. */
  void complete(int value, long offset) {
    Pending completed = pending(value);
    Kafka.call(manager, "handleCompletedBatch", completed.batch, response(Errors.NONE, offset));
    pending.remove(completed);
  }

  /** Sender.canRetry, then its next loop: all that is in flight is numbered anew, and leaves. */
  List<Sent> bump(int value, Errors error) {
    int before = epoch();
    Kafka.call(manager, "canRetry", response(error, -1), pending(value).batch);
    Kafka.call(manager, "bumpIdempotentEpochAndResetIdIfNeeded");
    if (epoch() == before) {
      throw new Broker.Refused("the client sends batch " + value + " again after " + error);
    }
    return pending.stream().map(each -> sent(each.batch, each.value)).toList();
  }

  /** A leader's answer for a partition. */
  static Object response(Errors error, long offset) {
    Class<?> type = Kafka.type("org.apache.kafka.common.requests.ProduceResponse$PartitionResponse");
    return Kafka.make(type, error, offset, -1L, 0L);
  }

  private Pending pending(int value) {
    return pending.stream()
        .filter(each -> each.value == value)
        .findFirst()
        .orElseThrow(() -> new Broker.Refused("the client does not wait for batch " + value));
  }

  // ---- what is seen ------------------------------------------------------------------------

  int values() {
    return values;
  }

  int epoch() {
    return (short) Kafka.get(Kafka.call(manager, "producerIdAndEpoch"), "epoch");
  }

  int nextSequence() {
    return Kafka.integer(Kafka.call(manager, "sequenceNumber", PARTITION));
  }

  int lastAckedSequence() {
    return ((OptionalInt) Kafka.call(manager, "lastAckedSequence", PARTITION)).orElse(-1);
  }

  /** The manager's batches in flight, in the order of their sequences. */
  List<Numbered> inFlight() {
    Object entry = Kafka.call(Kafka.get(manager, "txnPartitionMap"), "getOrCreate", PARTITION);
    List<Numbered> batches = new ArrayList<>();
    for (Object batch : Kafka.each(Kafka.get(entry, "inflightBatchesBySequence"))) {
      int value = pending.stream().filter(each -> each.batch == batch).findFirst().orElseThrow().value;
      batches.add(numbered(batch, value));
    }
    return batches;
  }
}
