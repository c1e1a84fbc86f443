package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;

/** The commands of idempotent produce: a partition's replicas, and a producer. */
final class Produces {
  static final String PREFIX = "produce_";
  private static final long NO_OFFSET = -1;

  /** A batch, whenever it was sent: copies of it are the same. */
  private record BatchId(int epoch, int sequence) {}

  /** What the leader answered. */
  private record Answer(Errors error, long offset) {}

  private final ObjectMapper json = new ObjectMapper();
  private final File folder;
  private final List<ProducerLog> logs = new ArrayList<>();
  private final List<ProducerClient.Sent> sent = new ArrayList<>();
  private final Map<BatchId, Answer> answers = new LinkedHashMap<>();
  /** What was written of each replica, until a command touches it. */
  private final Map<ProducerLog, String> written = new HashMap<>();
  private ProducerClient client;
  private int leader;
  private int epoch;

  Produces(File folder) {
    this.folder = folder;
  }

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException {
    switch (name) {
      case "produce_reset" -> reset(command.get("brokers").asInt(), command.get("leader").asInt());
      case "produce_send" -> sent.add(client.send(command.get("size").asInt()));
      case "produce_append" -> append(command.get("epoch").asInt(), command.get("value").asInt());
      case "produce_acknowledge" ->
          acknowledge(command.get("value").asInt(), command.get("arrives").asBoolean());
      case "produce_bump" -> bump(command.get("value").asInt());
      case "produce_elect" -> elect(command.get("broker").asInt());
      case "produce_fetch" -> of(command).fetchFrom(led(), epoch);
      case "produce_truncate" -> of(command).truncateTo(led());
      case "produce_restart" -> of(command).restart(command.get("clean").asBoolean());
      case "produce_expire" -> of(command).expire();
      case "produce_view" -> {
        return view();
      }
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    return "null";
  }

  /** The replica that the command changes. */
  private ProducerLog of(JsonNode command) {
    return changing(command.get("broker").asInt());
  }

  private ProducerLog led() {
    return changing(leader);
  }

  private ProducerLog changing(int broker) {
    ProducerLog log = logs.get(broker - 1);
    written.remove(log);
    return log;
  }

  /** Empty logs, and a producer that has sent nothing. */
  private void reset(int count, int first) throws IOException {
    for (ProducerLog log : logs) {
      log.end();
    }
    YammerMetrics.clear();
    logs.clear();
    written.clear();
    for (int id = 1; id <= count; id++) {
      logs.add(new ProducerLog(new File(folder, "produce-" + id)));
    }
    client = new ProducerClient();
    sent.clear();
    answers.clear();
    leader = first;
    epoch = 0;
  }

  // ---- the client --------------------------------------------------------------------------

  private BatchId inFlight(int value) {
    return client.inFlight().stream()
        .filter(batch -> batch.value() == value)
        .findFirst()
        .map(Produces::id)
        .orElseThrow(() -> new Broker.Refused("the client does not wait for batch " + value));
  }

  private static BatchId id(ProducerClient.Numbered batch) {
    return new BatchId(batch.epoch(), batch.sequence());
  }

  private void acknowledge(int value, boolean arrives) {
    BatchId batch = inFlight(value);
    Answer answer = answers.get(batch);
    long watermark = logs.get(leader - 1).highWatermark();
    if (answer == null || answer.error != Errors.NONE || answer.offset >= watermark) {
      throw new Broker.Refused("batch " + value + " is not acknowledged: " + answer);
    }
    answers.remove(batch);
    if (arrives) {
      client.complete(value, answer.offset);
    }
  }

  private void bump(int value) {
    Answer answer = answers.get(inFlight(value));
    if (answer == null) {
      throw new Broker.Refused("batch " + value + " is not answered");
    }
    sent.addAll(client.bump(value, answer.error));
    answers.clear();
  }

  // ---- the partition -----------------------------------------------------------------------

  private void append(int producerEpoch, int value) {
    ProducerClient.Sent batch =
        sent.stream()
            .filter(each -> each.as().epoch() == producerEpoch && each.as().value() == value)
            .findFirst()
            .orElseThrow(() -> new Broker.Refused("batch " + value + " was not sent"));
    answers.put(id(batch.as()), answered(batch.records()));
    if (logs.size() == 1) {
      led().advance(led().endOffset());
    }
  }

  /** The leader writes offsets into what it appends: it gets a copy of its own. */
  private Answer answered(ByteBuffer records) {
    ByteBuffer copy = ByteBuffer.allocate(records.remaining()).put(records.duplicate()).flip();
    Object own = Kafka.callStatic(Kafka.type("MemoryRecords"), "readableRecords", copy);
    try {
      return new Answer(Errors.NONE, led().appendAsLeader(own, epoch));
    } catch (ApiException error) {
      return new Answer(Errors.forException(error), NO_OFFSET);
    }
  }

  private void elect(int broker) {
    leader = broker;
    epoch++;
    answers.clear();
  }

  // ---- what is seen ------------------------------------------------------------------------

  /** [leader, epoch, answers, client, brokers]. */
  private String view() throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartArray();
      out.writeNumber(leader);
      out.writeNumber(epoch);
      out.writeStartArray();
      for (Map.Entry<BatchId, Answer> each : answers.entrySet()) {
        out.writeStartArray();
        out.writeNumber(each.getKey().epoch);
        out.writeNumber(each.getKey().sequence);
        out.writeString(each.getValue().error.name());
        out.writeNumber(each.getValue().offset);
        out.writeEndArray();
      }
      out.writeEndArray();
      writeClient(out);
      out.writeStartArray();
      for (ProducerLog log : logs) {
        out.writeRawValue(written.computeIfAbsent(log, this::view));
      }
      out.writeEndArray();
      out.writeEndArray();
    }
    return text.toString();
  }

  private void writeClient(JsonGenerator out) throws IOException {
    out.writeStartArray();
    out.writeNumber(client.epoch());
    out.writeNumber(client.nextSequence());
    out.writeNumber(client.lastAckedSequence());
    out.writeStartArray();
    for (ProducerClient.Numbered batch : client.inFlight()) {
      numbers(out, batch.epoch(), batch.sequence(), batch.size(), batch.value());
    }
    out.writeEndArray();
    out.writeNumber(client.values());
    out.writeEndArray();
  }

  private String view(ProducerLog log) {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      write(out, log);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return text.toString();
  }

  /** [batches, watermark, entry in memory, snapshots]. */
  private static void write(JsonGenerator out, ProducerLog log) throws IOException {
    out.writeStartArray();
    out.writeStartArray();
    for (ProducerLog.Batch batch : log.batches()) {
      numbers(
          out,
          batch.epoch(),
          batch.sequence(),
          batch.size(),
          batch.value(),
          batch.offset(),
          batch.leaderEpoch());
    }
    out.writeEndArray();
    out.writeNumber(log.highWatermark());
    writeEntry(out, log.producers());
    out.writeStartArray();
    for (Map.Entry<Long, Collection<?>> snapshot : log.snapshots().entrySet()) {
      out.writeStartArray();
      out.writeNumber(snapshot.getKey());
      writeEntry(out, snapshot.getValue());
      out.writeEndArray();
    }
    out.writeEndArray();
    out.writeEndArray();
  }

  /** The producer's entry, or null: [epoch, batches]. There is no other producer. */
  private static void writeEntry(JsonGenerator out, Collection<?> entries) throws IOException {
    if (entries.isEmpty()) {
      out.writeNull();
      return;
    }
    Object entry = entries.iterator().next();
    out.writeStartArray();
    out.writeNumber((short) Kafka.call(entry, "producerEpoch"));
    out.writeStartArray();
    for (Object batch : Kafka.each(Kafka.call(entry, "batchMetadata"))) {
      numbers(
          out,
          Kafka.integer(Kafka.call(batch, "firstSeq")),
          Kafka.integer(Kafka.get(batch, "lastSeq")),
          Kafka.number(Kafka.call(batch, "firstOffset")));
    }
    out.writeEndArray();
    out.writeEndArray();
  }

  private static void numbers(JsonGenerator out, long... numbers) throws IOException {
    out.writeArray(numbers, 0, numbers.length);
  }
}
