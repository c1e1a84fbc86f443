package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.server.common.MetadataVersion;

/** The commands of transactions: coordinators of one id, and the partitions that it writes. */
final class Transactions {
  static final String PREFIX = "txn_";
  private static final long NO_TIME = -1;
  /** Dead, without an epoch: as `writeValue` and `writeMetadata` write what there is. */
  private static final String TOMBSTONE = "[6,-1,[],-1,-1]";
  private static final String FORGOTTEN = "[6,-1,[],-1,-1,-1,false]";

  private final ObjectMapper json = new ObjectMapper();
  private final File folder;
  private final List<TransactionBroker> brokers = new ArrayList<>();
  private final List<TransactionPartition> partitions = new ArrayList<>();
  private final List<TransactionBroker.Sent> sent = new ArrayList<>();
  /** What was written of each partition, until a command touches it. */
  private final Map<TransactionPartition, String> written = new HashMap<>();
  private String writtenTopic;
  private Virtual.Clock clock;
  private StateTopic topic;
  private Metadata leaders;
  private ProducerEpochs epochs;

  Transactions(File folder) {
    this.folder = folder;
  }

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException, InterruptedException {
    JsonNode now = command.get("now");
    if (now != null && clock != null) {
      clock.sleep(Virtual.Clock.START + now.asLong() - clock.milliseconds());
    }
    Object value = null;
    switch (name) {
      case "txn_reset" -> reset(command);
      case "txn_view" -> {
        return view();
      }
      default -> value = step(name, command);
    }
    return json.writeValueAsString(value);
  }

  private void reset(JsonNode command) throws IOException {
    for (TransactionBroker broker : brokers) {
      broker.end();
    }
    for (TransactionPartition partition : partitions) {
      partition.end();
    }
    if (topic != null) {
      topic.end();
    }
    YammerMetrics.clear();
    brokers.clear();
    partitions.clear();
    sent.clear();
    written.clear();
    writtenTopic = null;
    clock = new Virtual.Clock();
    topic = new StateTopic(new File(folder, "txn"), command.get("leader").asInt(), clock);
    int version = command.get("version").asInt();
    int count = command.get("partitions").asInt();
    int ofId = command.get("epochs_of_id").asInt();
    epochs = new ProducerEpochs(command.get("last_epoch").asInt(), ofId, topic::tombstones);
    Object cache = BrokerProcess.metadataCache(1);
    List<Integer> leading = IntStream.rangeClosed(1, count).boxed().toList();
    leaders = new Metadata(leading, MetadataVersion.latestProduction(), cache);
    for (int id = 1; id <= command.get("brokers").asInt(); id++) {
      brokers.add(new TransactionBroker(id, folder, topic, clock, version, epochs, cache));
    }
    boolean verifies = command.get("verifies").asBoolean();
    for (int id = 1; id <= count; id++) {
      partitions.add(new TransactionPartition(new File(folder, "txn-" + id), clock, verifies, epochs));
      lead(id, id);
    }
  }

  /** Each partition is led by a broker of its own, so that each marker is a request. */
  private void lead(int partition, int leader) {
    String name = TransactionBroker.topicPartition(partition).topic();
    leaders.publish(leaders.led(name, partition, leader));
  }

  private Object step(String name, JsonNode command) throws InterruptedException {
    if (command.has("metadata")) {
      int partition = command.get("metadata").asInt();
      lead(partition, name.equals("txn_stop_leader") ? Metadata.NO_LEADER : partition);
      return null;
    }
    if (command.has("broker")) {
      writtenTopic = null;
      return ofBroker(name, command);
    }
    return ofPartition(name, command);
  }

  // ---- coordinators ------------------------------------------------------------------------

  private Object ofBroker(String name, JsonNode command) throws InterruptedException {
    int id = command.get("broker").asInt();
    TransactionBroker broker = brokers.get(id - 1);
    switch (name) {
      case "txn_elect" -> broker.elect(command.get("tenure").asInt());
      case "txn_elect_state" ->
          topic.elect(id, command.get("tenure").asInt(), command.get("end").asLong());
      case "txn_load" -> broker.load(id);
      case "txn_begin" -> broker.begin(id);
      case "txn_replicate_state" -> topic.replicate(command.get("end").asLong());
      case "txn_init" -> broker.initProducerId(command.get("client").asText());
      case "txn_add" ->
          broker.addPartition(command.get("partition").asInt(), command.get("epoch").asInt());
      case "txn_verify" -> {
        return broker.verifyPartition(
            command.get("partition").asInt(), command.get("epoch").asInt());
      }
      case "txn_end" ->
          broker.endTransaction(
              command.get("txn").asInt(),
              command.get("epoch").asInt(),
              command.get("commits").asBoolean());
      case "txn_begin_fence" ->
          broker.beginFence(command.get("client").isNull() ? null : command.get("client").asText());
      case "txn_expire" -> broker.expireIds();
      case "txn_end_fence" -> broker.endFence();
      case "txn_acknowledge" -> topic.acknowledge(id, command.get("tenure").asInt());
      case "txn_fail" -> topic.fail(id);
      case "txn_complete" -> broker.complete();
      case "txn_send_markers" -> {
        return sendMarkers(broker);
      }
      case "txn_complete_marker" -> broker.completeMarker(sent.get(command.get("marker").asInt()));
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    return null;
  }

  /** [number, partition, epoch, coordinator epoch, commits, version, start] of each marker. */
  private List<Object> sendMarkers(TransactionBroker broker) {
    List<Object> markers = new ArrayList<>();
    for (TransactionBroker.Sent each : broker.generateRequests()) {
      sent.add(each);
      var marker = each.marker();
      Object version =
          Kafka.hasMethod(marker, "transactionVersion") // from 4.2 on
              ? Kafka.call(marker, "transactionVersion")
              : 0;
      markers.add(
          List.of(
              sent.size() - 1,
              each.partition(),
              epochs.number(marker.producerId(), marker.producerEpoch()),
              marker.coordinatorEpoch(),
              marker.transactionResult(),
              version,
              since(each.start())));
    }
    return markers;
  }

  // ---- partitions --------------------------------------------------------------------------

  private Object ofPartition(String name, JsonNode command) {
    TransactionPartition partition = partitions.get(command.get("partition").asInt() - 1);
    written.remove(partition);
    switch (name) {
      case "txn_start_verification" -> {
        return partition.startVerification(
            command.get("sequence").asInt(),
            command.get("epoch").asInt(),
            command.get("version").asInt() >= 2);
      }
      case "txn_append" ->
          partition.append(
              command.get("epoch").asInt(),
              command.get("sequence").asInt(),
              command.get("value").asText(),
              command.get("guard").asInt(),
              command.get("of_coordinator").asBoolean());
      case "txn_write_marker" ->
          partition.writeMarker(
              command.get("epoch").asInt(),
              command.get("coordinator_epoch").asInt(),
              command.get("commits").asBoolean(),
              Virtual.Clock.START + command.get("start").asLong(),
              command.get("version").asInt());
      case "txn_replicate" -> partition.replicate();
      case "txn_elect_leader" -> partition.elect(command.get("end").asLong());
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    return null;
  }

  // ---- what is seen ------------------------------------------------------------------------

  private static long since(long time) {
    return time < 0 ? NO_TIME : time - Virtual.Clock.START;
  }

  /** [[records, watermark], brokers, appends, partitions]. */
  private String view() throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartArray();
      if (writtenTopic == null) {
        writtenTopic = text(this::writeTopic);
      }
      out.writeRawValue(writtenTopic);
      out.writeStartArray();
      for (TransactionBroker broker : brokers) {
        writeBroker(out, broker);
      }
      out.writeEndArray();
      out.writeStartArray();
      for (StateTopic.Append append : topic.appends()) {
        out.writeStartArray();
        out.writeNumber(append.broker);
        out.writeNumber(append.tenure);
        out.writeNumber(append.offset);
        writeValue(out, append.value);
        out.writeEndArray();
      }
      out.writeEndArray();
      out.writeStartArray();
      for (TransactionPartition partition : partitions) {
        out.writeRawValue(
            written.computeIfAbsent(partition, key -> text(to -> writePartition(to, key))));
      }
      out.writeEndArray();
      out.writeEndArray();
    }
    return text.toString();
  }

  private interface Writing {
    void write(JsonGenerator out) throws IOException;
  }

  private String text(Writing writing) {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      writing.write(out);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return text.toString();
  }

  private void writeTopic(JsonGenerator out) throws IOException {
    out.writeStartArray();
    out.writeStartArray();
    for (Object value : topic.values()) {
      writeValue(out, value);
    }
    out.writeEndArray();
    out.writeNumber(topic.highWatermark());
    out.writeEndArray();
  }

  /** [state, epoch, partitions, start, last update], of a TransactionLogValue or a tombstone. */
  private void writeValue(JsonGenerator out, Object value) throws IOException {
    if (value == null) {
      out.writeRawValue(TOMBSTONE);
      return;
    }
    out.writeStartArray();
    out.writeNumber((byte) Kafka.call(value, "transactionStatus"));
    out.writeNumber(epochs.numberOf(value));
    out.writeStartArray();
    Object topics = Kafka.call(value, "transactionPartitions");
    if (topics != null) {
      for (Object each : (Collection<?>) topics) {
        out.writeNumber(TransactionBroker.partition((String) Kafka.call(each, "topic")));
      }
    }
    out.writeEndArray();
    out.writeNumber(since((long) Kafka.call(value, "transactionStartTimestampMs")));
    out.writeNumber(since((long) Kafka.call(value, "transactionLastUpdateTimestampMs")));
    out.writeEndArray();
  }

  /** [metadata or null, producer ids, ends]. */
  private void writeBroker(JsonGenerator out, TransactionBroker broker) throws IOException {
    out.writeStartArray();
    writeMetadata(out, broker);
    out.writeStartObject();
    for (Map.Entry<String, Integer> each : broker.producerIds.entrySet()) {
      out.writeNumberField(each.getKey(), each.getValue());
    }
    out.writeEndObject();
    out.writeStartArray();
    for (Map.Entry<Integer, TransactionBroker.End> each : broker.ends.entrySet()) {
      out.writeStartArray();
      out.writeNumber(each.getKey());
      out.writeString(each.getValue().error().name());
      out.writeNumber(each.getValue().epoch());
      out.writeEndArray();
    }
    out.writeEndArray();
    out.writeEndArray();
  }

  /** [state, epoch, partitions, start, last update, pending state or -1, whether it completes]. */
  private void writeMetadata(JsonGenerator out, TransactionBroker broker)
      throws IOException {
    Object metadata = broker.metadata();
    if (metadata == null) {
      out.writeRawValue(broker.serves() ? FORGOTTEN : "null");
      return;
    }
    out.writeStartArray();
    out.writeNumber((byte) Kafka.call(Kafka.call(metadata, "state"), "id"));
    out.writeNumber(epochs.numberOf(metadata));
    out.writeStartArray();
    for (Object each : Kafka.each(Kafka.call(metadata, "topicPartitions"))) {
      out.writeNumber(TransactionBroker.partition(((TopicPartition) each).topic()));
    }
    out.writeEndArray();
    out.writeNumber(since((long) Kafka.call(metadata, "txnStartTimestamp")));
    out.writeNumber(since((long) Kafka.call(metadata, "txnLastUpdateTimestamp")));
    out.writeNumber(TransactionBroker.pendingState(metadata));
    out.writeBoolean(broker.isCompleting());
    out.writeEndArray();
  }

  /** [batches, watermark, epoch of the verified entry, number of its guard]. */
  private static void writePartition(JsonGenerator out, TransactionPartition partition)
      throws IOException {
    out.writeStartArray();
    out.writeStartArray();
    for (TransactionPartition.Batch batch : partition.batches()) {
      out.writeStartArray();
      out.writeString(batch.kind());
      out.writeNumber(batch.epoch());
      out.writeNumber(batch.coordinatorEpoch());
      out.writeString(batch.value());
      out.writeNumber(since(batch.time()));
      out.writeNumber(batch.offset());
      out.writeEndArray();
    }
    out.writeEndArray();
    out.writeNumber(partition.highWatermark());
    int[] entry = partition.entry();
    out.writeNumber(entry[0]);
    out.writeNumber(entry[1]);
    out.writeEndArray();
  }
}
