package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.errors.TimeoutException;

/** The commands of coordinator runtimes: brokers that may lead one partition of an internal topic. */
final class Runtimes {
  static final String PREFIX = "runtime_";
  private static final int NOBODY = 0;

  private final ObjectMapper json = new ObjectMapper();
  private final LoadedLog log;
  private final CoordinatorElections elections;
  private final Map<Integer, RuntimeBroker> brokers = new LinkedHashMap<>();
  private final List<CompletableFuture<?>> answers = new ArrayList<>();
  private CoordinatedGroup group;
  private Virtual.Clock clock;
  private int leader;
  private int epoch;
  private boolean deleted;

  Runtimes(File folder) {
    log = new LoadedLog(new File(folder, "runtimes"));
    elections = new CoordinatorElections(log.topic().process.config());
  }

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException {
    switch (name) {
      case "runtime_reset" -> reset(command);
      case "runtime_write" -> write(command);
      case "runtime_complete_transaction" -> complete(command);
      case "runtime_flush" -> of(command).flush(command.get("result").asText());
      case "runtime_time_out" -> timeOut(command.get("write").asInt());
      case "runtime_advance" -> of(command).partition.advance(command.get("offset").asLong());
      case "runtime_replicate" -> of(command).partition.fetchFrom(brokers.get(leader).partition);
      case "runtime_apply_watermark" -> of(command).applyWatermark();
      case "runtime_elect" -> elect(command.get("broker").asInt());
      case "runtime_delete" -> delete();
      case "runtime_run_role" -> of(command).runRole();
      case "runtime_read_log" -> of(command).readLog(command.get("epoch").asInt());
      case "runtime_complete_load" -> of(command).completeLoad(command.get("epoch").asInt());
      case "runtime_fire" -> of(command).fire(command.get("key").asText());
      case "runtime_run_timeout" -> runTimeout(of(command), command);
      case "runtime_run_late_timeout" -> of(command).runLateTimeout(command.get("key").asText());
      case "runtime_run_task" -> of(command).runTasks();
      case "runtime_complete_task" -> completeTask(of(command), command);
      case "runtime_complete_late_task" -> of(command).completeLateTask();
      case "runtime_view" -> {
        return view();
      }
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    return "null";
  }

  private RuntimeBroker of(JsonNode command) {
    return brokers.get(command.get("broker").asInt());
  }

  /** Empty logs that nobody leads. */
  private void reset(JsonNode command) {
    int maxBatch = command.get("max_batch").asInt();
    log.kind = kind(command.path("shards").asText());
    clock = new Virtual.Clock();
    leader = NOBODY;
    epoch = 0;
    deleted = false;
    answers.clear();
    brokers.clear();
    elections.reset();
    Object config = config(maxBatch);
    for (int id = 1; id <= command.get("brokers").asInt(); id++) {
      LedPartition partition = new LedPartition(config, log.kind);
      brokers.put(id, new RuntimeBroker(partition, log, maxBatch, clock));
    }
  }

  private Object config(int maxBatch) {
    Object config = Kafka.call(log.topic().log(), "config");
    Map<Object, Object> values = new HashMap<>((Map<?, ?>) Kafka.call(config, "originals"));
    values.put("max.message.bytes", String.valueOf(log.kind.batchBytes(maxBatch)));
    return Kafka.make(config.getClass(), values);
  }

  private ShardKind kind(String shards) {
    if (!shards.equals("groups")) {
      return shards.equals("transactions")
          ? new TransactionalStoreShard.Kind()
          : new StoreShard.Kind(shards.equals("sessions"));
    }
    if (group == null) {
      group = new CoordinatedGroup(log.topic().process);
    }
    return group;
  }

  /** In a transaction if there is a `producer`. */
  private void write(JsonNode command) {
    long producer = command.path("producer").asLong(NOBODY);
    String result = command.get("result").asText();
    clock.sleep(1);
    answers.add(of(command).write(producer, command.get("kind"), answers.size() + 1, result));
  }

  private void complete(JsonNode command) {
    long producer = command.get("producer").asLong();
    String end = command.get("end").asText();
    clock.sleep(1);
    answers.add(of(command).complete(producer, end, answers.size() + 1, command.get("result").asText()));
  }

  private void runTimeout(RuntimeBroker broker, JsonNode command) {
    clock.sleep(1);
    int number = answers.size() + 1;
    answers.add(broker.runTimeout(command.get("key").asText(), number, command.get("result").asText()));
  }

  private void completeTask(RuntimeBroker broker, JsonNode command) {
    clock.sleep(1);
    answers.add(broker.completeTask(answers.size() + 1, command.get("result").asText()));
  }

  private void timeOut(int write) {
    if (brokers.values().stream().noneMatch(broker -> broker.timeOut(write))) {
      throw new Broker.Refused("write " + write + " has no time-out");
    }
  }

  /** The other brokers learn that they follow; who led and who leads hear it of the metadata. */
  private void elect(int elected) {
    epoch++;
    Map<Integer, RuntimeBroker> whoHear = new LinkedHashMap<>();
    brokers.forEach(
        (id, broker) -> {
          if (id == elected) {
            broker.partition.lead(epoch);
          } else {
            broker.partition.follow();
          }
          if (id == elected || id == leader) {
            whoHear.put(id, broker);
          }
        });
    leader = elected;
    elections.elect(elected, epoch, brokers.size(), whoHear);
  }

  private void delete() {
    deleted = true;
    brokers.values().forEach(broker -> broker.partition.delete());
    elections.delete(Map.of(leader, brokers.get(leader)));
  }

  /** [leader, epoch, deleted, answers, brokers]. */
  private String view() throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartArray();
      out.writeNumber(leader);
      out.writeNumber(epoch);
      out.writeBoolean(deleted);
      out.writeStartArray();
      for (CompletableFuture<?> answer : answers) {
        out.writeString(answer(answer));
      }
      out.writeEndArray();
      out.writeStartArray();
      for (RuntimeBroker broker : brokers.values()) {
        broker.view(out);
      }
      out.writeEndArray();
      out.writeEndArray();
    }
    return text.toString();
  }

  private static String answer(CompletableFuture<?> future) {
    if (!future.isDone()) {
      return "none";
    }
    if (!future.isCompletedExceptionally()) {
      return "ok";
    }
    Throwable error = future.handle((value, thrown) -> thrown).join();
    return error instanceof TimeoutException ? "timeout" : "error";
  }
}
