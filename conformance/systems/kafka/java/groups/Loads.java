package kconform;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Loads of a log by GroupCoordinatorShard, as CoordinatorLoaderImpl does it: each record is
 * deserialised and replayed. A log is given once; a load names the records that it meets.
 */
final class Loads {
  static final String PREFIX = "load_";
  private static final String PACKAGE = "org.apache.kafka.coordinator.group.";
  private static final TopicPartition PARTITION = new TopicPartition("__consumer_offsets", 0);

  /** A record of the log; `commit` is that of a marker, null of any other record. */
  private record Entry(long offset, long producer, short epoch, byte[] key, byte[] value, Boolean commit) {}

  /** What a load came to. The index is that of the record that failed; -1: it loaded. */
  private record Outcome(int failed, String error, Object shard) {}

  private final ObjectMapper json = new ObjectMapper();
  private final Object serde = Kafka.make(Kafka.type(PACKAGE + "GroupCoordinatorRecordSerde"));
  private final Object config =
      Kafka.callStatic(Kafka.type(PACKAGE + "GroupCoordinatorConfig"), "fromProps", Map.of());
  private final Object groupConfigs = Kafka.wire(Kafka.type(PACKAGE + "GroupConfigManager"), this::groupConfig);
  private final Object metrics = Kafka.make(Kafka.type(PACKAGE + "metrics.GroupCoordinatorMetrics"));
  private final Object logContext = Kafka.make(Kafka.type("LogContext"), "");
  private List<Entry> log = List.of();

  /** A load asks for no group's configuration: all of it is the default. */
  private Object groupConfig(Type type) {
    Class<?> raw = Kafka.raw(type);
    return raw == Map.class ? Map.of() : raw.isInstance(config) ? config : Kafka.make(raw, defaults(raw));
  }

  private AbstractConfig defaults(Class<?> type) {
    ConfigDef all = new ConfigDef(); // releases before 4.0 have no Utils.mergeConfigs
    for (Class<?> each : List.of(config.getClass(), type)) {
      ((ConfigDef) Kafka.getStatic(each, "CONFIG_DEF")).configKeys().values().forEach(all::define);
    }
    return new AbstractConfig(all, Map.of(), false);
  }

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException {
    Object value = null;
    switch (name) {
      case "load_log" -> log = entries(command.get("records"));
      case "load_replay" -> value = replay(command.get("kept"));
      case "load_state" -> value = StateText.of(load(command.get("kept")).shard);
      case "load_write" -> value = written(command.get("records"));
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    return json.writeValueAsString(value);
  }

  private static List<Entry> entries(JsonNode records) throws IOException {
    List<Entry> entries = new ArrayList<>();
    for (JsonNode record : records) {
      JsonNode commit = record.get(5);
      entries.add(
          new Entry(
              record.get(0).asLong(),
              record.get(1).asLong(),
              (short) record.get(2).asInt(),
              record.get(3).binaryValue(),
              record.get(4).isNull() ? null : record.get(4).binaryValue(),
              commit.isNull() ? null : commit.asBoolean()));
    }
    return entries;
  }

  /** For each load [index of the record that failed or -1, why, digest of the state]. */
  private List<Object> replay(JsonNode loads) {
    List<Object> outcomes = new ArrayList<>();
    for (JsonNode kept : loads) {
      Outcome outcome = load(kept);
      String state = outcome.failed < 0 ? digest(StateText.of(outcome.shard)) : "";
      outcomes.add(List.of(outcome.failed, outcome.error, state));
    }
    return outcomes;
  }

  private Outcome load(JsonNode kept) {
    Object shard = shard();
    for (JsonNode index : kept) {
      try {
        replay(shard, log.get(index.asInt()));
      } catch (RuntimeException error) {
        return new Outcome(index.asInt(), error.toString(), shard);
      }
    }
    return new Outcome(-1, "", shard);
  }

  private void replay(Object shard, Entry entry) {
    if (entry.commit != null) {
      TransactionResult result = entry.commit ? TransactionResult.COMMIT : TransactionResult.ABORT;
      Kafka.call(shard, "replayEndTransactionMarker", entry.producer, entry.epoch, result);
      return;
    }
    Object record;
    try {
      ByteBuffer value = entry.value == null ? null : ByteBuffer.wrap(entry.value);
      record = Kafka.call(serde, "deserialize", ByteBuffer.wrap(entry.key), value);
    } catch (RuntimeException error) {
      if (error.getClass().getSimpleName().equals("UnknownRecordTypeException")) {
        return; // as the loader does: a warning, and the next record
      }
      throw error;
    }
    Kafka.call(shard, "replay", entry.offset, entry.producer, entry.epoch, record);
  }

  private Object shard() {
    Object builder = Kafka.make(Kafka.type(PACKAGE + "GroupCoordinatorShard$Builder"), config, groupConfigs);
    for (java.lang.reflect.Method method : builder.getClass().getMethods()) {
      if (method.getName().startsWith("with")) {
        Kafka.call(builder, method.getName(), part(Kafka.raw(method.getGenericParameterTypes()[0])));
      }
    }
    return Kafka.call(builder, "build");
  }

  private Object part(Class<?> type) {
    if (type == Time.class) {
      return new Virtual.Clock();
    }
    if (type == SnapshotRegistry.class) {
      return Kafka.make(type, logContext);
    }
    if (type == TopicPartition.class) {
      return PARTITION;
    }
    if (type == Optional.class) {
      return Optional.empty();
    }
    return switch (type.getSimpleName()) {
      case "LogContext" -> logContext;
      case "CoordinatorMetrics" -> metrics;
      default -> Kafka.play(type, (proxy, method, arguments) -> null);
    };
  }

  private static String digest(String text) {
    try {
      byte[] sum = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(sum, 0, 16);
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error);
    }
  }

  // ---- writing -----------------------------------------------------------------------------

  /** Keys and values of records that are given as JSON, by Kafka's own serialisers. */
  private static List<byte[][]> written(JsonNode records) {
    List<byte[][]> all = new ArrayList<>();
    for (JsonNode record : records) {
      String type = record.get("type").asText();
      JsonNode value = record.get("value");
      all.add(
          new byte[][] {
            bytes(type + "Key", record.get("key"), record.get("number").asInt(), 0),
            value.isNull()
                ? null
                : bytes(type + "Value", value, record.get("version").asInt(), record.get("version").asInt())
          });
    }
    return all;
  }

  private static byte[] bytes(String name, JsonNode content, int prefix, int version) {
    Class<?> converter = Kafka.type(PACKAGE + "generated." + name + "JsonConverter");
    Message message = (Message) Kafka.callStatic(converter, "read", content, (short) version);
    return MessageUtil.toVersionPrefixedBytes((short) prefix, message);
  }
}
