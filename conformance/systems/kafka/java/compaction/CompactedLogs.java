package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.OptionalLong;
import org.apache.kafka.common.utils.Utils;

/** The commands of a compacted partition: its replicas, and their cleaners. */
final class CompactedLogs {
  static final String PREFIX = "compaction_";

  private final ObjectMapper json = new ObjectMapper();
  private final File folder;
  private final List<CompactedLog> replicas = new ArrayList<>();
  private Virtual.Clock clock;
  private int leader;

  CompactedLogs(File folder) {
    this.folder = new File(folder, "compaction");
  }

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException {
    switch (name) {
      case "compaction_reset" -> reset(command);
      case "compaction_append" ->
          leader()
              .append(command.get("key").asInt(), command.get("kind").asText().equals("tombstone"));
      case "compaction_append_in_transaction" ->
          leader().appendInTransaction(command.get("key").asInt());
      case "compaction_append_marker" ->
          leader().appendMarker(command.get("kind").asText().equals("Committed"));
      case "compaction_roll" -> replica(command).roll();
      case "compaction_advance" -> leader().advance(command.get("offset").asLong());
      case "compaction_fetch" -> replica(command).fetchFrom(leader());
      case "compaction_clean" -> replica(command).clean();
      case "compaction_day_passes" -> dayPasses();
      case "compaction_view" -> {
        return view();
      }
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    return "null";
  }

  private void reset(JsonNode command) throws IOException {
    replicas.forEach(CompactedLog::close);
    replicas.clear();
    if (folder.exists()) {
      Utils.delete(folder);
    }
    YammerMetrics.clear();
    clock = new Virtual.Clock();
    leader = command.get("leader").asInt();
    for (int number = 1; number <= command.get("replicas").asInt(); number++) {
      File directory = new File(folder, "replica-" + number);
      directory.mkdirs(); // a checkpoint is written beside the log
      replicas.add(new CompactedLog(directory, clock));
    }
  }

  private CompactedLog leader() {
    return replicas.get(leader - 1);
  }

  private CompactedLog replica(JsonNode command) {
    return replicas.get(command.get("replica").asInt() - 1);
  }

  private void dayPasses() {
    clock.sleep(DiskLog.EXPIRATION_MS);
    replicas.forEach(CompactedLog::removeExpiredProducers);
  }

  // ---- what is seen ------------------------------------------------------------------------

  /** Of each replica [batches, bases, end, watermark, abort index, last data offset, checkpoint]. */
  private String view() throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartArray();
      for (CompactedLog replica : replicas) {
        out.writeStartArray();
        Object log = replica.log();
        writeBatches(out, log);
        writeBases(out, log);
        out.writeNumber(DiskLog.endOffset(log));
        out.writeNumber(DiskLog.highWatermark(log));
        TransactionalLogs.writeAbortIndex(out, log);
        out.writeNumber(replica.lastDataOffset());
        out.writeNumber(replica.checkpoint());
        out.writeEndArray();
      }
      out.writeEndArray();
    }
    return text.toString();
  }

  /** [offset, kind, key, whether it is of the producer, delete horizon] each. */
  private void writeBatches(JsonGenerator out, Object log) throws IOException {
    out.writeStartArray();
    for (Object batch : (Iterable<Object>) DiskLog.batches(log)::iterator) {
      Iterator<?> records = ((Iterable<?>) batch).iterator();
      Object first = records.hasNext() ? records.next() : null;
      boolean isControl = (boolean) Kafka.call(batch, "isControlBatch");
      out.writeStartArray();
      out.writeNumber((long) Kafka.call(batch, "baseOffset"));
      out.writeString(isControl ? kindOfMarker(first) : kind(first));
      out.writeNumber(first == null || isControl ? 0 : key(first));
      out.writeBoolean((long) Kafka.call(batch, "producerId") == CompactedLog.PRODUCER);
      out.writeString(horizon((OptionalLong) Kafka.call(batch, "deleteHorizonMs")));
      out.writeEndArray();
    }
    out.writeEndArray();
  }

  private static String kindOfMarker(Object record) {
    return record == null
        ? "EmptyMarker"
        : TransactionRecords.kind(TransactionRecords.markerOf(record));
  }

  private static String kind(Object record) {
    if (record == null) {
      return "Empty";
    }
    return (boolean) Kafka.call(record, "hasValue") ? "value" : "tombstone";
  }

  private static int key(Object record) {
    return ((ByteBuffer) Kafka.call(record, "key")).get(0);
  }

  private String horizon(OptionalLong horizon) {
    if (horizon.isEmpty()) {
      return "none";
    }
    return horizon.getAsLong() <= clock.milliseconds() ? "due" : "set";
  }

  private static void writeBases(JsonGenerator out, Object log) throws IOException {
    out.writeStartArray();
    for (Object segment : Kafka.each(Kafka.call(log, "logSegments"))) {
      out.writeNumber((long) Kafka.call(segment, "baseOffset"));
    }
    out.writeEndArray();
  }
}
