package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.util.List;

/** The commands of a log on its disk, and of the work in the background around it. */
final class StorageEvents {
  static final String PREFIX = "storage_";
  private static final String NONE = "NONE";

  private final ObjectMapper json = new ObjectMapper();
  private final File folder;
  private StorageBroker broker;
  private List<Integer> settings;
  private String answer = NONE;

  StorageEvents(File folder) {
    this.folder = new File(folder, "storage");
  }

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws Exception {
    if (name.equals("storage_view")) {
      return view();
    }
    answer = NONE;
    if (name.equals("storage_reset")) {
      reset(command);
    } else {
      step(name, command);
    }
    if (broker.isUp()) {
      broker.files.watch(broker.log(), false);
    }
    return "null";
  }

  private void step(String name, JsonNode command) throws Exception {
    switch (name) {
      case "storage_elect" -> broker.elect(leads(command));
      case "storage_append_as_leader" -> broker.appendAsLeader(broker.batch());
      case "storage_append_as_follower" ->
          broker.appendAsFollower(
              command.get("epoch").asInt(), command.get("commits").asBoolean());
      case "storage_learn_log_start" ->
          broker.process(null, DiskLog.highWatermark(broker.log()), offset(command));
      case "storage_truncate" -> broker.truncate(offset(command));
      case "storage_start_anew" -> broker.startAnew(offset(command));
      case "storage_delete_records" -> broker.deleteRecords(offset(command));
      case "storage_time_passes" -> broker.passTime();
      case "storage_retain" -> broker.ofLogManager("cleanupLogs");
      case "storage_flush" -> broker.ofLogManager("flushDirtyLogs");
      case "storage_checkpoint_recovery_point" ->
          broker.ofLogManager("checkpointLogRecoveryOffsets");
      case "storage_checkpoint_log_start" -> broker.ofLogManager("checkpointLogStartOffsets");
      case "storage_checkpoint_high_watermark" -> broker.checkpointHighWatermarks();
      case "storage_run_task" -> broker.runTask(command.get("number").asInt());
      case "storage_shutdown" -> broker.shutDown(false);
      case "storage_failing_shutdown" -> broker.shutDown(true);
      case "storage_kill" -> broker.kill();
      case "storage_lose_power" ->
          broker.losePower(
              command.get("number").asInt(),
              command.get("kept").asInt(),
              command.get("torn").asBoolean());
      case "storage_start" -> broker.start(leads(command));
      case "storage_fail_to_load" -> broker.failToLoad();
      case "storage_refuse" ->
          answer = new DishonestMessages(broker).refusal(command.get("message").asText());
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
  }

  private static boolean leads(JsonNode command) {
    return command.get("role").asText().equals("leader");
  }

  private static long offset(JsonNode command) {
    return command.get("offset").asLong();
  }

  private void reset(JsonNode command) throws Exception {
    YammerMetrics.clear();
    int segment = command.get("segment").asInt();
    int retained = command.get("retained").asInt();
    if (broker != null && !settings.equals(List.of(segment, retained))) {
      broker.end();
      broker = null;
    }
    if (broker == null) {
      broker = new StorageBroker(folder, segment, retained);
      settings = List.of(segment, retained);
    }
    broker.reset();
  }

  // ---- what is seen --------------------------------------------------------------------------

  /** What the objects have, where there is a process; what lies on the disk; the last answer. */
  private String view() throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartArray();
      if (broker.isUp()) {
        writeProcess(out, broker.log());
      } else {
        out.writeNull();
      }
      writeDisk(out, broker.files);
      out.writeString(answer);
      out.writeEndArray();
    }
    return text.toString();
  }

  /** [leads, leader epoch, log start, high watermark, recovery point, epoch cache, tasks]. */
  private void writeProcess(JsonGenerator out, Object log) throws IOException {
    out.writeStartArray();
    out.writeBoolean(broker.leads());
    out.writeNumber(broker.leaderEpoch());
    out.writeNumber((long) Kafka.call(log, "logStartOffset"));
    out.writeNumber(DiskLog.highWatermark(log));
    out.writeNumber((long) Kafka.call(log, "recoveryPoint"));
    View.epochs(out, log);
    out.writeStartArray();
    for (String task : broker.tasks()) {
      out.writeString(task);
    }
    out.writeEndArray();
    out.writeEndArray();
  }

  /** [segments, deleted, epochs, recovery point, log start, high watermark, clean shutdown]. */
  private static void writeDisk(JsonGenerator out, LogDirectory files) throws IOException {
    out.writeStartArray();
    out.writeStartArray();
    for (LogDirectory.Segment segment : files.segments()) {
      out.writeStartArray();
      out.writeNumber(segment.base());
      View.integers(out, segment.records());
      out.writeNumber(segment.durable());
      out.writeBoolean(segment.torn());
      out.writeEndArray();
    }
    out.writeEndArray();
    View.integers(out, files.deleted());
    out.writeStartArray();
    for (LogDirectory.EpochEntry entry : files.epochFile()) {
      out.writeStartArray();
      out.writeNumber(entry.epoch());
      out.writeNumber(entry.start());
      out.writeEndArray();
    }
    out.writeEndArray();
    out.writeNumber(files.checkpoint(LogDirectory.RECOVERY_POINT));
    out.writeNumber(files.checkpoint(LogDirectory.LOG_START_OFFSET));
    out.writeNumber(files.checkpoint(LogDirectory.HIGH_WATERMARK));
    out.writeBoolean(files.isMarked());
    out.writeEndArray();
  }
}
