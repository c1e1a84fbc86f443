package kconform;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/** Loads of a coordinator's log. A log is given once; a load names the records that it meets. */
final class Loads {
  static final String PREFIX = "load_";
  private static final List<String> PACKAGES = List.of("group", "share", "transaction");

  /** A record of the log; `commit` is that of a marker, null of any other record. */
  record Entry(long offset, long producer, short epoch, byte[] key, byte[] value, Boolean commit) {
    ByteBuffer valueBuffer() {
      return value == null ? null : ByteBuffer.wrap(value);
    }
  }

  /** What a load came to. The index is that of the record that failed; -1: it loaded. */
  private record Outcome(int failed, String error, LogReader reader) {}

  private final ObjectMapper json = new ObjectMapper();
  private final Map<String, Supplier<LogReader>> readers = new HashMap<>();
  private List<Entry> log = List.of();
  private Supplier<LogReader> reader;

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException {
    Object value = null;
    switch (name) {
      case "load_log" -> {
        log = entries(command.get("records"));
        reader = readers.computeIfAbsent(command.get("topic").asText(), Loads::readers);
      }
      case "load_replay" -> value = replay(command.get("kept"));
      case "load_state" -> value = load(command.get("kept")).reader.text();
      case "load_write" -> value = written(command.get("records"));
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    return json.writeValueAsString(value);
  }

  private static Supplier<LogReader> readers(String topic) {
    return switch (topic) {
      case "__transaction_state" -> LoadedTransactions::new;
      case "__share_group_state" -> new LoadedShard.OfShares()::make;
      default -> new LoadedShard.OfGroups()::make;
    };
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
      String state = outcome.failed < 0 ? digest(outcome.reader.text()) : "";
      outcomes.add(List.of(outcome.failed, outcome.error, state));
    }
    return outcomes;
  }

  private Outcome load(JsonNode kept) {
    LogReader read = reader.get();
    for (JsonNode index : kept) {
      try {
        read.read(log.get(index.asInt()));
      } catch (RuntimeException error) {
        return new Outcome(index.asInt(), error.toString(), read);
      }
    }
    return new Outcome(-1, "", read);
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
    Class<?> converter =
        PACKAGES.stream()
            .map(each -> "org.apache.kafka.coordinator." + each + ".generated." + name + "JsonConverter")
            .filter(Kafka::exists)
            .findFirst()
            .map(Kafka::type)
            .orElseThrow(() -> new Kafka.Unsupported("no coordinator has records " + name));
    Message message = (Message) Kafka.callStatic(converter, "read", content, (short) version);
    return MessageUtil.toVersionPrefixedBytes((short) prefix, message);
  }
}
