package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.util.Arrays;
import java.util.List;

/** The commands of moves between log directories: one broker, and one partition on it. */
final class DirectoryMoves {
  static final String PREFIX = "directories_";

  private final ObjectMapper json = new ObjectMapper();
  private final DirectoryBroker broker;

  DirectoryMoves(File folder) {
    broker = new DirectoryBroker(new File(folder, "directories"));
  }

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException, InterruptedException {
    switch (name) {
      case "directories_reset" -> broker.reset(command.get("assigns").asBoolean());
      case "directories_alter" -> broker.alter(command.get("directory").asText());
      case "directories_become_leader" -> broker.elect(true);
      case "directories_become_follower" -> broker.elect(false);
      case "directories_append_as_leader" -> broker.append();
      case "directories_append_as_follower" -> broker.appendAsFollower(command.get("epoch").asInt());
      case "directories_truncate" -> broker.truncate(command.get("offset").asLong());
      case "directories_add_fetcher" -> broker.addFetcher();
      case "directories_mark" -> broker.markForTruncation();
      case "directories_truncate_to_high_watermark" -> broker.mover.truncateToHighWatermark();
      case "directories_send_epoch_request" -> broker.mover.sendEpochRequest();
      case "directories_send_fetch" -> broker.mover.sendFetch();
      case "directories_handle" -> broker.mover.handle();
      case "directories_process" -> broker.mover.process();
      case "directories_fail" -> broker.failDirectory(command.get("directory").asText());
      case "directories_restart" ->
          broker.restart(command.get("role").asText(), command.get("saved").asBoolean());
      case "directories_send_assignment" -> broker.assignments.send();
      case "directories_write_assignment" -> broker.assignments.write();
      case "directories_answer_assignment" -> broker.assignments.answer();
      case "directories_fail_assignment" -> broker.assignments.fail();
      case "directories_learn_assignment" -> broker.learnAssignment();
      case "directories_view" -> {
        return view();
      }
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    broker.remember();
    return "null";
  }

  /**
   * [role, leader epoch, directory, current, future or null, failed directories, fetch state, offset,
   * epoch, message, whether it is overtaken, unadded, unmarked, assignment].
   */
  private String view() throws IOException {
    Object partition = broker.partition();
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartArray();
      boolean leads = partition != null && (boolean) Kafka.call(partition, "isLeader");
      out.writeString(partition == null ? "offline" : leads ? "leader" : "follower");
      out.writeNumber(partition == null ? -1 : (int) Kafka.call(partition, "getLeaderEpoch"));
      out.writeString(broker.directory());
      copy(out, broker.current());
      copy(out, broker.future());
      out.writeStartArray();
      for (File each : broker.directories) {
        if (!broker.isOnline(each)) {
          out.writeString(each.getName());
        }
      }
      out.writeEndArray();
      fetch(out, broker.mover);
      message(out, broker.mover.message());
      out.writeBoolean(broker.mover.isOvertaken());
      out.writeNumber(broker.unadded());
      out.writeNumber(broker.unmarked());
      assignment(out, broker);
      out.writeEndArray();
    }
    return text.toString();
  }

  /** [assigned, promotion, [queued, whether it promotes], [sent, whether it promotes], written, unlearned]. */
  private static void assignment(JsonGenerator out, DirectoryBroker broker) throws IOException {
    DirectoryAssignments assignments = broker.assignments;
    out.writeStartArray();
    out.writeString(assignments.assigned());
    out.writeString(broker.mover.promotion());
    for (DirectoryAssignments.Request each : Arrays.asList(assignments.ready, assignments.inflight)) {
      out.writeStartArray();
      out.writeString(DirectoryAssignments.name(each));
      out.writeBoolean(assignments.promotes(each));
      out.writeEndArray();
    }
    out.writeBoolean(assignments.written);
    out.writeBoolean(assignments.unlearned);
    out.writeEndArray();
  }

  /** [records, high watermark, [epoch, start]]. */
  private static void copy(JsonGenerator out, DirectoryBroker.Copy copy) throws IOException {
    if (copy == null) {
      out.writeNull();
      return;
    }
    out.writeStartArray();
    View.integers(out, copy.records());
    out.writeNumber(copy.highWatermark());
    out.writeStartArray();
    for (List<Long> entry : copy.epochs()) {
      out.writeStartArray();
      out.writeNumber(entry.get(0));
      out.writeNumber(entry.get(1));
      out.writeEndArray();
    }
    out.writeEndArray();
    out.writeEndArray();
  }

  private static void fetch(JsonGenerator out, MoveThread mover) throws IOException {
    Object state = mover.state();
    if (state == null) {
      out.writeString(mover.hasFailed() ? "Failed" : "None");
      out.writeNumber(0);
      out.writeNumber(-1);
      return;
    }
    String name = Kafka.call(state, "state").toString();
    out.writeString(name.toUpperCase().contains("TRUNCATING") ? "Truncating" : "Fetching");
    out.writeNumber((long) Kafka.call(state, "fetchOffset"));
    out.writeNumber((int) Kafka.call(state, "currentLeaderEpoch"));
  }

  /** [type, leader epoch, fetch offset, last epoch, error, epoch, end offset, records, watermark]. */
  private static void message(JsonGenerator out, Trip.Message message) throws IOException {
    out.writeStartArray();
    out.writeString(message.type);
    out.writeNumber(message.currentLeaderEpoch);
    out.writeNumber(message.fetchOffset);
    out.writeNumber(message.lastEpoch);
    out.writeString(message.error);
    out.writeNumber(message.epoch);
    out.writeNumber(message.endOffset);
    View.integers(out, message.records);
    out.writeNumber(message.highWatermark);
    out.writeEndArray();
  }
}
