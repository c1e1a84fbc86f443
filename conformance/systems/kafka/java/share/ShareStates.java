package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;

/**
 * The commands of a ShareCoordinatorShard with one share partition. What it wants written is
 * committed at once: the harness has the log, and another shard loads it from its bytes.
 */
final class ShareStates {
  static final String PREFIX = "states_";
  private static final String MESSAGES = "org.apache.kafka.common.message.";
  private static final String GROUP = "group";
  private static final String TOPIC = "topic";
  private static final Uuid TOPIC_ID = new Uuid(1, 1);
  private static final long COLD_MS = TimeUnit.MINUTES.toMillis(6);
  private static final long NO_PRODUCER_ID = -1;
  private static final short NO_PRODUCER_EPOCH = -1;
  private static final int NONE = -1;

  /** A record of the log. */
  private record Bytes(byte[] key, byte[] value) {}

  private final ObjectMapper json = new ObjectMapper();
  private final Object serde =
      Kafka.make(Kafka.type("org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde"));
  private LoadedShard.OfShares maker;
  private final List<Bytes> log = new ArrayList<>();
  private int logStart;
  private Object shard;

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException {
    return switch (name) {
      case "states_view" -> view();
      case "states_reset" -> {
        reset(command.get("updates").asInt());
        yield "null";
      }
      case "states_initialize" ->
          answer("Initialize", fields(command, "stateEpoch", "startOffset"), this::initialize);
      case "states_read" ->
          readAnswer(
              asked(
                  "Read",
                  fields(command, "leaderEpoch"),
                  data -> Kafka.call(shard, "readStateAndMaybeUpdateLeaderEpoch", data)));
      case "states_write" ->
          answer(
              "Write",
              fields(command, "stateEpoch", "leaderEpoch", "startOffset", "deliveryCompleteCount", "stateBatches"),
              data -> Kafka.call(shard, "writeState", data));
      case "states_delete" ->
          answer("Delete", json.createObjectNode(), data -> Kafka.call(shard, "deleteState", data));
      case "states_snapshot_cold" -> {
        maker.clock.sleep(COLD_MS);
        committed(Kafka.call(shard, "snapshotColdPartitions"));
        yield "null";
      }
      case "states_fail_over" -> {
        failOver(command.get("pruned").asBoolean());
        yield "null";
      }
      default -> throw new IllegalArgumentException("no command is called " + name);
    };
  }

  private void reset(int updates) {
    maker =
        new LoadedShard.OfShares(
            Map.of("share.coordinator.snapshot.update.records.per.snapshot", updates));
    log.clear();
    logStart = 0;
    load();
  }

  // ---- requests ----------------------------------------------------------------------------

  private interface Operation {
    Object run(Object request);
  }

  private ObjectNode fields(JsonNode command, String... names) {
    ObjectNode fields = json.createObjectNode();
    for (String name : names) {
      fields.set(name, command.get(name));
    }
    return fields;
  }

  /** A request about the one share partition; its error's name. */
  private String answer(String api, ObjectNode fields, Operation operation) throws IOException {
    return json.writeValueAsString(error(asked(api, fields, operation)));
  }

  private static String error(JsonNode answered) {
    return Errors.forCode((short) answered.get("errorCode").asInt()).name();
  }

  /** The error, and the state as a leader is told it. */
  private String readAnswer(JsonNode answered) throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartArray();
      out.writeString(error(answered));
      out.writeNumber(answered.get("stateEpoch").asInt());
      out.writeNumber(answered.get("startOffset").asLong());
      out.writeStartArray();
      for (JsonNode batch : answered.get("stateBatches")) {
        out.writeStartArray();
        for (String name : List.of("firstOffset", "lastOffset", "deliveryState", "deliveryCount")) {
          out.writeNumber(batch.get(name).asLong());
        }
        out.writeEndArray();
      }
      out.writeEndArray();
      out.writeEndArray();
    }
    return text.toString();
  }

  /** A request about the one share partition, and what is answered about it. */
  private JsonNode asked(String api, ObjectNode fields, Operation operation) {
    ObjectNode request = json.createObjectNode().put("groupId", GROUP);
    ObjectNode topic = request.putArray("topics").addObject().put("topicId", TOPIC_ID.toString());
    topic.putArray("partitions").add(fields.put("partition", 0));
    Object result = operation.run(read(MESSAGES + api + "ShareGroupStateRequestData", request));
    committed(result);
    Object response = Kafka.call(result, "response");
    JsonNode answered = written(MESSAGES + api + "ShareGroupStateResponseData", response);
    return answered.get("results").get(0).get("partitions").get(0);
  }

  private static Object read(String type, JsonNode fields) {
    return Kafka.callStatic(Kafka.type(type + "JsonConverter"), "read", fields, version(type));
  }

  private static JsonNode written(String type, Object data) {
    return (JsonNode) Kafka.callStatic(Kafka.type(type + "JsonConverter"), "write", data, version(type));
  }

  private static short version(String type) {
    return (short) Kafka.getStatic(Kafka.type(type), "HIGHEST_SUPPORTED_VERSION");
  }

  /** The branch after 4.4 gives the shard one partition of the request. */
  private Object initialize(Object request) {
    Object topic = ((List<?>) Kafka.call(request, "topics")).get(0);
    Object partition = ((List<?>) Kafka.call(topic, "partitions")).get(0);
    return Kafka.wireCall(
        shard,
        "initializeState",
        type ->
            type == String.class
                ? GROUP
                : type == Uuid.class ? TOPIC_ID : Kafka.raw(type).isInstance(request) ? request : partition);
  }

  // ---- the log -----------------------------------------------------------------------------

  /** As CoordinatorRuntime does it: each record is replayed, and appended. */
  private void committed(Object result) {
    for (Object record : (List<?>) Kafka.call(result, "records")) {
      Kafka.call(shard, "replay", (long) log.size(), NO_PRODUCER_ID, NO_PRODUCER_EPOCH, record);
      log.add(
          new Bytes(
              (byte[]) Kafka.call(serde, "serializeKey", record),
              (byte[]) Kafka.call(serde, "serializeValue", record)));
    }
  }

  /** ShareCoordinatorService.performRecordPruning deletes what no load needs. */
  private void failOver(boolean pruned) {
    if (pruned) {
      Optional<?> offset = (Optional<?>) Kafka.call(Kafka.call(shard, "lastRedundantOffset"), "response");
      logStart = offset.map(Object::toString).map(Integer::parseInt).orElse(0);
    }
    load();
  }

  private void load() {
    shard = Kafka.call(maker.runtimeBuilder(), "build");
    for (int offset = logStart; offset < log.size(); offset++) {
      Bytes bytes = log.get(offset);
      ByteBuffer value = bytes.value == null ? null : ByteBuffer.wrap(bytes.value);
      Object record = Kafka.call(serde, "deserialize", ByteBuffer.wrap(bytes.key), value);
      Kafka.call(shard, "replay", (long) offset, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, record);
    }
    GroupTopics topics =
        new GroupTopics(List.of(new GroupTopics.Topic(TOPIC, TOPIC_ID, 0, 1)), MetadataImage.EMPTY);
    MetadataDelta delta = topics.reset();
    String update = Kafka.renamed(shard, "onNewMetadataImage", "onMetadataUpdate");
    for (String hears : List.of("onLoaded", update)) { // in 4.1 the first one says nothing of topics
      Kafka.wireCall(shard, hears, type -> topics.as(Kafka.raw(type), delta));
    }
  }

  // ---- what is seen ------------------------------------------------------------------------

  private Object only(String map) {
    return ((Map<?, ?>) Kafka.get(shard, map)).values().stream().findFirst().orElse(null);
  }

  private String view() throws IOException {
    StringWriter text = new StringWriter();
    Object state = only("shareStateMap");
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartArray();
      out.writeBoolean(state != null);
      for (String field : List.of("stateEpoch", "leaderEpoch", "startOffset", "deliveryCompleteCount")) {
        out.writeNumber(number(state, field));
      }
      out.writeStartArray();
      if (state != null) {
        for (Object batch : (List<?>) Kafka.call(state, "stateBatches")) {
          write(out, batch);
        }
      }
      out.writeEndArray();
      for (String map : List.of("leaderEpochMap", "stateEpochMap", "snapshotUpdateCount")) {
        Object number = only(map);
        out.writeNumber(number == null ? NONE : (int) number);
      }
      out.writeBoolean(
          state != null
              && number(state, "createTimestamp") != number(state, "writeTimestamp"));
      out.writeEndArray();
    }
    return text.toString();
  }

  private static long number(Object state, String field) {
    boolean isThere = state != null && Kafka.hasMethod(state, field);
    return isThere ? ((Number) Kafka.call(state, field)).longValue() : NONE;
  }

  private static void write(JsonGenerator out, Object batch) throws IOException {
    out.writeStartArray();
    out.writeNumber((long) Kafka.call(batch, "firstOffset"));
    out.writeNumber((long) Kafka.call(batch, "lastOffset"));
    out.writeNumber((byte) Kafka.call(batch, "deliveryState"));
    out.writeNumber((short) Kafka.call(batch, "deliveryCount"));
    out.writeEndArray();
  }
}
