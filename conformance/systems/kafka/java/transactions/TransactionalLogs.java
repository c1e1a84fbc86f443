package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.util.List;
import java.util.OptionalLong;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.utils.Utils;

/** The commands of one partition that several producers write, and of a consumer that reads it. */
final class TransactionalLogs {
  static final String PREFIX = "log_";
  private static final int EPOCH = 0;
  private static final long NO_OFFSET = -1;
  private static final byte[] VALUE = {'v'};

  private final ObjectMapper json = new ObjectMapper();
  private final File folder;
  private final Virtual.Clock clock = new Virtual.Clock();
  private int leaders;
  private Object log;
  private ReadCommittedConsumer consumer;

  TransactionalLogs(File folder) {
    this.folder = new File(folder, "log");
  }

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException {
    switch (name) {
      case "log_reset" -> reset();
      case "log_append_plain" -> append(Records.argument(Kafka.type("MemoryRecords")), "CLIENT");
      case "log_append_data" -> appendData(command.get("producer").asInt());
      case "log_append_marker" ->
          appendMarker(command.get("producer").asInt(), command.get("kind").asText());
      case "log_advance" -> DiskLog.advance(log, command.get("offset").asLong());
      case "log_delete" -> deleteRecords(log, command.get("offset").asLong());
      case "log_elect" -> elect(command.get("end").asLong(), command.get("watermark").asLong());
      case "log_fetch" -> fetch(command.get("size").asInt());
      case "log_reset_position" -> resetPosition();
      case "log_view" -> {
        return view();
      }
      case "log_stored_view" -> {
        return "[" + view() + "," + stored().view() + "]";
      }
      case "log_expire" -> expire();
      case "log_expiry_view" -> {
        return "[" + view() + "," + known() + "]";
      }
      default -> log = stored().run(name, command, this);
    }
    return "null";
  }

  private StoredLog stored() {
    return new StoredLog(log, directory(), clock);
  }

  private File directory() {
    return new File(folder, "leader-" + leaders + "/t-0");
  }

  /** An empty log, and a consumer at its start. */
  private void reset() throws IOException {
    if (log != null) {
      DiskLog.closeFiles(log);
      Utils.delete(folder);
    }
    YammerMetrics.clear();
    log = load();
    consumer = new ReadCommittedConsumer();
  }

  /** Each leader has a disk of its own. Who may begin a transaction is the coordinator's business. */
  private Object load() {
    leaders++;
    return DiskLog.load(directory(), clock, true, false);
  }

  // ---- the partition -----------------------------------------------------------------------

  private void append(Object records, String origin) {
    TransactionRecords.appendAsLeader(log, records, origin, TransactionRecords.UNVERIFIED, 0);
  }

  void appendData(int producer) {
    append(TransactionRecords.data(producer, EPOCH, nextSequence(producer), VALUE), "CLIENT");
  }

  /** What an election has cut off is sent again. */
  private int nextSequence(int producer) {
    return (int)
        DiskLog.batches(log)
            .filter(batch -> (long) Kafka.call(batch, "producerId") == producer)
            .filter(batch -> !(boolean) Kafka.call(batch, "isControlBatch"))
            .count();
  }

  void appendMarker(int producer, String kind) {
    boolean commits = kind.equals("Committed");
    long now = clock.milliseconds();
    append(TransactionRecords.marker(producer, EPOCH, 0, commits, now), "COORDINATOR");
  }

  private static void deleteRecords(Object log, long offset) {
    Kafka.wireCall(
        log,
        "maybeIncrementLogStartOffset",
        type ->
            type == long.class
                ? (Object) offset
                : Kafka.getStatic(Kafka.raw(type), "ClientRecordDeletion"));
  }

  /** All were silent for as long as a partition remembers them. */
  private void expire() {
    clock.sleep(DiskLog.EXPIRATION_MS);
    Kafka.call(log, "removeExpiredProducers", clock.milliseconds());
  }

  /** A replica leads that has appended as a follower; or, where no watermark lags, one that has had
   * all and truncates. */
  private void elect(long end, long watermark) {
    if (watermark == DiskLog.highWatermark(log)) {
      Kafka.call(log, "truncateTo", end);
    } else {
      Object before = log;
      log = load();
      TransactionRecords.replicate(before, log, end);
      long start = start(before);
      if (start <= end) {
        Kafka.call(log, "updateHighWatermark", start);
        deleteRecords(log, start);
      }
      DiskLog.closeFiles(before);
    }
    Kafka.call(log, "updateHighWatermark", watermark);
  }

  private static long start(Object log) {
    return Kafka.number(Kafka.call(log, "logStartOffset"));
  }

  // ---- the consumer ------------------------------------------------------------------------

  /** As many bytes as so many of the next batches have. */
  private void fetch(int size) {
    Object fetched = read(bytesOf(size));
    Object records = Kafka.get(fetched, "records");
    if (Kafka.integer(Kafka.call(records, "sizeInBytes")) == 0) {
      throw new Broker.Refused("nothing is readable at " + consumer.position());
    }
    @SuppressWarnings("unchecked")
    List<AbortedTransaction> aborted =
        (List<AbortedTransaction>) Kafka.orNull(Kafka.get(fetched, "abortedTransactions"));
    consumer.complete(DiskLog.copy(records), aborted);
  }

  private int bytesOf(int size) {
    return DiskLog.batches(log)
        .filter(batch -> (long) Kafka.call(batch, "baseOffset") >= consumer.position())
        .limit(size)
        .mapToInt(batch -> Kafka.integer(Kafka.call(batch, "sizeInBytes")))
        .sum();
  }

  private Object read(int bytes) {
    Object isolation = Kafka.getStatic(Kafka.type("FetchIsolation"), "TXN_COMMITTED");
    return Kafka.call(log, "read", consumer.position(), bytes, isolation, true);
  }

  /** auto.offset.reset=earliest. */
  private void resetPosition() {
    try {
      read(1);
    } catch (OffsetOutOfRangeException gone) {
      consumer.seek(start(log));
      return;
    }
    throw new Broker.Refused(consumer.position() + " is in range");
  }

  // ---- what is seen ------------------------------------------------------------------------

  /** [records, watermark, start, open, unreplicated, abort index, position, delivered]. */
  private String view() throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartArray();
      writeRecords(out);
      out.writeNumber(DiskLog.highWatermark(log));
      out.writeNumber(start(log));
      Object manager = Kafka.call(log, "producerStateManager");
      writeTransactions(out, Kafka.get(manager, "ongoingTxns"));
      writeTransactions(out, Kafka.get(manager, "unreplicatedTxns"));
      writeAbortIndex(out, log);
      out.writeNumber(consumer.position());
      int[] delivered = consumer.delivered().stream().mapToInt(each -> each).toArray();
      out.writeArray(delivered, 0, delivered.length);
      out.writeEndArray();
    }
    return text.toString();
  }

  /** [kind, producer] each. */
  private void writeRecords(JsonGenerator out) throws IOException {
    out.writeStartArray();
    for (Object batch : (Iterable<Object>) DiskLog.batches(log)::iterator) {
      boolean ends = (boolean) Kafka.call(batch, "isControlBatch");
      out.writeStartArray();
      out.writeString(
          ends ? TransactionRecords.kind(TransactionRecords.markerOf(DiskLog.first(batch))) : "data");
      out.writeNumber((long) Kafka.call(batch, "producerId"));
      out.writeEndArray();
    }
    out.writeEndArray();
  }

  /** The producers that the log knows. */
  private String known() {
    Object manager = Kafka.call(log, "producerStateManager");
    return Kafka.map(Kafka.call(manager, "activeProducers")).keySet().toString();
  }

  /** [producer, first, last] each. */
  private static void writeTransactions(JsonGenerator out, Object transactions) throws IOException {
    out.writeStartArray();
    for (Object txn : Kafka.map(transactions).values()) {
      Object first = Kafka.get(Kafka.get(txn, "firstOffset"), "messageOffset");
      OptionalLong last = (OptionalLong) Kafka.get(txn, "lastOffset");
      long producer = (long) Kafka.get(txn, "producerId");
      long[] entry = {producer, Kafka.number(first), last.orElse(NO_OFFSET)};
      out.writeArray(entry, 0, entry.length);
    }
    out.writeEndArray();
  }

  /** [producer, first, last, stable] each. */
  static void writeAbortIndex(JsonGenerator out, Object log) throws IOException {
    out.writeStartArray();
    for (Object segment : Kafka.each(Kafka.call(log, "logSegments"))) {
      for (Object txn : Kafka.each(Kafka.call(Kafka.call(segment, "txnIndex"), "allAbortedTxns"))) {
        long[] entry = {
          (long) Kafka.call(txn, "producerId"),
          (long) Kafka.call(txn, "firstOffset"),
          (long) Kafka.call(txn, "lastOffset"),
          (long) Kafka.call(txn, "lastStableOffset")
        };
        out.writeArray(entry, 0, entry.length);
      }
    }
    out.writeEndArray();
  }
}
