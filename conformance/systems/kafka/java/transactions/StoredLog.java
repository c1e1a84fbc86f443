package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import org.apache.kafka.common.utils.Time;

/** A log on its disk: it rolls and truncates, its process stops or dies, the next one loads it. */
final class StoredLog {
  private static final String SNAPSHOT = ".snapshot";
  private static final String ABORT_INDEX = ".txnindex";
  private static final String DATA = "data";
  private static final long NO_OFFSET = -1;
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Object log;
  private final File directory;
  private final Time clock;

  StoredLog(Object log, File directory, Time clock) {
    this.log = log;
    this.directory = directory;
    this.clock = clock;
  }

  /** Runs a command; the log as the process has it that goes on. */
  Object run(String name, JsonNode command, TransactionalLogs partition) throws IOException {
    return switch (name) {
      case "log_roll" -> roll();
      case "log_truncate" -> truncate(command.get("end").asLong());
      case "log_stop" -> stop(watermark(command));
      case "log_kill" -> kill(watermark(command));
      case "log_kill_amid_append" ->
          killAmidAppend(
              command.get("producer").asInt(), text(command, "kind"), watermark(command), partition);
      case "log_kill_amid_truncation" ->
          killAmidTruncation(
              command.get("target").asLong(), command.get("end").asLong(), watermark(command));
      default -> throw new IllegalArgumentException("no command is called " + name);
    };
  }

  private static long watermark(JsonNode command) {
    return command.get("watermark").asLong();
  }

  private static String text(JsonNode command, String member) {
    return command.get(member).asText();
  }

  private Object roll() {
    Kafka.wireCall(log, "roll", type -> Optional.empty());
    return log;
  }

  /** The replica hears of the high watermark with its next fetch. */
  private Object truncate(long end) {
    long watermark = DiskLog.highWatermark(log);
    Kafka.call(log, "truncateTo", end);
    Kafka.call(log, "updateHighWatermark", watermark);
    return log;
  }

  /** What LogManager.shutdown calls of each log, and the next start. */
  private Object stop(long watermark) {
    String trim = "prepareActiveSegmentForClose"; // from 4.4 on; before, it was a part of `close`
    if (Kafka.hasMethod(log, trim)) {
      Kafka.call(log, trim);
    }
    Kafka.call(log, "flush", true);
    Kafka.call(log, "close");
    return started(DiskLog.load(directory, clock, true, false), watermark);
  }

  private Object kill(long watermark) {
    long recoveryPoint = Kafka.number(Kafka.call(log, "recoveryPoint"));
    DiskLog.closeFiles(log);
    return recovered(recoveryPoint, watermark);
  }

  private Object recovered(long recoveryPoint, long watermark) {
    return started(DiskLog.recovered(directory, clock, recoveryPoint), watermark);
  }

  private static Object started(Object loaded, long watermark) {
    Kafka.call(loaded, "updateHighWatermark", watermark);
    return loaded;
  }

  /** The segment has the record; the abort index is as it was. */
  private Object killAmidAppend(
      int producer, String kind, long watermark, TransactionalLogs partition) throws IOException {
    Map<Path, byte[]> before = filesOf(ABORT_INDEX);
    if (kind.equals(DATA)) {
      partition.appendData(producer);
    } else {
      partition.appendMarker(producer, kind);
    }
    long recoveryPoint = Kafka.number(Kafka.call(log, "recoveryPoint"));
    DiskLog.closeFiles(log);
    putBack(ABORT_INDEX, before);
    return recovered(recoveryPoint, watermark);
  }

  /** Segments behind the target are removed, the last one is cut or not; snapshots are not. */
  private Object killAmidTruncation(long target, long end, long watermark) throws IOException {
    Map<Path, byte[]> before = filesOf(SNAPSHOT);
    long recoveryPoint = Kafka.number(Kafka.call(log, "recoveryPoint"));
    Kafka.call(log, "truncateTo", end);
    DiskLog.closeFiles(log);
    putBack(SNAPSHOT, before);
    for (File file : directory.listFiles()) {
      boolean isOfSegment = Character.isDigit(file.getName().charAt(0));
      if (isOfSegment && !file.getName().endsWith(SNAPSHOT) && offsetOf(file) > target) {
        Files.delete(file.toPath());
      }
    }
    return recovered(recoveryPoint, watermark);
  }

  private static long offsetOf(File file) {
    return Long.parseLong(file.getName().substring(0, file.getName().indexOf('.')));
  }

  private Map<Path, byte[]> filesOf(String suffix) throws IOException {
    Map<Path, byte[]> files = new TreeMap<>();
    for (File file : directory.listFiles((folder, name) -> name.endsWith(suffix))) {
      files.put(file.toPath(), Files.readAllBytes(file.toPath()));
    }
    return files;
  }

  private void putBack(String suffix, Map<Path, byte[]> before) throws IOException {
    for (Path path : filesOf(suffix).keySet()) {
      Files.delete(path);
    }
    for (Map.Entry<Path, byte[]> file : before.entrySet()) {
      Files.write(file.getKey(), file.getValue());
    }
  }

  // ---- what is seen ------------------------------------------------------------------------

  /** Base offsets, and of each snapshot: [offset, [[producer, first offset of what is open], ...]]. */
  String view() throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = JSON.getFactory().createGenerator(text)) {
      out.writeStartArray();
      out.writeStartArray();
      for (Object segment : Kafka.each(Kafka.call(log, "logSegments"))) {
        out.writeNumber((long) Kafka.call(segment, "baseOffset"));
      }
      out.writeEndArray();
      writeSnapshots(out);
      out.writeEndArray();
    }
    return text.toString();
  }

  private void writeSnapshots(JsonGenerator out) throws IOException {
    Object manager = Kafka.call(log, "producerStateManager");
    out.writeStartArray();
    for (Map.Entry<?, ?> taken : Kafka.map(Kafka.get(manager, "snapshots")).entrySet()) {
      Object file = Kafka.call(taken.getValue(), "file");
      out.writeStartArray();
      out.writeNumber((Long) taken.getKey());
      out.writeStartArray();
      for (Object entry : (Iterable<?>) Kafka.callStatic(manager.getClass(), "readSnapshot", file)) {
        OptionalLong open = (OptionalLong) Kafka.call(entry, "currentTxnFirstOffset");
        long[] known = {(long) Kafka.call(entry, "producerId"), open.orElse(NO_OFFSET)};
        out.writeArray(known, 0, known.length);
      }
      out.writeEndArray();
      out.writeEndArray();
    }
    out.writeEndArray();
  }
}
