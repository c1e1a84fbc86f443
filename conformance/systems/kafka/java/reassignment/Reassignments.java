package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * The commands of a leader whose replicas leave and whose brokers stop: one partition, led by one
 * broker throughout. The controller and the followers are the harness's.
 */
final class Reassignments {
  static final String PREFIX = "reassignment_";
  private static final short FETCH_VERSION = 15; // with the broker epoch (KIP-903)
  private static final int MAX_BYTES = 1 << 20;
  private static final long NO_OFFSET = -1;

  private final ObjectMapper json = new ObjectMapper();
  private final File folder;
  private BrokerProcess.Host host;
  private List<Integer> brokers;
  private BrokerProcess process;
  private MetadataDelta delta; // published, and not applied
  private MetadataImage image;
  private Object proposed;
  private CompletableFuture<Object> change;

  Reassignments(File folder) {
    this.folder = new File(folder, "reassignments");
  }

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException, InterruptedException {
    switch (name) {
      case "reassignment_reset" -> reset(command);
      case "reassignment_publish" -> publish(command);
      case "reassignment_apply" -> apply();
      case "reassignment_append" ->
          Kafka.wireCall(process.partition(), "appendRecordsToLeader", type -> Records.argument(Kafka.raw(type)));
      case "reassignment_fetch" -> {
        return json.writeValueAsString(fetch(command));
      }
      case "reassignment_pass_lag_time" -> process.clock.sleep(BrokerProcess.LAG_MS + 1);
      case "reassignment_shrink" -> Kafka.call(process.partition(), "maybeShrinkIsr");
      case "reassignment_complete" -> complete(command);
      case "reassignment_view" -> {
        return view();
      }
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    return "null";
  }

  private static List<Integer> integers(JsonNode array) {
    List<Integer> numbers = new ArrayList<>();
    array.forEach(each -> numbers.add(each.asInt()));
    return numbers;
  }

  // ---- life --------------------------------------------------------------------------------

  /** An empty log; what is published is applied. */
  private void reset(JsonNode command) throws IOException, InterruptedException {
    if (process != null) {
      process.kill();
    }
    clear(folder.toPath());
    int leader = command.get("leader").asInt();
    brokers = integers(command.get("ids"));
    if (host == null || host.id != leader) {
      host = new BrokerProcess.Host(leader, folder);
    }
    delta = null;
    proposed = null;
    change = null;
    process = new BrokerProcess(host, 0, brokers, MetadataVersion.latestProduction(), this::submit);
    image = process.metadata.image();
    publish(command);
    apply();
  }

  private static void clear(Path directory) throws IOException {
    Utils.delete(directory.toFile());
    Files.createDirectories(directory);
  }

  /** AlterPartitionManager, with one request of the partition in flight. */
  private CompletableFuture<Object> submit(Object leaderAndIsr) {
    CompletableFuture<Object> answer = new CompletableFuture<>();
    if (change != null) {
      answer.completeExceptionally(Errors.OPERATION_NOT_ATTEMPTED.exception());
      return answer;
    }
    proposed = leaderAndIsr;
    change = answer;
    return answer;
  }

  // ---- what the leader hears ---------------------------------------------------------------

  /** BrokerMetadataPublisher: first the cache, of brokers [id, state, epoch] and the partition. */
  private void publish(JsonNode command) {
    MetadataDelta news = new MetadataDelta.Builder().setImage(image).build();
    command.get("brokers").forEach(each -> news.replay(registration(each)));
    JsonNode partition = command.get("partition");
    if (!partition.isNull()) {
      if (image.topics().getTopic(Metadata.TOPIC) == null) {
        news.replay(
            new org.apache.kafka.common.metadata.TopicRecord()
                .setName(Metadata.TOPIC)
                .setTopicId(Metadata.TOPIC_ID));
      }
      news.replay(partition(partition));
    }
    image = process.metadata.publish(news);
    delta = partition.isNull() ? null : news;
  }

  private static RegisterBrokerRecord registration(JsonNode broker) {
    String state = broker.get(1).asText();
    return Metadata.registration(broker.get(0).asInt(), broker.get(2).asLong(), state.equals("Fenced"))
        .setInControlledShutdown(state.equals("ShuttingDown"));
  }

  private PartitionRecord partition(JsonNode partition) {
    return new PartitionRecord()
        .setTopicId(Metadata.TOPIC_ID)
        .setPartitionId(0)
        .setReplicas(integers(partition.get("replicas")))
        .setAddingReplicas(integers(partition.get("adding")))
        .setRemovingReplicas(integers(partition.get("removing")))
        .setIsr(integers(partition.get("isr")))
        .setLeader(process.id)
        .setLeaderEpoch(partition.get("leader_epoch").asInt())
        .setPartitionEpoch(partition.get("partition_epoch").asInt());
  }

  /** ReplicaManager.applyDelta. */
  private void apply() {
    if (delta == null) {
      throw new Broker.Refused("no change of the partition was published");
    }
    MetadataDelta news = delta;
    delta = null;
    Kafka.call(process.replicaManager, "applyDelta", news.topicsDelta(), image);
  }

  /** The controller's answer to the change in flight. */
  private void complete(JsonNode command) {
    if (change == null) {
      throw new Broker.Refused("no AlterPartition is in flight");
    }
    CompletableFuture<Object> answered = change;
    Object sent = proposed;
    change = null;
    proposed = null;
    String error = command.get("error").asText();
    if (error.equals("NONE")) {
      answered.complete(decided(sent, command));
    } else {
      answered.completeExceptionally(Errors.valueOf(error).exception());
    }
  }

  /** The LeaderAndIsr of the answer. */
  private Object decided(Object sent, JsonNode command) {
    List<Object> kept = new ArrayList<>();
    List<Integer> isr = integers(command.get("isr"));
    for (Object member : Kafka.each(Kafka.call(sent, "isrWithBrokerEpoch"))) {
      if (isr.contains((int) Kafka.number(Kafka.call(member, "brokerId")))) {
        kept.add(member);
      }
    }
    Object epoch = Kafka.with(sent, "leaderEpoch", command.get("leader_epoch").asInt());
    Object decided = Kafka.with(epoch, "partitionEpoch", command.get("partition_epoch").asInt());
    return Kafka.with(decided, "isrWithBrokerEpoch", kept);
  }

  // ---- fetches -----------------------------------------------------------------------------

  /** A follower's fetch arrives; the error of its answer. */
  private String fetch(JsonNode command) {
    FetchRequest.PartitionData data =
        new FetchRequest.PartitionData(
            Metadata.TOPIC_ID,
            command.get("offset").asLong(),
            0,
            MAX_BYTES,
            Optional.of(command.get("leader_epoch").asInt()));
    Map<TopicPartition, FetchRequest.PartitionData> asked = Map.of(View.PARTITION, data);
    FetchRequest request =
        FetchRequest.Builder.forReplica(
                FETCH_VERSION,
                command.get("follower").asInt(),
                command.get("broker_epoch").asLong(),
                0,
                0,
                asked)
            .build(FETCH_VERSION);
    short code =
        Leader.fetch(process, request, asked).data().responses().get(0).partitions().get(0).errorCode();
    return Errors.forCode(code).name();
  }

  // ---- what is seen ------------------------------------------------------------------------

  /**
   * [cache, replicas, isr, kind of change, its isr, leader epoch, partition epoch, epoch start,
   * positions, end, high watermark, proposal or null].
   */
  private String view() throws IOException {
    Object partition = process.partition();
    Object state = Kafka.call(partition, "partitionState");
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartArray();
      cache(out);
      View.integers(out, Kafka.call(Kafka.call(partition, "assignmentState"), "replicas"));
      View.integers(out, Kafka.call(state, "isr"));
      boolean isPending = (boolean) Kafka.call(state, "isInflight");
      String kind = state.getClass().getSimpleName();
      out.writeString(!isPending ? "None" : kind.contains("Expand") ? "Expand" : "Shrink");
      View.integers(out, isPending ? members(Kafka.call(state, "sentLeaderAndIsr")) : List.of());
      out.writeNumber((int) Kafka.call(partition, "getLeaderEpoch"));
      out.writeNumber((int) Kafka.call(partition, "getPartitionEpoch"));
      out.writeNumber(Kafka.number(Kafka.orNull(Kafka.get(partition, "leaderEpochStartOffsetOpt"))));
      out.writeStartArray();
      for (int broker : brokers) {
        position(out, broker == process.id ? null : Kafka.orNull(Kafka.call(partition, "getReplica", broker)));
      }
      out.writeEndArray();
      Object log = process.log();
      out.writeNumber(DiskLog.endOffset(log));
      out.writeNumber(DiskLog.highWatermark(log));
      proposal(out);
      out.writeEndArray();
    }
    return text.toString();
  }

  private void cache(JsonGenerator out) throws IOException {
    out.writeStartArray();
    for (int broker : brokers) {
      BrokerRegistration known = image.cluster().broker(broker);
      out.writeStartArray();
      out.writeString(
          known.fenced() ? "Fenced" : known.inControlledShutdown() ? "ShuttingDown" : "Active");
      out.writeNumber(known.epoch());
      out.writeEndArray();
    }
    out.writeEndArray();
  }

  private static List<Integer> members(Object leaderAndIsr) {
    TreeSet<Integer> ids = new TreeSet<>();
    for (Object member : Kafka.each(Kafka.call(leaderAndIsr, "isrWithBrokerEpoch"))) {
      ids.add((int) Kafka.number(Kafka.call(member, "brokerId")));
    }
    return List.copyOf(ids);
  }

  /** [log end, broker epoch, caught up, the leader's end at the last fetch], both within the lag time. */
  private void position(JsonGenerator out, Object replica) throws IOException {
    if (replica == null) {
      out.writeNull();
      return;
    }
    Object state = Kafka.call(replica, "stateSnapshot");
    Object epoch = Kafka.orNull(Kafka.call(state, "brokerEpoch"));
    long recently = process.clock.milliseconds() - BrokerProcess.LAG_MS;
    boolean fetched = (long) Kafka.call(state, "lastFetchTimeMs") >= recently;
    out.writeStartArray();
    out.writeNumber((long) Kafka.call(state, "logEndOffset"));
    out.writeNumber(epoch == null ? -1 : Kafka.number(epoch));
    out.writeBoolean((long) Kafka.call(state, "lastCaughtUpTimeMs") >= recently);
    out.writeNumber(fetched ? (long) Kafka.call(state, "lastFetchLeaderLogEndOffset") : NO_OFFSET);
    out.writeEndArray();
  }

  /** [leader epoch, partition epoch, [broker, epoch]] of the request in flight. */
  private void proposal(JsonGenerator out) throws IOException {
    if (change == null) {
      out.writeNull();
      return;
    }
    out.writeStartArray();
    out.writeNumber((int) Kafka.call(proposed, "leaderEpoch"));
    out.writeNumber((int) Kafka.call(proposed, "partitionEpoch"));
    out.writeStartArray();
    for (Object member : Kafka.each(Kafka.call(proposed, "isrWithBrokerEpoch"))) {
      out.writeStartArray();
      out.writeNumber(Kafka.number(Kafka.call(member, "brokerId")));
      out.writeNumber(Kafka.number(Kafka.call(member, "brokerEpoch")));
      out.writeEndArray();
    }
    out.writeEndArray();
    out.writeEndArray();
  }
}
